"""What a task was asked for, what a plan is decided from, and the latest plan that was decided from the same.

Nothing here reads a model or imports what does, so that a rerun with nothing changed is quick.
"""

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final, Literal

from ortrim.base.cache import SeenFiles, is_as_seen, seen_in
from ortrim.base.files import PACKAGE, shipped_folder, storage_errors, write_atomically
from ortrim.base.json import read_json, to_canonical_json, to_data, to_json
from ortrim.base.tools import X64_USER, require
from ortrim.buildspec.build_options import ProfileName
from ortrim.buildspec.buildspec import BuildSpec, ExtraPackage, LoadedSpec, TargetSpec
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.problems import VERSION, Sha256, nearest
from ortrim.buildspec.targets import TARGETS, Target
from ortrim.compiling.plan import Toolchain
from ortrim.errors import StorageError, ToolError, UsageError, VerifyError
from ortrim.models.hot_operators import hot_file, read_hot
from ortrim.pins.runtime import exact_version
from ortrim.pins.shipped import user_pins_folder
from ortrim.planning.planner import select_targets
from ortrim.platforms import platform_of, target_problems
from ortrim.platforms.platform import Compilation


@dataclass(frozen=True, kw_only=True)
class Request(Compilation):
    """What a task was asked for: the buildspec's file, what overrides it, where output goes, and how to verify.

    `version` is that of ONNX Runtime. `devices` are names as `ortrim.devices.kinds` reads them; without any, each
    target has its own defaults. `cores` are those that runs are kept on, where a device has any of its own; all of them
    when it is empty. `training_run` is kept in the history with what is verified.
    """

    spec: Path
    target: str | None = None
    profile: ProfileName | None = None
    packages: tuple[ExtraPackage, ...] = ()
    version: str | None = None
    jobs: int | None = None
    output: Path = Path("artifacts")
    devices: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    least_memory: bool = False
    trace: bool = False
    training_run: str = ""


def load(request: Request) -> LoadedSpec:
    """Load the buildspec, with what the request overrides."""
    if request.version and not re.fullmatch(VERSION, request.version):
        hint = "give a version such as 1.30.0 or 1.30, or newest"
        raise UsageError("bad-option", f"{request.version[:100]!r} is no version", where="--version", hint=hint)
    spec = load_spec(request.spec, target_problems)
    runtime = replace(spec.onnxruntime, version=exact_version(request.version or spec.onnxruntime.version))
    packages = request.packages or spec.packages
    return replace(spec, profile=request.profile or spec.profile, packages=packages, onnxruntime=runtime)


def require_known(code: str, option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is not known; the hint has one that is close, else all of them."""
    for name in names:
        if name not in known:
            hint = nearest(name, known, f"there are: {', '.join(known)}")
            raise UsageError(code, f"there is no {name[:100]!r}", where=option, hint=hint)


BUILDSPEC: Final = ".toml"


def is_buildspec(path: Path) -> bool:
    """Whether a buildspec is meant, and not a model's file."""
    return path.suffix == BUILDSPEC


HOSTS: Final = {
    ("Linux", "x86_64"): "linux-x64", ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "arm64"): "macos-arm64", ("Darwin", "x86_64"): "macos-x86_64",
}  # fmt: skip
LATEST: Final = "latest"
"""The folder, beside those of plans, that has a file for each set of inputs that was planned."""


def host_target() -> Target | None:
    """Return the target that runs on this machine; None where none does, as on Windows."""
    return TARGETS.get(HOSTS.get((platform.system(), platform.machine()), ""))


def require_host() -> Target:
    """Return the target that runs on this machine; raises `ToolError` `unsupported-host`."""
    if (host := host_target()) is not None:
        return host
    what = "this machine can neither compile nor run a library"
    here = f"{platform.system()} on {platform.machine()}"
    why = f"it is {here}; ortrim does that on Linux for x86-64 and arm64, and on Macs"
    hint = "let GitHub compile: invoke build --executor github --target NAME"
    subsystem = "; or use the Windows Subsystem for Linux" if platform.system() == "Windows" else ""
    raise ToolError("unsupported-host", what, why=why, hint=hint + subsystem)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """A buildspec with the targets to plan, what compiles for each, and the operators that its file names as hot."""

    loaded: LoadedSpec
    toolchains: dict[str, Toolchain]
    hot: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """Digest of all that decides a plan, but for the files that the buildspec names.

        What code of ours may have a say in it is all of it, rather than a list in vain. A folder of sources is looked
        at here, since a build copies it.
        """
        parts = (
            to_data(self.loaded.as_written()),
            {name: to_data(toolchain) for name, toolchain in sorted(self.toolchains.items())},
            self.hot,
            _own_code(),
            [installed_version(name) for name in ("ortrim", "numpy", "onnx")],
            _converts_for_x64(self.loaded),
            _checkout(self.loaded),
        )
        return hashlib.sha256(to_canonical_json(parts).encode()).hexdigest()


def inputs_of(loaded: LoadedSpec, targets: tuple[TargetSpec, ...], request: Request) -> Inputs:
    """Return what a plan for targets is decided from."""
    hot = read_hot(hot_file(loaded.file))
    return Inputs(loaded=replace(loaded, targets=targets), toolchains=toolchains_of(loaded, targets, request), hot=hot)


def targets_of(loaded: LoadedSpec, request: Request, note: Callable[[str], None]) -> tuple[TargetSpec, ...]:
    """Return the targets of a request as they are planned."""
    return with_defaults(loaded, select_targets(loaded, request.target, host_target(), note))


def with_defaults(spec: BuildSpec, targets: Iterable[TargetSpec]) -> tuple[TargetSpec, ...]:
    """Return targets with what their platforms choose where a buildspec does not."""
    return tuple(platform_of(target.target).with_defaults(spec, target) for target in targets)


def toolchains_of(spec: BuildSpec, targets: Iterable[TargetSpec], request: Compilation) -> dict[str, Toolchain]:
    """Return what compiles for each target."""
    own = ((target, platform_of(target.target)) for target in targets)
    return {target.id: each.toolchain(spec, target, request, host_target) for target, each in own}


def _own_code() -> str:
    folders = [PACKAGE, shipped_folder("runner")]
    with suppress(StorageError):
        folders.append(user_pins_folder())
    content = hashlib.sha256()
    for folder in folders:
        for file in sorted(file for file in folder.rglob("*") if file.suffix != ".pyc" and file.is_file()):
            content.update(f"{file.relative_to(folder).as_posix()} {file.stat().st_size}\n".encode())
            content.update(file.read_bytes())
    return content.hexdigest()


def _converts_for_x64(spec: BuildSpec) -> bool:
    """Whether a layout for x64 that is left to ortrim can be made here, if one may be chosen: an emulator does that."""
    free = any(model.layout == "auto" for model in spec.models)
    if not (free and any(target.target.runs_nchwc for target in spec.targets)):
        return False
    with suppress(ToolError):
        return bool(require(X64_USER))
    return False


def _checkout(loaded: LoadedSpec) -> str:
    wanted = loaded.onnxruntime
    if wanted.source != "path" or wanted.path is None:
        return ""
    from ortrim.sources.commits import identify  # noqa: PLC0415 - few builds are of a folder of sources

    return identify(loaded.resolve(wanted.path), wanted.version).digest


@dataclass(frozen=True, kw_only=True)
class Latest:
    """The latest plan of some inputs, by its digest, and the user's files that it was made from, as they were then."""

    schema: Literal["ortrim-latest/1"] = "ortrim-latest/1"
    plan: Sha256
    files: dict[str, SeenFiles]


def latest_of(inputs: Inputs, output: Path) -> Latest:
    """Return the latest plan of some inputs, if what they name is still the same."""
    path = _latest_file(inputs, output)
    base = inputs.loaded.file.parent
    try:
        with storage_errors(path):
            content = path.read_bytes()
    except StorageError as error:
        others = any(path.parent.glob("*.json"))
        why = "the buildspec, the options or ortrim have changed since the last build" if others else ""
        raise not_built(inputs, why) from error
    latest = read_json(Latest, content, not_built(inputs, f"{path} is damaged, or of another version"))
    for name, known in latest.files.items():
        if not is_as_seen(base / name, known):
            raise not_built(inputs, f"'{name}' has changed since")
    return latest


def not_built(inputs: Inputs, why: str) -> VerifyError:
    """Return the diagnostic for a build that is not there."""
    what, hint = "there is no finished build of this", "run: invoke build"
    return VerifyError("not-built", what, where=str(inputs.loaded.file), why=why, hint=hint)


def keep_latest(inputs: Inputs, output: Path, latest: Latest) -> None:
    """Let a plan be the latest of its inputs."""
    write_atomically(_latest_file(inputs, output), to_json(latest))


def plan_folder(name: str, plan: str, output: Path) -> Path:
    """Return the folder of what comes of a plan, by its digest."""
    return output / name / plan[:12]


def files_of(inputs: Inputs) -> dict[str, SeenFiles]:
    """Look at the files that a buildspec names; a folder of sources is looked at by itself."""
    return {str(path): seen_in(inputs.loaded.resolve(path)) for path in _paths(inputs.loaded.models)}


def _latest_file(inputs: Inputs, output: Path) -> Path:
    return output / inputs.loaded.name / LATEST / f"{inputs.key[:20]}.json"


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif is_dataclass(value):
        yield from _paths(tuple(vars(value).values()))
    elif isinstance(value, dict):
        yield from _paths(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _paths(each)
