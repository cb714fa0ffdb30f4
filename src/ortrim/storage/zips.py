"""Zip archives that nobody vouches for, read member by member without unpacking them."""

import errno
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from ortrim.errors import StorageError
from ortrim.storage.bounded import DAMAGE, TooLarge, bounded_zip
from ortrim.storage.files import storage_errors
from ortrim.storage.members import MAXIMUM_BYTES, MAXIMUM_ENTRIES, MAXIMUM_NAME, Members

LARGEST_MEMBER: Final = 512 << 20
ENCRYPTED_FLAG: Final = 0x1


class Zip:
    """An open archive: `members` are its files by name, in the order of the archive, `links` what its links say."""

    def __init__(self, file: zipfile.ZipFile, where: str, *, links: bool = False) -> None:
        found = _checked(file, where, links=links)
        self.members = {name: entry for name, entry in found.items() if not _is_link(entry)}
        self.links = {name: _target(file, entry) for name, entry in found.items() if _is_link(entry)}
        self._file = file
        self._where = where

    def read(self, name: str, limit: int = -1) -> bytes:
        """Return a member's bytes, which its checksum vouches for, or no more than the first `limit`, which none does.

        Raises `StorageError` (`archive-too-large`, `corrupt-archive`) and KeyError for a name that is not there.
        """
        entry = self.members[name]
        if entry.file_size > LARGEST_MEMBER:
            what = f"{name} is larger than {LARGEST_MEMBER:,} bytes"
            raise StorageError("archive-too-large", what, where=self._where)
        with _diagnosed(self._where), self._file.open(entry) as content:
            return content.read(limit)


@contextmanager
def open_zip(source: Path | IO[bytes], where: str, *, links: bool = False) -> Iterator[Zip]:
    """Open a zip archive, a file or one in memory that errors call `where`.

    With `links` it may have symbolic links; where they lead is for the caller to judge. Raises `StorageError`:
    `corrupt-archive` (also for what is no zip, and for encrypted members), `unsafe-archive` (an absolute path, `..`, a
    link otherwise, a name that is there twice), `archive-too-large`, or what the disk says.
    """
    with _diagnosed(where), bounded_zip(source, MAXIMUM_ENTRIES) as file:
        yield Zip(file, where, links=links)


def _is_link(entry: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)


def _target(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """Return what a link says, which is its content."""
    if entry.file_size > MAXIMUM_NAME:
        raise zipfile.BadZipFile(f"{entry.filename[:200]!r} is a link of {entry.file_size} characters")
    return file.read(entry).decode("utf-8")


def _checked(file: zipfile.ZipFile, where: str, *, links: bool) -> dict[str, zipfile.ZipInfo]:
    account = Members(Path(where), Path(), 0, {"": ""})
    allowed = {0, stat.S_IFREG, stat.S_IFDIR, *([stat.S_IFLNK] if links else [])}
    files: dict[str, zipfile.ZipInfo] = {}
    seen: set[str] = set()
    for entry in file.infolist():
        account.count(entry.file_size)
        account.path_of(entry.filename)
        if stat.S_IFMT(entry.external_attr >> 16) not in allowed:
            raise account.unsafe(entry.filename, "a link or a device in a zip archive")
        if (name := entry.filename.rstrip("/")) in seen:
            raise account.unsafe(entry.filename, "it is there twice, and readers differ in which they take")
        seen.add(name)
        if entry.flag_bits & ENCRYPTED_FLAG:
            raise zipfile.BadZipFile(f"{entry.filename[:200]!r} is encrypted")
        if not entry.is_dir():
            files[entry.filename] = entry
    return files


@contextmanager
def _diagnosed(where: str) -> Iterator[None]:
    """Turn what Python's reader raises on damaged archives into ours."""
    try:
        yield
    except TooLarge as error:
        what = f"holds more than {MAXIMUM_ENTRIES:,} entries or {MAXIMUM_BYTES:,} bytes"
        raise StorageError("archive-too-large", what, where=where) from error
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a place before the beginning of the file
            with storage_errors(Path(where)):
                raise
        what, hint = "is damaged, cut short, or not a zip archive", "download or build it again"
        raise StorageError("corrupt-archive", what, where=where, why=str(error), hint=hint) from error
