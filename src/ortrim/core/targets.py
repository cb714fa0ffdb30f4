"""Targets: what a runtime is built for. One identifier each, the same everywhere."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final


class OperatingSystem(StrEnum):
    """The operating system on which the runtime runs."""

    LINUX = "linux"
    ANDROID = "android"


class Architecture(StrEnum):
    """The instruction set for which the runtime is compiled, in ONNX Runtime's own words."""

    X64 = "x64"
    ARM64 = "arm64"
    ARM = "arm"
    """ARMv7-A with NEON, hard float."""
    RISCV64 = "riscv64"
    X86 = "x86"
    """32 bits with SSSE3, as Android's older emulators have it."""


class CLibrary(StrEnum):
    """The C library that the runtime is built against."""

    GLIBC = "glibc"
    MUSL = "musl"
    BIONIC = "bionic"


FIRST_GLIBC: Final = {
    Architecture.X64: "2.2.5", Architecture.ARM64: "2.17", Architecture.ARM: "2.4", Architecture.RISCV64: "2.27",
}  # fmt: skip
"""The first glibc of each architecture: no library for it can load on an older one."""

ABIS: Final = {
    Architecture.ARM64: "arm64-v8a", Architecture.ARM: "armeabi-v7a", Architecture.X64: "x86_64",
    Architecture.X86: "x86",
}  # fmt: skip
"""Android's names of the architectures that it runs on."""
FIRST_ANDROID: Final = "android-arm64-v8a"
"""The target that runs on every phone of today."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing a runtime can be built for. `identifier` appears in buildspecs, globs, logs and file names."""

    identifier: str
    system: OperatingSystem
    architecture: Architecture
    c_library: CLibrary = CLibrary.GLIBC


TARGETS: Final = {
    target.identifier: target
    for target in (
        Target(identifier="linux-x64", system=OperatingSystem.LINUX, architecture=Architecture.X64),
        Target(identifier="linux-arm64", system=OperatingSystem.LINUX, architecture=Architecture.ARM64),
        Target(identifier="linux-armhf", system=OperatingSystem.LINUX, architecture=Architecture.ARM),
        Target(identifier="linux-riscv64", system=OperatingSystem.LINUX, architecture=Architecture.RISCV64),
        Target(
            identifier="linux-arm64-musl",
            system=OperatingSystem.LINUX,
            architecture=Architecture.ARM64,
            c_library=CLibrary.MUSL,
        ),
        *(
            Target(
                identifier=f"android-{abi}",
                system=OperatingSystem.ANDROID,
                architecture=architecture,
                c_library=CLibrary.BIONIC,
            )
            for architecture, abi in ABIS.items()
        ),
    )
}


def matches(pattern: str, identifier: str) -> bool:
    """Whether `pattern`, an identifier, a glob or a dash-bounded prefix (`linux` for `linux-x64`), selects a target.

    What is the whole identifier of a target selects that one alone: `linux-arm64` is not `linux-arm64-musl`.
    """
    if pattern in TARGETS:
        return pattern == identifier
    return fnmatchcase(identifier, pattern) or identifier.startswith(pattern + "-")


def minimum_glibc(target: Target, asked: str) -> str:
    """Return the oldest glibc on which a library for `target` loads when `asked` is wanted; empty for another libc."""
    if target.c_library is not CLibrary.GLIBC:
        return ""
    return max(asked, FIRST_GLIBC[target.architecture], key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
