"""Folders that exist only when they are complete, made once however many ask at the same time."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock named after `path`; the operating system frees it if the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        yield


def publish_folder(destination: Path, fill: Callable[[Path], None]) -> bool:
    """Make `destination` with what `fill` writes into a temporary sibling, then rename it into place.

    Returns False, without calling `fill`, when the folder is already there. Two processes that ask for the
    same folder at once make it once. Whatever `fill` raises is passed on and nothing is left behind; what a
    killed process left is removed by the next one.
    """
    if destination.is_dir():
        return False
    with locked(destination):
        if destination.is_dir():
            return False
        _remove_leftovers(destination)
        temporary = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}.partial-"))
        try:
            temporary.chmod(0o755)
            fill(temporary)
            temporary.rename(destination)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return True


def _remove_leftovers(destination: Path) -> None:
    """Remove what killed processes left; nobody else writes here, since the caller holds the lock."""
    for leftover in destination.parent.glob(f".{destination.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
