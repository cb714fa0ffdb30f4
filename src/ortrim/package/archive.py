"""Archives whose bytes depend on nothing but what is in them."""

import gzip
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from ortrim.errors import PackageError, StorageError
from ortrim.storage.files import disk_full, ran_out_of_space

SOURCE_DATE_EPOCH: Final = 315_532_800
"""1 January 1980, the earliest time that every archive format can hold; given to all files of all packages."""


def write_archive(folder: Path, destination: Path) -> None:
    """Write `folder` as a `tar.gz` whose only top-level entry is its name; `destination` appears when it is complete.

    Entries are in order of their paths and carry no owner and no time of their own; files are 0644, or 0755 when
    executable. Raises `PackageError` (`not-archivable`) for anything but files, folders and links that stay inside,
    and `StorageError` (`archive-not-written`).
    """
    with new_archive(destination) as file:
        _write(folder, file)


@contextmanager
def new_archive(destination: Path) -> Iterator[IO[bytes]]:
    """Open an archive for writing; `destination` appears when it is complete, and nothing is left when it is not.

    Raises `StorageError` (`archive-not-written`, `disk-full`).
    """
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
