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
from ortrim.storage.members import MAXIMUM_BYTES, MAXIMUM_ENTRIES, MAXIMUM_NAME, Link, Members

EVERYTHING: Final = {"": ""}
OF_THE_DISK: Final = frozenset(
    {errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.EMFILE}
)


def unpack(
    archive: Path,
    destination: Path,
    *,
    strip: int = 0,
    members: Mapping[str, str] = EVERYTHING,
    zip_links: bool = False,
) -> None:
    """Unpack a tar (plain, gzip, bzip2, xz), zip or wheel into `destination`, a new or empty folder.

    `strip` leading folders are removed from each name; `members` then maps the names to take, a folder or a
    file each, to names below `destination` (`""` is the top of either). A tar may have links that stay inside, and so
    may a zip with `zip_links`: archives of git's are such, wheels and what GitHub keeps are not. Links to nothing are
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
        _unpack(archive, Members(archive, destination, strip, members), zip_links=zip_links)
    except BaseException:
        shutil.rmtree(destination, ignore_errors=True)
        raise


def _unpack(archive: Path, members: Members, *, zip_links: bool) -> None:
    where = str(archive)
    try:
        if _is_zip(archive):
            _unpack_zip(archive, members, links=zip_links)
        else:
            _unpack_tar(archive, members)
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


def _is_zip(archive: Path) -> bool:
    with archive.open("rb") as file:
        return file.read(2) == b"PK"


def _unpack_zip(archive: Path, members: Members, *, links: bool) -> None:
    found: list[Link] = []
    allowed = {0, stat.S_IFREG, stat.S_IFDIR, *([stat.S_IFLNK] if links else [])}
    with bounded_zip(archive, MAXIMUM_ENTRIES) as file:
        entries = file.infolist()
        for entry in entries:  # before anything is written
            members.count(entry.file_size)
        for entry in entries:
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in allowed:
                raise members.unsafe(entry.filename, "a link or a device in a zip archive")
            path = members.path_of(entry.filename)
            if path is not None and stat.S_ISLNK(mode):
                with file.open(entry) as content:
                    target = content.read(MAXIMUM_NAME + 1).decode()
                found.append(Link(path=path, name=entry.filename, target=target))
            elif path is not None and entry.is_dir():
                path.mkdir(parents=True, exist_ok=True)
            elif path is not None:
                with file.open(entry) as content:
                    members.write(path, content, executable=bool(mode & 0o100))
    members.make_links(found)


def _unpack_tar(archive: Path, members: Members) -> None:
    links: list[Link] = []
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
                links.append(Link(path=path, name=member.name, target=member.linkname, hard=member.islnk()))
            elif (content := file.extractfile(member)) is not None:
                members.write(path, content, executable=bool(member.mode & 0o100))
        stream.drain()
    members.make_links(links)


def _check(member: tarfile.TarInfo, members: Members) -> None:
    """Refuse what is neither file, folder nor link; `Members` judges names and links.

    Not `tarfile.data_filter`: Python has it from 3.11.4 on only, and Debian 12 has 3.11.2.
    """
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise members.unsafe(member.name, "a device or a pipe")
