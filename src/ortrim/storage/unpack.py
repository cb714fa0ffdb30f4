"""Unpacking archives that nobody vouches for: nothing lands outside, nothing special, nothing without bounds."""

import errno
import shutil
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, cast

from ortrim.errors import StorageError
from ortrim.storage.bounded import DAMAGE, TooLarge, bounded_stream, bounded_zip
from ortrim.storage.files import storage_errors
from ortrim.storage.members import MAXIMUM_BYTES, MAXIMUM_ENTRIES, Members

EVERYTHING: Final = {"": ""}
OF_THE_DISK: Final = frozenset(
    {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.EMFILE}
)


def unpack(archive: Path, destination: Path, *, strip: int = 0, members: Mapping[str, str] = EVERYTHING) -> None:
    """Unpack a tar (plain, gzip, bzip2, xz), zip or wheel into `destination`, a new or empty folder.

    `strip` leading folders are removed from each name; `members` then maps the names to take, a folder or a
    file each, to names below `destination` (`""` is the top of either). Links to nothing are
    left out; owners, set-user bits and other people's write permission are dropped. Raises `StorageError` and
    leaves nothing: `unsafe-archive` (an absolute path, `..`, a link out, a device), `archive-too-large`,
    `corrupt-archive`, `nothing-unpacked`, or what the disk says.
    """
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
        if any(destination.iterdir()):
            what = "archives are unpacked into empty folders only"
            raise StorageError("path-in-the-way", what, where=str(destination))
    try:
        _unpack(archive, Members(archive, destination, strip, members))
    except BaseException:
        shutil.rmtree(destination, ignore_errors=True)
        raise


def _unpack(archive: Path, members: Members) -> None:
    where = str(archive)
    try:
        _unpack_either(archive, members)
    except TooLarge as error:
        what = f"holds more than {MAXIMUM_ENTRIES:,} entries or {MAXIMUM_BYTES:,} bytes"
        raise StorageError("archive-too-large", what, where=where) from error
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno in OF_THE_DISK:
            with storage_errors(members.destination):
                raise
        what, hint = "is damaged, cut short, or not an archive", "remove it, so that it is fetched anew"
        raise StorageError("corrupt-archive", what, where=where, why=str(error), hint=hint) from error
    if not members.written:
        raise StorageError("nothing-unpacked", "holds no file that is wanted of it", where=where)


def _unpack_either(archive: Path, members: Members) -> None:
    with archive.open("rb") as file:
        start = file.read(2)
    if start == b"PK":
        _unpack_zip(archive, members)
    else:
        _unpack_tar(archive, members)


def _unpack_zip(archive: Path, members: Members) -> None:
    with bounded_zip(archive, MAXIMUM_ENTRIES) as file:
        entries = file.infolist()
        for entry in entries:  # before anything is written
            members.count(entry.file_size)
        for entry in entries:
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise members.unsafe(entry.filename, "a link or a device in a zip archive")
            path = members.path_of(entry.filename)
            if path is not None and entry.is_dir():
                path.mkdir(parents=True, exist_ok=True)
            elif path is not None:
                with file.open(entry) as content:
                    members.write(path, content, executable=bool(mode & 0o100))


def _unpack_tar(archive: Path, members: Members) -> None:
    links: list[tuple[Path, tarfile.TarInfo]] = []
    with (
        bounded_stream(archive, 2 * MAXIMUM_BYTES) as stream,
        tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:") as file,
    ):
        for member in file:
            members.count(member.size)
            path = members.path_of(member.name)
            _check(member, members)
            if path is None:
                continue
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.issym() or member.islnk():
                links.append((path, member))
            elif (content := file.extractfile(member)) is not None:
                members.write(path, content, executable=bool(member.mode & 0o100))
        stream.drain()
    _make_links(links, members)


def _check(member: tarfile.TarInfo, members: Members) -> None:
    """Refuse what is neither file, folder nor link; `Members` judges names and links.

    Not `tarfile.data_filter`: Python has it from 3.11.4 on only, and Debian 12 has 3.11.2.
    """
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise members.unsafe(member.name, "a device or a pipe")


def _make_links(links: list[tuple[Path, tarfile.TarInfo]], members: Members) -> None:
    """Make the links last, so that no file can be written through one."""
    for path, member in sorted(links, key=lambda link: link[1].issym()):
        members.link(path, member)
    for path, member in links:
        if member.issym():
            members.settle_link(path, member)
