"""What a task was asked for: a buildspec's file, and names that a user gives of what it has."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.buildspec.build_options import ProfileName
from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.problems import VERSION, nearest
from ortrim.errors import UsageError
from ortrim.pins.runtime import exact_version
from ortrim.platforms import target_problems
from ortrim.platforms.platform import Compilation


@dataclass(frozen=True, kw_only=True)
class Request(Compilation):
    """What a task was asked for: the buildspec's file, what overrides it, where output goes, and how to verify.

    `version` is that of ONNX Runtime. `devices` are names as `ortrim.devices.names` reads them; without any, each
    target has its own defaults. `cores` are those that runs are kept on, where a device has any of its own; all of them
    when it is empty. `training_run` is kept in the history with what is verified.
    """

    spec: Path
    target: str | None = None
    profile: ProfileName | None = None
    version: str | None = None
    jobs: int | None = None
    output: Path = Path("artifacts")
    devices: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    least_memory: bool = False
    trace: bool = False
    training_run: str = ""


def load(request: Request) -> LoadedSpec:
    """Load the buildspec, with what the request overrides. Raises `SpecError`, and `UsageError` (`bad-option`)."""
    if request.version and not re.fullmatch(VERSION, request.version):
        hint = "give a version such as 1.30.0 or 1.30, or newest"
        raise UsageError("bad-option", f"{request.version[:100]!r} is no version", where="--version", hint=hint)
    loaded = load_spec(request.spec, target_problems)
    spec = loaded.spec
    runtime = replace(spec.onnxruntime, version=exact_version(request.version or spec.onnxruntime.version))
    return replace(loaded, spec=replace(spec, profile=request.profile or spec.profile, onnxruntime=runtime))


def require_known(code: str, option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is not known; the hint has one that is close, else all of them.

    Raises `UsageError` with this code.
    """
    for name in names:
        if name not in known:
            hint = nearest(name, known, f"there are: {', '.join(known)}")
            raise UsageError(code, f"there is no {name[:100]!r}", where=option, hint=hint)


BUILDSPEC: Final = ".toml"


def is_buildspec(path: Path) -> bool:
    """Whether a buildspec is meant, and not a model's file."""
    return path.suffix == BUILDSPEC
