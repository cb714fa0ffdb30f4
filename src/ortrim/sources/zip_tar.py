"""A zip file as a tar file: with the links and permissions that the zip's entries say they had on Unix."""

import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.errors import StorageError
from ortrim.storage.bounded import DAMAGE
from ortrim.storage.files import storage_errors

MAXIMUM_BYTES: Final = 16 << 30
MAXIMUM_ENTRIES: Final = 200_000
MAXIMUM_LINK: Final = 4096
TIME: Final = 315532800


def zip_as_tar(archive: Path, destination: Path) -> None:
    """Write the entries of a zip below its one top folder into a tar file, the same bytes for the same zip.

    Raises `StorageError`: `corrupt-archive`, `unsafe-archive` (a name or a link that leads outside, a device),
    `archive-too-large`, or what the disk says. Only when the content is damaged is a part of the destination written.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            entries = tuple(_entries(source, archive))
            with storage_errors(destination), tarfile.open(destination, "w") as target:
                for entry, name in entries:
                    _add(source, entry, name, target)
    except DAMAGE as error:
        hint = "remove it, so that it is fetched anew"
        what = "is damaged, cut short, or not a zip file"
        raise StorageError("corrupt-archive", what, where=str(archive), why=str(error), hint=hint) from error


def _entries(source: zipfile.ZipFile, archive: Path) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """Yield the entries and their names below the top folder, once each has been found harmless."""
    entries = source.infolist()
    if len(entries) > MAXIMUM_ENTRIES or sum(entry.file_size for entry in entries) > MAXIMUM_BYTES:
        what = f"holds more than {MAXIMUM_ENTRIES:,} entries or {MAXIMUM_BYTES:,} bytes"
        raise StorageError("archive-too-large", what, where=str(archive))
    for entry in entries:
        path = PurePosixPath(entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
            raise _unsafe(archive, entry, "its name is absolute or climbs")
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}:
            raise _unsafe(archive, entry, "a device")
        name = PurePosixPath(*path.parts[1:])
        if kind == stat.S_IFLNK and not _stays_inside(name, source, entry):
            raise _unsafe(archive, entry, "a link that leads outside")
        if name.parts:
            yield entry, name


def _stays_inside(name: PurePosixPath, source: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Whether a link stays below the top folder; each step of its target is counted as if none were a link."""
    if entry.file_size > MAXIMUM_LINK:
        return False
    target = PurePosixPath(source.read(entry).decode("utf-8", errors="replace"))
    depth = len(name.parts) - 1
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return not target.is_absolute()


def _add(source: zipfile.ZipFile, entry: zipfile.ZipInfo, name: PurePosixPath, target: tarfile.TarFile) -> None:
    member = tarfile.TarInfo(str(name))
    mode = entry.external_attr >> 16
    member.mtime, member.mode = TIME, 0o755 if mode & 0o100 or entry.is_dir() else 0o644
    if stat.S_ISLNK(mode):
        member.type, member.linkname = tarfile.SYMTYPE, source.read(entry).decode("utf-8")
        target.addfile(member)
    elif entry.is_dir():
        member.type = tarfile.DIRTYPE
        target.addfile(member)
    else:
        member.size = entry.file_size
        with source.open(entry) as content:
            target.addfile(member, content)


def _unsafe(archive: Path, entry: zipfile.ZipInfo, why: str) -> StorageError:
    hint = "do not use this archive: a well-meant one does not hold such a thing"
    what = f"holds {entry.filename[:200]!r}, which could do harm"
    return StorageError("unsafe-archive", what, where=str(archive), why=why, hint=hint)
