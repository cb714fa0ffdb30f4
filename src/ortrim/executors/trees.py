"""Build trees: folders in which CMake has configured and ninja has compiled, kept for the next model.

A tree serves every job that differs in the operator configuration or the linkage alone: what the new one changes is
compiled, the rest is there. Few are kept, and any may go at any time: the compiler cache and a new configuration bring
it back. A tree that is not what the last build left in it goes, too, and so does one that lay elsewhere then, in a
cache that was moved: CMake has written the names of folders all over it.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.core.plan import ARCHIVE, BuildJob, Toolchain, digest
from ortrim.errors import StorageError
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors
from ortrim.storage.folders import locked_if_free
from ortrim.storage.records import KeptFolder, kept_folder, remove_entry

KEPT: Final = 6
"""One tree of a pruned build takes 160 to 200 MB, half of it the precompiled header."""
STAMPS: Final = "out/*/*.ninja*"
"""What ninja has written last in a tree, its logs (`.ninja_log`, `.ninja_deps`) among them."""
SLACK_SECONDS: Final = 60.0
"""How far the clocks of this machine and of its disk, which may be another's, can differ."""


@contextmanager
def build_tree(
    job: BuildJob, on_wait: Callable[[], None], apart: str = "", on_note: Callable[[str], None] = lambda _: None
) -> Iterator[KeptFolder]:
    """Hold the tree of a job, alone; `on_wait` is called when another build is using it.

    Jobs share one when they differ in their operators alone, or in the linkage: the static library is joined of what
    the shared one is linked from. `apart` is part of its name where the programs that it is configured with are not
    this machine's.
    """
    name = digest(_shared(job))[:20]
    tree = cache_folder("trees") / (f"{name}-{apart}" if apart else name)
    with kept_folder(tree, on_wait) as kept:
        with storage_errors(tree):
            if _newest((tree, *tree.glob(STAMPS))) > time.time() + SLACK_SECONDS:
                on_note("the clock was ahead when this was compiled before: it is compiled anew")
                shutil.rmtree(tree)
                tree.mkdir()
            tree.touch()
        yield kept


@contextmanager
def shared_zig(toolchain: Toolchain) -> Iterator[Path]:
    """Hold, alone, the folder of what zig has compiled of its own libraries for a target, which every build needs."""
    with kept_folder(cache_folder("zig") / (toolchain.triple or toolchain.kind)) as kept:
        yield kept.path


@contextmanager
def own_zig(tree: Path, toolchain: Toolchain) -> Iterator[None]:
    """Have a tree begin with what zig compiled for others, and others with what it compiled for this one.

    Compiling it takes a minute; the shared folder is nobody's for as long as a build takes. Raises `StorageError`.
    """
    own = tree / "zig"
    if toolchain.kind != "zig" or own.exists():
        yield
        return
    with shared_zig(toolchain) as shared, storage_errors(own):
        shutil.copytree(shared, own)
    yield
    with shared_zig(toolchain) as shared, storage_errors(shared):
        shutil.copytree(own, shared, dirs_exist_ok=True)


def empty_unless_made_of(tree: Path, *inputs: Path) -> None:
    """Empty a tree that was compiled from other copies of its inputs, such as sources that were unpacked anew since.

    A precompiled header knows the times of the files in it, and clang refuses it once they have others. Raises
    `StorageError`.
    """
    made_of = tree / "inputs"
    with storage_errors(tree):
        now = "".join(f"{folder} {folder.stat().st_mtime_ns}\n" for folder in inputs)
        if made_of.is_file() and made_of.read_text(encoding="utf-8") == now:
            return
        shutil.rmtree(tree)
        tree.mkdir()
        made_of.write_text(now, encoding="utf-8")


def require_past(*folders: Path) -> None:
    """Refuse inputs that are newer than now: build files would be older than what they are made of, for ever.

    Raises `StorageError` (`clock-behind`).
    """
    for folder in folders:
        with storage_errors(folder):
            ahead = _newest((folder,)) - time.time()
        if ahead > SLACK_SECONDS:
            what = f"was written {ahead / 3600:,.1f} hours from now, by this machine's clock"
            hint = f"set the clock; if it is right now, it was ahead then: remove {folder}, which is made anew"
            raise StorageError("clock-behind", what, where=str(folder), hint=hint)


def _newest(paths: Iterable[Path]) -> float:
    return max(path.stat().st_mtime for path in paths)


def _shared(job: BuildJob) -> BuildJob:
    """Return the job, without operators, that builds the shared library alone in the tree of `job`."""
    if job.linkage == "shared":
        return replace(job, operator_config="")
    outputs = tuple(output for output in job.expected_outputs if output.name != ARCHIVE)
    return replace(job, operator_config="", linkage="shared", expected_outputs=outputs)


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
