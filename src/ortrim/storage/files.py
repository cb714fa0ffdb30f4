"""Single files: digests and writes that are all or nothing."""

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ortrim.errors import StorageError


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into a `StorageError`.

    References: `disk-full`, `not-permitted`, `path-in-the-way`, `storage-failed`.
    """
    try:
        yield
    except OSError as error:
        raise _diagnosed(error, path) from error


def require_writable(folder: Path) -> None:
    """Find out before the work whether files can be written into a folder that need not exist yet; makes nothing.

    Raises `StorageError` (`not-permitted`, `path-in-the-way`).
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    with storage_errors(folder):
        if not nearest.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(nearest))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "no write permission", str(nearest))


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
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        hint = "free some space, then run the same command again; what was finished stays"
        return StorageError("disk-full", "there is no space left", where=where, why=why, hint=hint)
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        hint = "give this user write access, or choose another cache folder with ORTRIM_CACHE"
        return StorageError("not-permitted", "cannot be written by this user", where=where, why=why, hint=hint)
    if error.errno in {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}:
        hint = "move the file or folder that has this name out of the way"
        return StorageError("path-in-the-way", "something else has this name", where=where, why=why, hint=hint)
    return StorageError("storage-failed", "could not be read or written", where=where, why=why)
