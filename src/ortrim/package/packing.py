"""Archives whose bytes depend on nothing but what is in them, the files that go into packages, and symbols apart."""

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ortrim.base.cache import locked
from ortrim.base.checksums import SUMS, FileEntry, checksums_text, is_plain_path
from ortrim.base.files import disk_full, ran_out_of_space, sha256_of, storage_errors, write_atomically
from ortrim.binaries.elf import build_id_of
from ortrim.errors import PackageError, StorageError

SOURCE_DATE_EPOCH: Final = 315_532_800
"""1 January 1980, the earliest time that every archive format can hold; given to all files of all packages."""


def write_archive(folder: Path, destination: Path) -> None:
    """Write `folder` as a `tar.gz` whose only top-level entry is its name; `destination` appears when it is complete.

    Entries are in order of their paths without owner and time; files are 0644, or 0755 when executable.
    """
    with new_archive(destination) as file:
        _write(folder, file)


@contextmanager
def new_archive(destination: Path) -> Iterator[IO[bytes]]:
    """Open an archive for writing; `destination` appears when it is complete, and nothing is left when it is not."""
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
            Path(name).chmod(0o644)
            Path(name).replace(destination)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        if ran_out_of_space(error, destination):
            raise disk_full("there is no space left", destination, why=str(error)) from error
        what = "the archive cannot be written"
        raise StorageError("archive-not-written", what, where=str(destination), why=str(error)) from error


def _write(folder: Path, file: IO[bytes]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.rglob("*"), key=lambda each: each.relative_to(folder).as_posix()):
            if path.is_symlink() or not path.is_dir():
                _add(archive, folder, path)


def _add(archive: tarfile.TarFile, folder: Path, path: Path) -> None:
    entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
    entry.mtime = SOURCE_DATE_EPOCH
    if path.is_symlink():
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, _link_target(folder, path), 0o777
        archive.addfile(entry)
        return
    if not path.is_file():
        raise PackageError("not-archivable", "only files, folders and links can be packaged", where=str(path))
    entry.size, entry.mode = path.stat().st_size, 0o755 if path.stat().st_mode & 0o100 else 0o644
    with path.open("rb") as content:
        archive.addfile(entry, content)


def _link_target(folder: Path, path: Path) -> str:
    target = path.readlink()
    if target.is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
        why = f"it leads to {target}, outside the package"
        raise PackageError("not-archivable", "a link cannot be packaged", where=str(path), why=why)
    return target.as_posix()


FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755


@dataclass(frozen=True, kw_only=True)
class PackagedFile:
    """A file of the package: its path inside it, and its content as bytes or as the file to copy."""

    path: str
    content: bytes | Path
    mode: int = FILE_MODE

    @property
    def entry(self) -> FileEntry:
        """Size and digest of the file, as manifests record them."""
        if isinstance(self.content, bytes):
            digest = hashlib.sha256(self.content).hexdigest()
            return FileEntry(path=self.path, size_bytes=len(self.content), sha256=digest)
        return FileEntry(path=self.path, size_bytes=self.content.stat().st_size, sha256=sha256_of(self.content))


@dataclass(frozen=True, kw_only=True)
class PackagedLink:
    """A symbolic link of the package and the name, in the same folder, that it leads to."""

    path: str
    target: str


BUILD_IDS: Final = ".build-id"


def debug_file(library: Path, symbols: Path) -> PackagedFile:
    """Return a library's symbols under `.build-id/ab/cdef.debug`, where gdb, lldb, perf and debuginfod look."""
    shipped, found = build_id_of(library), build_id_of(symbols)
    if not found or shipped != found:
        why = f"build-id {found or 'none'}; the library that ships has {shipped or 'none'}"
        hint = "build the target again: library and symbols must come from one link"
        what = "these are the symbols of another library"
        raise PackageError("symbols-differ", what, where=str(symbols), why=why, hint=hint)
    return PackagedFile(path=f"{BUILD_IDS}/{found[:2]}/{found[2:]}.debug", content=symbols)


def check_paths(paths: Iterable[str]) -> None:
    """Refuse paths that leave the package or occur twice."""
    seen: set[str] = set()
    for path in paths:
        if not is_plain_path(path) or path in seen:
            why = "it exists twice" if path in seen else "it is not a plain path inside the package"
            raise PackageError("bad-package-path", "a file cannot be packaged", where=path, why=why)
        seen.add(path)


def write_contents(folder: Path, files: Iterable[PackagedFile], links: Iterable[PackagedLink]) -> None:
    """Write files and links into an empty folder; the modes do not depend on the umask."""
    for file in files:
        destination = folder / file.path
        destination.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(file.content, bytes):
            destination.write_bytes(file.content)
        else:
            shutil.copyfile(file.content, destination)
        destination.chmod(file.mode)
    for link in links:
        (folder / link.path).symlink_to(link.target)
    for inner in folder.rglob("*/"):
        inner.chmod(PROGRAM_MODE)


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` of all files in a folder into it; nothing else may be written there afterwards."""
    written = (path for path in folder.rglob("*") if path.is_file())
    entries = [PackagedFile(path=path.relative_to(folder).as_posix(), content=path).entry for path in written]
    (folder / SUMS).write_text(checksums_text(entries), encoding="utf-8", newline="\n")
    (folder / SUMS).chmod(FILE_MODE)


EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold; given to all members."""
UNIX: Final = 3
REGULAR: Final = 0o100000
LINK_MODE: Final = 0o120777
"""A symbolic link, whose content is where it leads: what `ditto`, `unzip` and Swift's package manager restore."""
JAR_MANIFEST: Final = "META-INF/MANIFEST.MF"
"""`JarInputStream` finds it as the first or second member only."""
LEVEL: Final = 9


def write_zip(destination: Path, files: Iterable[PackagedFile], links: Iterable[PackagedLink] = ()) -> None:
    """Write files and links as a zip archive that appears at `destination` when it is complete.

    Members are deflated, in order, with no time, owner or folder. The bytes also depend on Python's zlib.
    """
    with new_archive(destination) as file:
        fill_zip(file, files, links)


def fill_zip(file: IO[bytes], files: Iterable[PackagedFile], links: Iterable[PackagedLink] = ()) -> None:
    """Write the archive that `write_zip` writes into an open file."""
    members: list[PackagedFile | PackagedLink] = [*files, *links]
    ordered = sorted(members, key=lambda each: (each.path != JAR_MANIFEST, each.path))
    check_paths(each.path for each in ordered)
    with zipfile.ZipFile(file, "w") as archive:
        for each in ordered:
            _zips_add(archive, each)


def _zips_add(archive: zipfile.ZipFile, each: PackagedFile | PackagedLink) -> None:
    entry = zipfile.ZipInfo(each.path, date_time=EPOCH)
    entry.create_system = UNIX
    if isinstance(each, PackagedLink):
        entry.external_attr = LINK_MODE << 16
        archive.writestr(entry, each.target, compress_type=zipfile.ZIP_STORED)
        return
    entry.external_attr = (REGULAR | each.mode) << 16
    data = each.content if isinstance(each.content, bytes) else each.content.read_bytes()
    archive.writestr(entry, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)


def write_in_place(destination: Path, files: Sequence[PackagedFile], owned: str) -> None:
    """Write files into a folder, those that differ; nothing else stays below the inner folder `owned`."""
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
    with locked(destination), storage_errors(destination):
        _remove_others(destination, owned, {file.path for file in files})
        for file in files:
            _bring(destination / file.path, file)


def _remove_others(destination: Path, owned: str, wanted: set[str]) -> None:
    """Remove files that are not wanted any more, links, and folders that are empty then."""
    for path in sorted((destination / owned).rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.is_symlink() or path.relative_to(destination).as_posix() not in wanted:
            path.unlink()


def _bring(path: Path, file: PackagedFile) -> None:
    entry = file.entry
    if path.is_file() and PackagedFile(path=file.path, content=path).entry == entry:
        return
    if isinstance(file.content, bytes):
        write_atomically(path, file.content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    try:
        shutil.copyfile(file.content, temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
