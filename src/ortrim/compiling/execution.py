"""Where the programs of a job run, here or in a container; its folders, and how many compilations run at once."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final, Protocol

from ortrim.base.command import stream
from ortrim.base.console import counted
from ortrim.base.files import write_if_changed
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with
from ortrim.compiling.plan import BuildJob, Toolchain

CONFIGURATION: Final = "MinSizeRel"
"""The folder below `build` in which upstream's build.py configures and compiles: its `--config`."""


@dataclass(frozen=True, kw_only=True)
class JobPaths:
    """The folders and files that a job's `${...}` stand for; see `build.plan`."""

    sources: Path
    build: Path
    tools: Path
    wrappers: Path
    config: Path
    runner: Path
    hooks: Path
    zig: Path = Path()
    archive: Path = Path()
    ndk: Path = Path()
    bionic: Path = Path()
    ndk_prebuilt: Path = Path()
    xcode: Path = Path()

    @property
    def configured(self) -> Path:
        """The folder in which CMake and ninja run."""
        return self.build / CONFIGURATION

    @property
    def compiler_scratch(self) -> Path:
        """The folder that zig may fill while it compiles; nothing in it is needed when a build has ended."""
        return self.build / "zig"

    @property
    def link_map(self) -> Path:
        """The map that the last link wrote, if the linker writes one."""
        return self.build / "link.map"

    def resolve(self, argument: str) -> str:
        """Return an argument with its symbolic paths made real; raises KeyError for a name that does not exist."""
        return Template(argument).substitute({name: str(path) for name, path in vars(self).items()})

    def resolve_all(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """Return every argument resolved."""
        return tuple(self.resolve(argument) for argument in arguments)


class ExecutionEnvironment(Protocol):
    """A place that sees a job's folders under the same names as this machine.

    `apart` is part of the names of its build trees, which know the programs that they were configured with; empty for
    this machine. `reaches_stores` says whether a team's compiler cache can be reached from there. `folders` are those
    that a toolchain's symbolic paths mean there; None where they are this machine's.
    """

    @property
    def python(self) -> tuple[str, ...]:
        """The words that start an isolated Python."""

    @property
    def apart(self) -> str:
        """Part of the names of its build trees."""

    @property
    def reaches_stores(self) -> bool:
        """Whether it has a network."""

    @property
    def folders(self) -> Mapping[str, Path] | None:
        """What a toolchain's symbolic paths mean there."""

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """Run a program of a job, hand over each line of its output, and return its exit code."""


@dataclass(frozen=True, kw_only=True)
class Local:
    """The machine that ortrim runs on."""

    python: tuple[str, ...] = ISOLATED_PYTHON
    apart: str = ""
    reaches_stores: bool = True
    folders: Mapping[str, Path] | None = None

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,  # noqa: ARG002 - the Protocol fixes the parameters
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """See `ExecutionEnvironment.stream`."""
        return stream(words, on_line, cwd=cwd, environment=environment)


LOCAL: Final = Local()


def finished(
    place: ExecutionEnvironment, words: Sequence[str], *, paths: JobPaths, cwd: Path, environment: Mapping[str, str]
) -> tuple[int, tuple[str, ...]]:
    """Run a program of a job to its end; return its exit code and output."""
    lines: list[str] = []
    code = place.stream(words, lines.append, paths=paths, cwd=cwd, environment=environment)
    return code, tuple(lines)


UNREACHED: Final = "unreached.ld"
"""The linker's script of what is left out, which a first link finds empty and later ones as it was left."""
LEFT_OUT: Final = "unreached.h"  # the same symbols for `unreached.c`


@dataclass(frozen=True, kw_only=True)
class BuildInputs:
    """Complete folders that jobs only read: source tree, tool packages, the runner's source, the CMake hooks.

    `installed` finds the folders of an SDK, where `sdk` or else the environment names it, and `finish` ends a build;
    both are the target's platform's.
    """

    sources: Path
    tools: Path
    runner: Path
    hooks: Path
    sdk: Path | None = None
    installed: Callable[[Toolchain, Path | None], Mapping[str, Path]] = lambda *_: {}
    finish: Callable[[BuildJob, JobPaths], None] = lambda *_: None


def prepare_workspace(
    work: Path,
    inputs: BuildInputs,
    toolchain: Toolchain,
    operator_config: str = "",
    *,
    zig: Path | None = None,
    place: ExecutionEnvironment = LOCAL,
) -> JobPaths:
    """Make the folders and small files of a job's workspace, or make them anew, and return where they are.

    zig's own libraries lie in the workspace, unless `zig` names a folder that outlives it.
    """
    paths = JobPaths(
        sources=inputs.sources,
        build=work / "out",
        tools=inputs.tools,
        wrappers=work / "wrappers",
        zig=zig or work / "zig",
        config=work / "operators.config",
        runner=inputs.runner,
        hooks=work / "hooks",
        **(inputs.installed(toolchain, inputs.sdk) if place.folders is None else place.folders),
    )
    for folder in (paths.wrappers, paths.build, paths.zig):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in toolchain.wrappers:
        write_if_changed(paths.wrappers / name, text)
        (paths.wrappers / name).chmod(0o755)
    paths.config.write_text(operator_config, encoding="utf-8")
    for hook in sorted(file for file in inputs.hooks.rglob("*") if file.is_file()):
        write_if_changed(paths.hooks / hook.relative_to(inputs.hooks), hook.read_text(encoding="utf-8"))
    for made in (UNREACHED, LEFT_OUT):
        if not (paths.hooks / made).exists():
            write_if_changed(paths.hooks / made, "")
    return paths


def job_environment(paths: JobPaths, toolchain: Toolchain) -> dict[str, str]:
    """Return the whole environment of a job; the date is that of upstream's `__DATE__`, the same in every build."""
    return environment_with(paths.tools) | {
        "CC": str(paths.wrappers / "cc"),
        "CXX": str(paths.wrappers / "c++"),
        "HOME": str(paths.build),
        "ORTRIM_BUILD": str(paths.configured),
        "ORTRIM_LINK_MAP": str(paths.link_map),
        "ORTRIM_PRECOMPILED_HEADERS": str(paths.hooks / "precompiled"),
        "ORTRIM_SOURCES": str(paths.sources),
        "ORTRIM_SOURCES_HERE": os.path.relpath(paths.sources, paths.configured),
        "SOURCE_DATE_EPOCH": "315532800",
        "TZ": "UTC",
        "ZIG_GLOBAL_CACHE_DIR": str(paths.zig),
        "ZIG_LOCAL_CACHE_DIR": str(paths.compiler_scratch),
        **{name: _program(paths.resolve(value)) for name, value in toolchain.environment},
    }


def _program(name: str) -> str:
    """Return where PATH has a program that a toolchain gives by its mere name, so that plans hold no path."""
    return name if "/" in name else shutil.which(name) or name


# One clang on a large kernel file takes up to 1.5 GB; bare `--parallel` runs builders out of memory (upstream's
# issue 22859).
BYTES_PER_COMPILATION: Final = 2_000_000_000

CGROUP_MEMORY: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container reads how much memory it may use: cgroup version 2, then 1."""


@dataclass(frozen=True, kw_only=True)
class Parallelism:
    """A number of jobs and, in words, what limits it."""

    jobs: int
    reason: str


def choose_parallelism(asked: int | None) -> Parallelism:
    """Return `asked` when given, otherwise as many jobs as the cores and the memory of this machine allow."""
    if asked is not None:
        return Parallelism(jobs=asked, reason="as asked")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return limit_parallelism(cores, min(memory, memory_limit(CGROUP_MEMORY) or memory))


def memory_limit(files: tuple[Path, ...]) -> int | None:
    """Return the bytes of memory that a container may use, as the first readable of `files` says; None for no limit."""
    for file in files:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() and int(text) > 0 else None
    return None


def limit_parallelism(cores: int, memory_bytes: int) -> Parallelism:
    """Return how many compilations fit into a number of cores and an amount of memory, at least one."""
    by_memory = max(1, memory_bytes // BYTES_PER_COMPILATION)
    if by_memory < cores:
        return Parallelism(jobs=by_memory, reason=f"{memory_bytes / 1e9:.0f} GB of memory, 2 GB for each")
    return Parallelism(jobs=cores, reason=counted(cores, "core"))
