"""Build trees: folders in which CMake has configured and ninja has compiled, kept for the next model.

A tree serves every job that differs in the operator configuration, the models' layout or the linkage alone. Few are
kept, and any may go at any time: the compiler cache and a new configuration bring it back. A tree that is not what the
last build left goes, too, and one that lay elsewhere then: CMake has written folders' names all over it.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.base.cache import KeptFolder, cache_folder, kept_folder, locked_if_free, remove_entry
from ortrim.base.files import storage_errors
from ortrim.base.json import from_data, to_json
from ortrim.compiling import plan
from ortrim.compiling.execution import JobPaths
from ortrim.errors import BuildError, StorageError

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
        for header in sorted((paths.sources / "onnxruntime" / "include" / "onnxruntime").glob(pattern)):
            shutil.copyfile(header, destination / "headers" / header.name)
