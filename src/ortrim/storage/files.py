"""Single files: digests and writes that are all or nothing; and what a disk has room for."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from ortrim.errors import StorageError

FULL_DISK: Final = ("No space left on device", "Disk quota exceeded")
"""How programs say that a disk is full, whatever their language."""
FULL_BYTES: Final = 1 << 16
"""Less than this is what a program leaves that stopped for want of space."""


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into a `StorageError`.

    References: `disk-full`, `not-permitted`, `path-in-the-way`, `storage-failed`.
    """
    try:
        yield
    except OSError as error:
        raise _diagnosed(error, path) from error


def require_writable(folder: Path, option: str = "--output") -> None:
    """Find out before the work whether files can be written into a folder that need not exist yet; makes nothing.

    `option` is what chooses another one, empty when nothing does. Raises `StorageError` (`not-permitted`,
    `path-in-the-way`).
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    try:
        with storage_errors(folder):
            if not nearest.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(nearest))
            if not os.access(nearest, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "no write permission", str(nearest))
    except StorageError as error:
        error.hint += f", or choose another folder with {option}" if option else ""
        raise


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in lower-case hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file so that a reader sees the old content or the new, never a part; makes the folder if needed.

    Without `durable` the disk is not waited for: after a power cut the file may be anything.

    Raises `StorageError`; the old file then stays as it was.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        try:
            write = _write if durable else _write_soon
            write(descriptor, content.encode() if isinstance(content, str) else content)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def write_if_changed(path: Path, content: str) -> bool:
    """Write a text file unless it holds that text already, so that builds see a new time only with new content.

    Returns whether it was written. Raises `StorageError` as `write_atomically` does.
    """
    with storage_errors(path):
        if path.is_file() and path.read_bytes() == content.encode():
            return False
    write_atomically(path, content)
    return True


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _write_soon(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _diagnosed(error: OSError, path: Path) -> StorageError:
    where, why = str(path), str(error)
    if ran_out_of_space(error, path):
        return disk_full("there is no space left", path, why=why)
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return _not_permitted(path, why)
    if error.errno in {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}:
        hint = "move the file or folder that has this name out of the way"
        return StorageError("path-in-the-way", "something else has this name", where=where, why=why, hint=hint)
    return StorageError("storage-failed", "could not be read or written", where=where, why=why)


def _not_permitted(path: Path, why: str) -> StorageError:
    where = str(path)
    if path.is_file() and not os.access(path, os.R_OK):
        hint = "give this user read access to it"
        return StorageError("not-permitted", "cannot be read by this user", where=where, why=why, hint=hint)
    nearest = next(each for each in (path.absolute(), *path.absolute().parents) if each.is_dir())
    hint = f"give this user write access to {nearest}"
    if variable := _chosen_by(path.absolute()):
        hint += f", or choose another folder with {variable}"
    return StorageError("not-permitted", "cannot be written by this user", where=where, why=why, hint=hint)


def require_space(folder: Path, size_bytes: int, work: str) -> None:
    """Raise `StorageError` (`disk-full`) unless `work`, which writes about so much below `folder`, has room there.

    The folder need not exist yet. A file system that does not say how much is free is not judged.
    """
    free = free_bytes(folder)
    if free is not None and free < size_bytes:
        raise disk_full(f"{work} takes about {_megabytes(size_bytes)}, and {_megabytes(free)} are free", folder)


def ran_out_of_space(error: OSError, path: Path) -> bool:
    """Whether an error is that of a full disk; NumPy's, on a file that it could not write to its end, has no number."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT} or (error.errno is None and is_full(path))


def says_full(path: Path, printed: str) -> bool:
    """Whether a program that failed did so for want of space: it says so, or has left none below `path`."""
    return any(words in printed for words in FULL_DISK) or is_full(path)


def is_full(path: Path) -> bool:
    """Whether nothing can be written to a path, as the program leaves it that ran out of space there."""
    free = free_bytes(path)
    return free is not None and free < FULL_BYTES


def disk_full(what: str, *places: Path, where: str = "", why: str = "", hint: str = "") -> StorageError:
    """Return the diagnostic of a full disk: of the `places` that were written to, that of the one with the least room.

    It names the file system, and the variable that chooses another one where there is such a variable.
    """
    place = min(places, key=lambda each: free_bytes(each) or 0)
    mount, free = _existing(place), free_bytes(place)
    while not mount.is_mount():
        mount = mount.parent
    left = f"the file system of {mount} has {_megabytes(free or 0)} free"
    variable = _chosen_by(place)
    other = f", or name a folder on another disk in the environment variable {variable}" if variable else ""
    remedy = f"{hint}free some space there{other}; then run the same command again: what was finished stays"
    why = "\n".join(filter(None, (why, left)))
    return StorageError("disk-full", what, where=where or str(place), why=why, hint=remedy)


def free_bytes(path: Path) -> int | None:
    """Return how much a user may still write below a path that need not exist yet; None where nobody knows."""
    try:
        usage = shutil.disk_usage(_existing(path))
    except OSError:
        return None
    return usage.free if usage.total else None


def chosen_folder(variable: str, otherwise: Callable[[str], Path]) -> Path:
    """Return the folder that an environment variable names, absolute, or else ortrim's own among the user's.

    Raises `StorageError` (`no-home`) for a user without a home folder, such as a container's that is only a number.
    """
    chosen = os.environ.get(variable)
    try:
        return Path(chosen).expanduser().absolute() if chosen else otherwise("ortrim")
    except RuntimeError as error:
        hint = f"set HOME, or name a folder by its whole path in the environment variable {variable}"
        raise StorageError(
            "no-home", "this user has no home folder", where=variable, why=str(error), hint=hint
        ) from error


def _existing(path: Path) -> Path:
    whole = Path(os.path.realpath(path))
    return next(each for each in (whole, *whole.parents) if each.exists())


def _chosen_by(place: Path) -> str:
    """Return the environment variable that chooses where a place of ours lies; none for what the user named."""
    whole = Path(os.path.realpath(place))
    try:
        if whole.is_relative_to(os.path.realpath(chosen_folder("ORTRIM_CACHE", user_cache_path))):
            return "ORTRIM_CACHE"
        temporary = Path(os.path.realpath(tempfile.gettempdir()))
    except (StorageError, OSError):
        return ""
    ours = whole == temporary or (temporary in whole.parents and whole.relative_to(temporary).parts[0][:6] == "ortrim")
    return "TMPDIR" if ours else ""


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes < 1e7 else f"{size_bytes / 1e6:,.0f} MB"
