"""What a process puts into the system's temporary folder: in one folder of its own, which does not outlive it for long.

A killed process cannot remove anything. Its folder is locked by an open descriptor, which the system closes with the
process, so that the next run of the same user can tell it from one in use, also in another container.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "ortrim."


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Let Python's `tempfile` use a folder of this process for a while, and remove what killed processes left.

    Programs that are started keep the environment's TMPDIR: some live on, such as `adb`. Where no folder can be made or
    locked, and on Windows, all stays as it is.
    """
    before = tempfile.tempdir
    made = _made() if hasattr(os, "geteuid") else None
    if made is None:
        yield
        return
    folder, descriptor = made
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _made() -> tuple[Path, int] | None:
    """Return a new folder and the descriptor that locks it."""
    with suppress(OSError):
        place = Path(tempfile.gettempdir())
        for leftover in place.glob(f"{PREFIX}*"):
            _remove_if_left(leftover)
        while True:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            if (descriptor := _locked(folder)) is not None:
                return folder, descriptor
    return None


def _remove_if_left(folder: Path) -> None:
    """Remove a folder that this user made and that no process has locked."""
    with suppress(OSError):
        if folder.lstat().st_uid == os.geteuid() and (descriptor := _locked(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """Lock a folder; None when another process holds it, or has removed it meanwhile."""
    import fcntl  # noqa: PLC0415 - not on Windows

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.lstat()):
            return descriptor
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError | FileNotFoundError):
            return None
        raise
    os.close(descriptor)
    return None
