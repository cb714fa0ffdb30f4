"""Archives and folders that nobody vouches for, read and unpacked: nothing lands outside, nothing is without bounds."""

import bz2
import errno
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from ortrim.base.files import storage_errors
from ortrim.errors import StorageError

DAMAGE: Final = (
    tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error,
    ValueError, OverflowError, RuntimeError,
)  # fmt: skip
"""What Python's readers raise on bytes that are no archive. bz2 and gzip add an OSError without a number;
zipfile says RuntimeError of an encrypted member and NotImplementedError of an unknown method."""

ZIP_ENTRY: Final = b"PK\x01\x02"  # what every entry of a zip archive's directory begins with
LARGEST_READ: Final = 4 << 20
OPENERS: Final[dict[bytes, Callable[[IO[bytes]], Any]]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


class TooLarge(Exception):
    """More came out of an archive than was agreed to."""


class BoundedStream:
    """A readable, seekable stream that refuses to go beyond `limit` bytes or to hand over much at once.

    tarfile reads a header in one piece of whatever size it claims, and passes over a member by decompressing it.
    """

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = limit

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes; a negative or huge size is damage, since no valid header has it."""
        if not 0 <= size <= LARGEST_READ:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        self._check(self._stream.tell() + size - LARGEST_READ)
        return self._stream.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to an absolute position."""
        assert whence == 0
        self._check(position)
        return self._stream.seek(position)

    def tell(self) -> int:
        """Return the position in the decompressed stream."""
        return self._stream.tell()

    def drain(self) -> None:
        """Read to the end, so that a checksum that stands there is compared."""
        while self.read(LARGEST_READ):
            pass

    def _check(self, position: int) -> None:
        if position > self._limit:
            raise TooLarge


class _Directory:
    """A zip archive of at most `most` entries: zipfile takes 20 seconds for 200,000 before any are counted."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._most = most
        self.listed = False

    def read(self, size: int = -1) -> bytes:
        """Read as the file does; the directory is read in one piece."""
        data = self._file.read(size)
        if not self.listed and data.count(ZIP_ENTRY) > self._most:
            raise TooLarge(f"more than {self._most:,} entries")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def bounded_zip(source: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raises `TooLarge` for one of too many entries, and what zipfile does."""
    with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
        directory = _Directory(file, MAXIMUM_ENTRIES)
        with zipfile.ZipFile(cast(IO[bytes], directory)) as opened:
            directory.listed = True
            yield opened


@contextmanager
def bounded_stream(archive: Path, limit: int) -> Iterator[BoundedStream]:
    """Open a file, decompressing it when it is gzip, bzip2 or xz."""
    with archive.open("rb") as file:
        opener = OPENERS.get(file.read(2))
        file.seek(0)
        if opener is None:
            yield BoundedStream(file, limit)
            return
        with opener(file) as stream:
            yield BoundedStream(stream, limit)


MAXIMUM_ENTRIES: Final = 200_000
MAXIMUM_BYTES: Final = 4 << 30
MAXIMUM_NAME: Final = 1024


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link: where it goes, what the archive calls it, and what it says that it leads to."""

    path: Path
    name: str
    target: str
    hard: bool = False


def unsafe_member(where: str, name: str, why: str) -> StorageError:
    """Return the diagnostic of a member of an archive that must not be used."""
    hint = "do not use this archive: a normal one does not contain such an entry"
    return StorageError("unsafe-archive", f"holds {name[:200]!r}, which could do harm", where=where, why=why, hint=hint)


class Members:
    """What is taken from `archive` into `destination`, and the account of it."""

    def __init__(
        self, archive: Path, destination: Path, strip: int, wanted: Mapping[str, str], without: Sequence[str] = ()
    ) -> None:
        self.destination = destination.resolve()
        self.written = 0
        self._archive = archive
        self._strip = strip
        self._wanted = tuple((PurePosixPath(source), PurePosixPath(target)) for source, target in wanted.items())
        self._without = without
        self._entries = 0
        self._bytes = 0

    def count(self, size: int) -> None:
        """Take account of one member that claims `size` bytes."""
        if size < 0:
            raise tarfile.ReadError(f"a member claims {size} bytes")
        self._entries += 1
        self._bytes += size
        if self._entries > MAXIMUM_ENTRIES or self._bytes > MAXIMUM_BYTES:
            raise TooLarge

    def path_of(self, name: str) -> Path | None:
        """Return where the member called `name` goes, or None when it is not wanted."""
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or "\\" in name or len(name) > MAXIMUM_NAME:
            raise self.unsafe(name, "its name is absolute, contains '..', or is too long")
        if len(inside.parts) <= self._strip:
            return None
        kept = PurePosixPath(*inside.parts[self._strip :])
        if any(kept.is_relative_to(folder) for folder in self._without):
            return None
        for source, target in self._wanted:
            if kept.is_relative_to(source):
                return self.destination / target / kept.relative_to(source)
        return None

    def write(self, path: Path, content: IO[bytes], *, executable: bool) -> None:
        """Write one regular file; of its permissions only whether it can be run is kept."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
        path.chmod(0o755 if executable else 0o644)
        self.written += 1

    def make_links(self, links: Iterable[Link]) -> None:
        """Make the links after all files, hard ones first, so that no file is written through one."""
        ordered = sorted(links, key=lambda link: not link.hard)
        for link in ordered:
            (self._hard_link if link.hard else self._link)(link)
        for link in ordered:
            if not link.hard:
                self._settle(link)

    def _link(self, link: Link) -> None:
        """Make a symbolic link if all of it stays inside and nothing is in its place."""
        path = link.path
        # Nothing is made through an earlier link: a chain of links can leave where each alone does not.
        if not self._inside(os.path.realpath(path.parent / link.target)) or os.path.realpath(path.parent) != str(
            path.parent
        ):
            raise self.unsafe(link.name, f"a link that leads outside, to {link.target[:200]!r}")
        if not link.target or len(link.target) > MAXIMUM_NAME or os.path.lexists(path):
            raise self.unsafe(
                link.name, "a link that replaces another member, or whose target is not a valid file name"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(link.target)

    def _settle(self, link: Link) -> None:
        """Look again once all links are there: refuse one that leads outside, remove one that leads nowhere."""
        try:
            actual = os.path.realpath(link.path, strict=True)
        except OSError:
            link.path.unlink(missing_ok=True)
            return
        if not self._inside(actual):
            raise self.unsafe(link.name, f"a chain of links that leads outside, to {actual[:200]!r}")

    def unsafe(self, name: str, why: str) -> StorageError:
        """Make the diagnostic of a member that must not be unpacked."""
        return unsafe_member(str(self._archive), name, why)

    def _hard_link(self, link: Link) -> None:
        source = self.path_of(link.target)
        if source is None or source.is_symlink() or not source.is_file():
            raise self.unsafe(link.name, f"a link to {link.target[:200]!r}, which is not a file taken from here")
        link.path.parent.mkdir(parents=True, exist_ok=True)
        if link.path != source:
            link.path.unlink(missing_ok=True)
            link.path.hardlink_to(source)

    def _inside(self, path: str) -> bool:
        return Path(path).is_relative_to(self.destination)


EVERYTHING: Final = {"": ""}
OF_NAMES: Final = frozenset({errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP})
"""What the system says when members' names are at odds with each other or with what it allows."""


def unpack(
    archive: Path,
    destination: Path,
    *,
    strip: int = 0,
    members: Mapping[str, str] = EVERYTHING,
    without: Sequence[str] = (),
    zip_links: bool = False,
) -> None:
    """Unpack a tar (plain, gzip, bzip2, xz), zip or wheel into `destination`, a new or empty folder, or nothing of it.

    `strip` leading folders are removed from each name; `members` then maps the names to take, a folder or a file each,
    to names below `destination` (`""` is the top of either); nothing in the folders `without` is taken. A tar may have
    links that stay inside, a zip with `zip_links`, as git's. Links to nothing are left out; owners, set-user bits and
    others' write permission are dropped.
    """
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
        if any(destination.iterdir()):
            what = "archives are unpacked into empty folders only"
            raise StorageError("path-in-the-way", what, where=str(destination))
    try:
        _unpack(archive, Members(archive, destination, strip, members, without), zip_links=zip_links)
    except BaseException:
        shutil.rmtree(destination, ignore_errors=True)
        raise


def _unpack(archive: Path, members: Members, *, zip_links: bool) -> None:
    with diagnosed(str(archive), members.destination, OF_NAMES):
        with archive.open("rb") as file:
            is_zip = file.read(2) == b"PK"
        if is_zip:
            _unpack_zip(archive, members, links=zip_links)
        else:
            _unpack_tar(archive, members)
    if not members.written:
        raise StorageError("nothing-unpacked", "has none of the expected files", where=str(archive))


def _unpack_zip(archive: Path, members: Members, *, links: bool) -> None:
    found: list[Link] = []
    with bounded_zip(archive) as file:
        for entry in checked_entries(file, str(archive), links=links):
            path = members.path_of(entry.filename)
            if path is not None and is_link(entry):
                found.append(Link(path=path, name=entry.filename, target=target_of(file, entry)))
            elif path is not None and entry.is_dir():
                path.mkdir(parents=True, exist_ok=True)
            elif path is not None:
                with file.open(entry) as content:
                    members.write(path, content, executable=bool(entry.external_attr >> 16 & 0o100))
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


LARGEST_MEMBER: Final = 512 << 20
ENCRYPTED_FLAG: Final = 0x1


class Zip:
    """An open archive: `members` are its files by name, in the order of the archive, `links` what its links say."""

    def __init__(self, file: zipfile.ZipFile, where: str, *, links: bool = False) -> None:
        found = [entry for entry in checked_entries(file, where, links=links) if not entry.is_dir()]
        self.members = {entry.filename: entry for entry in found if not is_link(entry)}
        self.links = {entry.filename: target_of(file, entry) for entry in found if is_link(entry)}
        self._file = file
        self._where = where

    def read(self, name: str, limit: int = -1) -> bytes:
        """Return a member's bytes, which its checksum vouches for, or the first `limit`, which none does."""
        entry = self.members[name]
        if entry.file_size > LARGEST_MEMBER:
            what = f"{name} is larger than {LARGEST_MEMBER:,} bytes"
            raise StorageError("archive-too-large", what, where=self._where)
        with diagnosed(self._where, Path(self._where)), self._file.open(entry) as content:
            return content.read(limit)

    def extract(self, name: str, destination: Path) -> None:
        """Write a member of any size, whose checksum vouches for it, to a file of the caller's choice."""
        with (
            diagnosed(self._where, destination),
            self._file.open(self.members[name]) as content,
            destination.open("wb") as file,
        ):
            shutil.copyfileobj(content, file, 1 << 20)


@contextmanager
def open_zip(source: Path | IO[bytes], where: str, *, links: bool = False) -> Iterator[Zip]:
    """Open a zip archive, a file or one in memory that errors call `where`; where `links` lead the caller judges."""
    with diagnosed(where, Path(where)), bounded_zip(source) as file:
        yield Zip(file, where, links=links)


def is_link(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry is a symbolic link."""
    return stat.S_ISLNK(entry.external_attr >> 16)


def target_of(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """Return what a link says, which is its content."""
    return file.read(entry).decode("utf-8")


def checked_entries(file: zipfile.ZipFile, where: str, *, links: bool) -> list[zipfile.ZipInfo]:
    """Return all entries, folders too, once each was found harmless; the caller judges where links lead."""
    account = Members(Path(where), Path(), 0, EVERYTHING)
    allowed = {0, stat.S_IFREG, stat.S_IFDIR, *([stat.S_IFLNK] if links else [])}
    seen: set[str] = set()
    for entry in file.infolist():
        account.count(entry.file_size)
        account.path_of(entry.filename)
        if stat.S_IFMT(entry.external_attr >> 16) not in allowed:
            raise account.unsafe(entry.filename, "a link or a device in a zip archive")
        if is_link(entry) and entry.file_size > MAXIMUM_NAME:
            raise account.unsafe(entry.filename, f"a link of {entry.file_size} characters")
        if (name := entry.filename.rstrip("/")) in seen:
            raise account.unsafe(entry.filename, "it is there twice, and programs differ in which one they use")
        seen.add(name)
        if entry.flag_bits & ENCRYPTED_FLAG:
            raise zipfile.BadZipFile(f"{entry.filename[:200]!r} is encrypted")
    return file.infolist()


@contextmanager
def diagnosed(where: str, disk: Path, of_content: frozenset[int] = frozenset()) -> Iterator[None]:
    """Turn what Python's readers raise on damaged archives into ours; `disk` is the place that may be full.

    An OSError with a number is no damage, but for EINVAL, of a place before the file's beginning, and `of_content`.
    """
    try:
        yield
    except TooLarge as error:
        what = f"holds more than {MAXIMUM_ENTRIES:,} entries or {MAXIMUM_BYTES:,} bytes"
        raise StorageError("archive-too-large", what, where=where) from error
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL, *of_content}:
            with storage_errors(disk):
                raise
        what, hint = "is damaged, cut short, or not an archive", "remove it, then download or build it again"
        raise StorageError("corrupt-archive", what, where=where, why=str(error), hint=hint) from error


MOST_LINKS: Final = 40  # how many links may lead from one to the next, as on Linux


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The files of a folder by their paths below it, with their sizes in bytes, and its links with what they say."""

    files: Mapping[str, int]
    links: Mapping[str, str]
    where: str
    reader: Callable[..., bytes]

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that have a file in them, at whatever depth; the empty path is that of all."""
        parents = (str(parent) for name in self.files for parent in PurePosixPath(name).parents)
        return frozenset("" if parent == "." else parent for parent in parents)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; `name` is a key of `files`."""
        if self.files[name] > LARGEST_MEMBER:
            what = f"{name} is larger than {LARGEST_MEMBER:,} bytes"
            raise StorageError("archive-too-large", what, where=self.where)
        return self.reader(name)

    def head(self, name: str, count: int) -> bytes:
        """Return the first bytes of a file; raises as `read` does."""
        return self.reader(name, count)

    def found(self, name: str) -> str | None:
        """Return where links lead from a path, a file or a folder; None when it is not there, or outside."""
        parts, done, followed = list(PurePosixPath(name).parts), list[str](), 0
        while parts:
            part = parts.pop(0)
            if part == ".." and not done:
                return None
            if part == "..":
                done.pop()
                continue
            done.append(part)
            target = self.links.get("/".join(done))
            if target is not None:
                followed += 1
                if followed > MOST_LINKS or PurePosixPath(target).is_absolute():
                    return None
                done.pop()
                parts = [*PurePosixPath(target).parts, *parts]
        path = "/".join(done)
        return path if path in self.files or path in self.folders else None

    def file(self, name: str) -> str | None:
        """Return the file that a path leads to, over links if need be; None when there is none."""
        path = self.found(name)
        return path if path in self.files else None

    def below(self, folder: str) -> tuple[str, ...]:
        """Return the files below a folder, in order of their paths; all of them below the empty one."""
        start = f"{folder}/" if folder else ""
        return tuple(sorted(name for name in self.files if name.startswith(start)))


def inside(folder: str, name: str) -> str:
    """Return the path of something in a folder of a bundle, whose own folder is the empty path."""
    path = str(PurePosixPath(folder, name))
    return "" if path == "." else path


@contextmanager
def open_bundle(path: Path) -> Iterator[Bundle]:
    """Open a folder or a zip archive."""
    if path.is_dir():
        yield _folder(path)
        return
    with open_zip(path, str(path), links=True) as archive:
        sizes = {name: entry.file_size for name, entry in archive.members.items()}
        yield Bundle(files=sizes, links=archive.links, where=str(path), reader=archive.read)


def _read_below(folder: Path, name: str, limit: int = -1) -> bytes:
    with storage_errors(folder / name), (folder / name).open("rb") as file:
        return file.read(limit)


def _folder(path: Path) -> Bundle:
    files, links = dict[str, int](), dict[str, str]()
    with storage_errors(path):
        for entry in _entries(path):
            name, mode = entry.relative_to(path).as_posix(), entry.lstat().st_mode
            if stat.S_ISLNK(mode):
                links[name] = str(entry.readlink())
            elif stat.S_ISREG(mode):
                files[name] = entry.lstat().st_size
            else:
                what = f"holds {name[:200]!r}, which is a device or a pipe"
                raise StorageError("unsafe-folder", what, where=str(path), hint="remove it")
            if len(files) + len(links) > MAXIMUM_ENTRIES:
                what = f"holds more than {MAXIMUM_ENTRIES:,} files"
                raise StorageError("folder-too-large", what, where=str(path))
    return Bundle(files=files, links=links, where=str(path), reader=partial(_read_below, path))


def _entries(path: Path) -> Iterator[Path]:
    """Yield all that is no folder; links to folders are not entered."""
    for folder, inner, names in os.walk(path, onerror=_raised):
        here = Path(folder)
        yield from (here / name for name in names)
        yield from (here / name for name in inner if (here / name).is_symlink())


def _raised(error: OSError) -> None:
    raise error
