"""Folders that exist only when they are complete, made once however many ask at the same time."""

import glob
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ortrim.storage.files import storage_errors


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock named after `path`; the operating system frees it if the process dies.

    `on_wait` is called once when another process holds it. The lock's file stays: removing it would let two processes
    hold a lock of the same name. Not reentrant. Raises `StorageError` when the folder of `path` cannot be written.
    """
    with storage_errors(path.parent):
        lock = _lock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            on_wait()
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock of `path` unless another process does; yields whether it is held."""
    with storage_errors(path.parent):
        lock = _lock(path)
        with suppress(Timeout):
            lock.acquire(blocking=False)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name(f".{path.name}.lock"))


def publish_folder(destination: Path, fill: Callable[[Path], None], on_wait: Callable[[], None] = lambda: None) -> bool:
    """Make `destination` with what `fill` writes into a temporary sibling, then rename it into place.

    Returns False, without calling `fill`, when the folder is already there. Two processes that ask for the
    same folder at once make it once; `on_wait` is called in the one that waits. Whatever `fill` raises is passed on
    and nothing is left behind; what a killed process left is removed by the next one. Raises `StorageError` when a
    file has the folder's name.
    """
    if destination.is_dir():
        return False
    with locked(destination, on_wait):
        if destination.is_dir():
            return False
        remove_leftovers(destination)
        _fill_and_rename(destination, fill)
    return True


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of `path`; the caller holds its lock, so nobody else writes them."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _fill_and_rename(destination: Path, fill: Callable[[Path], None]) -> None:
    with storage_errors(destination):
        temporary = Path(tempfile.mkdtemp(dir=destination.parent, prefix=f".{destination.name}.partial-"))
    try:
        temporary.chmod(0o755)
        fill(temporary)
        with storage_errors(destination):
            temporary.rename(destination)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
