"""Targets: what a runtime is built for. One identifier each, the same everywhere."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final


class OperatingSystem(StrEnum):
    """The operating system on which the runtime runs."""

    LINUX = "linux"


class Architecture(StrEnum):
    """The instruction set for which the runtime is compiled, in ONNX Runtime's own words."""

    X64 = "x64"
    ARM64 = "arm64"


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing a runtime can be built for. `identifier` appears in buildspecs, globs, logs and file names."""

    identifier: str
    system: OperatingSystem
    architecture: Architecture


TARGETS: Final = {
    target.identifier: target
    for target in (
        Target(identifier="linux-x64", system=OperatingSystem.LINUX, architecture=Architecture.X64),
        Target(identifier="linux-arm64", system=OperatingSystem.LINUX, architecture=Architecture.ARM64),
    )
}


def matches(pattern: str, identifier: str) -> bool:
    """Whether `pattern`, a glob or a dash-bounded prefix (`linux` for `linux-x64`), selects the identifier."""
    return fnmatchcase(identifier, pattern) or identifier.startswith(pattern + "-")
