"""A job's folders and where its programs run; build trees, kept for the next model; and what a finished build leaves.

A tree serves every job that differs in the operator configuration, the models' layout or the linkage alone. Few are
kept, and any may go at any time: the compiler cache and a new configuration bring it back. A tree that is not what the
last build left goes, too, and one that lay elsewhere then: CMake has written folders' names all over it.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Final

from ortrim.base.cache import KeptFolder, cache_folder, kept_folder, locked_if_free, remove_entry
from ortrim.base.command import stream
from ortrim.base.console import counted
from ortrim.base.files import storage_errors, write_if_changed
from ortrim.base.json import from_data, to_json
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with
from ortrim.compiling import plan
from ortrim.compiling.plan import BuildJob, Toolchain
from ortrim.errors import BuildError, StorageError

CONFIGURATION: Final = "MinSizeRel"
"""The folder below `build` in which upstream's build.py configures and compiles: its `--config`."""


@dataclass(frozen=True, kw_only=True)
class JobPaths:
    """The folders and files that a job's `${...}` stand for; see `compiling.plan`."""

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
    apple: Path = Path()
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


@dataclass(frozen=True, kw_only=True)
class ExecutionEnvironment:
    """Where a job's programs run, under the same names of folders: this machine, or what a subclass says.

    `python` are the words that start an isolated Python. `apart` is part of the names of its build trees, which know
    the programs that they were configured with; empty for this machine. `reaches_stores` says whether a team's compiler
    cache can be reached from there. `folders` are those that a toolchain's symbolic paths mean there; None where they
    are this machine's.
    """

    python: tuple[str, ...] = ISOLATED_PYTHON
    apart: str = ""
    reaches_stores: bool = True
    folders: Mapping[str, Path] | None = None

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,  # noqa: ARG002 - a container mounts them
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """Run a program of a job, hand over each line of its output, and return its exit code."""
        return stream(words, on_line, cwd=cwd, environment=environment)

    def run(
        self, words: Sequence[str], *, paths: JobPaths, toolchain: Toolchain, cwd: Path | None = None
    ) -> tuple[int, list[str]]:
        """Run a program of a job to its end, in the build folder unless in another; return its exit code and output."""
        lines: list[str] = []
        environment = job_environment(paths, toolchain)
        return self.stream(words, lines.append, paths=paths, cwd=cwd or paths.build, environment=environment), lines


LOCAL: Final = ExecutionEnvironment()
UNREACHED: Final = "unreached.ld"
"""The linker's script of what is left out, which a first link finds empty and later ones as it was left."""
LEFT_OUT: Final = "unreached.h"  # the same symbols for `unreached.c`


@dataclass(frozen=True, kw_only=True)
class BuildInputs:
    """Complete folders that jobs only read: source tree, tool packages, the runner's source, the CMake hooks.

    `installed` finds the folders of an SDK, where `sdk` or else the environment names it, `finish` ends a build, and
    `made_of` says what job's library is made that of another; all are the target's platform's.
    """

    sources: Path
    tools: Path
    runner: Path
    hooks: Path
    sdk: Path | None = None
    installed: Callable[[Toolchain, Path | None], Mapping[str, Path]] = lambda *_: {}
    finish: Callable[[BuildJob, JobPaths], None] = lambda *_: None
    made_of: Callable[[BuildJob], tuple[BuildJob, Callable[[Path], None]] | None] = lambda _: None


def prepare_workspace(
    work: Path,
    inputs: BuildInputs,
    toolchain: Toolchain,
    operator_config: str = "",
    *,
    zig: Path | None = None,
    execution: ExecutionEnvironment = LOCAL,
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
        **(inputs.installed(toolchain, inputs.sdk) if execution.folders is None else execution.folders),
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


KEPT: Final = 6  # One tree of a pruned build takes 210 to 400 MB, most of it precompiled headers
STAMPS: Final = "out/*/*.ninja*"
"""What ninja has written last in a tree, its logs (`.ninja_log`, `.ninja_deps`) among them."""
SLACK_SECONDS: Final = 60.0  # how far the clocks of this machine and of its disk, which may be another's, can differ


@contextmanager
def build_tree(
    job: plan.BuildJob, on_wait: Callable[[], None], apart: str = "", on_note: Callable[[str], None] = lambda _: None
) -> Iterator[KeptFolder]:
    """Hold the tree of a job, alone; `on_wait` is called when another build is using it.

    The static library is joined of what the shared one is linked from. `apart` is part of its name where the programs
    that it is configured with are not this machine's.
    """
    name = plan.digest(_shared(job))[:20]
    tree = cache_folder("trees") / (f"{name}-{apart}" if apart else name)
    with kept_folder(tree, on_wait) as kept:
        with storage_errors(tree):
            if _newest((tree, *tree.glob(STAMPS))) > time.time() + SLACK_SECONDS:
                on_note("the clock was ahead when this was last compiled: it is compiled again")
                _empty(tree)
            tree.touch()
        yield kept


@contextmanager
def shared_zig(toolchain: plan.Toolchain) -> Iterator[Path]:
    """Hold, alone, the folder of what zig has compiled of its own libraries for a target, which every build needs."""
    with kept_folder(cache_folder("zig") / (toolchain.triple or toolchain.kind)) as kept:
        yield kept.path


@contextmanager
def own_zig(tree: Path, toolchain: plan.Toolchain) -> Iterator[None]:
    """Have a tree begin with what zig compiled for others, a minute's work, and others with its own."""
    own = tree / "zig"
    if toolchain.kind != "zig" or own.exists():
        yield
        return
    with shared_zig(toolchain) as shared:
        copy_zig(shared, own)
    yield
    with shared_zig(toolchain) as shared:
        copy_zig(own, shared)


ZIGS_WORK: Final = shutil.ignore_patterns("tmp")
"""Where zig writes what gets its name when it is complete; one that outlived its build may still do so."""


def copy_zig(source: Path, destination: Path) -> None:
    """Copy what zig has compiled to what is there, or nothing of it: zig would believe a copy that is cut short."""
    try:
        with storage_errors(destination):
            shutil.copytree(source, destination, ignore=ZIGS_WORK, dirs_exist_ok=True)
    except BaseException:
        shutil.rmtree(destination, ignore_errors=True)
        raise


def empty_unless_made_of(tree: Path, *inputs: Path) -> None:
    """Empty a tree of other copies of its inputs: clang refuses a precompiled header whose files have other times."""
    made_of = tree / "inputs"
    with storage_errors(tree):
        now = "".join(f"{folder} {folder.stat().st_mtime_ns}\n" for folder in inputs)
        if made_of.is_file() and made_of.read_text(encoding="utf-8") == now:
            return
        _empty(tree)
        made_of.write_text(now, encoding="utf-8")


def _empty(tree: Path) -> None:
    """Empty a tree that this process holds; a compiler that outlived its own build may still write into it."""
    remove_entry(tree)
    tree.mkdir(exist_ok=True)


def require_past(*folders: Path) -> None:
    """Refuse inputs that are newer than now: build files would be older than what they are made of, for ever."""
    for folder in folders:
        with storage_errors(folder):
            ahead = _newest((folder,)) - time.time()
        if ahead > SLACK_SECONDS:
            what = f"was written {ahead / 3600:,.1f} hours from now, by this machine's clock"
            hint = f"set the clock; if it is right now, it was ahead then: remove {folder}, which is made anew"
            raise StorageError("clock-behind", what, where=str(folder), hint=hint)


def _newest(paths: Iterable[Path]) -> float:
    return max(path.stat().st_mtime for path in paths)


def _shared(job: plan.BuildJob) -> plan.BuildJob:
    """Return the job, without what no argument says, that builds the shared library alone in the tree of `job`."""
    outputs = tuple(output for output in job.expected_outputs if output.name != plan.ARCHIVE)
    return replace(
        job,
        operator_config="",
        nchwc_block_size=0,
        tiled=False,
        depthwise=False,
        few_bits=(),
        linkage="shared",
        expected_outputs=job.expected_outputs if job.linkage == "shared" else outputs,
    )


def forget_old_trees() -> None:
    """Remove all but the trees used last; one that is in use stays."""
    trees = [path for path in cache_folder("trees").iterdir() if path.is_dir() and not path.name.startswith(".")]
    for tree in sorted(trees, key=_last_used)[:-KEPT]:
        with locked_if_free(tree) as free:
            if free:
                remove_entry(tree)


def _last_used(tree: Path) -> int:
    """Return when a tree was used last, in nanoseconds; 0 for one that another build has removed meanwhile."""
    try:
        return tree.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


LIBRARY: Final = "libonnxruntime.so"
DYLIB: Final = "libonnxruntime.dylib"  # what the library is called on Apple's systems
LINKED_ANEW: Final = "anew.dylib"  # what `BuildJob.is_linked_anew` speaks of, in the build folder
INCLUDE: Final = Path("onnxruntime/include/onnxruntime")
"""Where the sources have their headers."""
HEADERS: Final = (
    "core/session/onnxruntime_*.h",
    "core/session/onnxruntime_*.inc",
    "core/providers/cpu/cpu_provider_factory.h",
)
"""The public ones, and the tables that some of them include (`onnxruntime_experimental_c_api.inc`)."""


def finished_build(job: plan.BuildJob) -> Path:
    """Return the folder in which a job's finished build lies, or will lie."""
    return cache_folder("builds") / plan.digest(job)[:20]


def linked_archive(job: plan.RunnerJob) -> Path:
    """Return the static library that a runner links, in the finished build that its job names."""
    return cache_folder("builds") / job.links[:20] / plan.ARCHIVE


def result_of(folder: Path) -> plan.JobResult:
    """Return the result that a finished build's folder holds."""
    library = next((folder / name for name in (DYLIB, LIBRARY) if (folder / name).is_file()), folder / LIBRARY)
    files = {"link_map": "link.map", "archive": plan.ARCHIVE, "symbols": plan.SYMBOLS}
    found = {field: folder / name if (folder / name).is_file() else None for field, name in files.items()}
    always = {"folder": folder, "library": library, "headers": folder / "headers", "log": folder / "build.log"}
    try:
        return from_data(plan.JobResult, {**json.loads((folder / "facts.json").read_bytes()), **always, **found})
    except (OSError, ValueError, TypeError) as error:
        what, hint = "a finished build is damaged", f"remove the folder {folder}, then run the same command again"
        raise StorageError("build-damaged", what, where=str(folder), why=str(error), hint=hint) from error


def write_facts(destination: Path, seconds: float, cache: plan.CompilerCacheUse | None, **facts: object) -> None:
    """Write what `result_of` reads beside the files: further fields of `JobResult`."""
    text = to_json({"seconds": seconds, "compiler_cache": cache, **facts})
    (destination / "facts.json").write_text(text, encoding="utf-8")


def collect(job: plan.BuildJob, paths: JobPaths, destination: Path, log: Path) -> None:
    """Copy what outlives the build out of its folder."""
    for output in job.expected_outputs:
        if not (paths.build / output).is_file():
            what = f"the build succeeded but made no {output}"
            raise BuildError("output-missing", what, where=job.target.identifier, hint=f"see the log: {log}")
    library, *others = job.expected_outputs
    shutil.copy2(paths.build / library, destination / library.name.removesuffix(f".{job.ort_version}"))
    for name in map(str, others):
        shutil.copy2(paths.build / name, destination / name)
    shutil.copyfile(log, destination / "build.log")
    (destination / "headers").mkdir()
    for pattern in (*HEADERS, *(f"core/providers/{name}/*.h" for name in job.providers)):
        for header in sorted((paths.sources / INCLUDE).glob(pattern)):
            shutil.copyfile(header, destination / "headers" / header.name)
