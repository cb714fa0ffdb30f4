"""Zip archives whose bytes depend on nothing but what is in them: AARs, jars, and zips of libraries."""

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

from ortrim.package.archive import new_archive
from ortrim.package.contents import PackagedFile, check_paths

EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold; given to all members."""
UNIX: Final = 3
JAR_MANIFEST: Final = "META-INF/MANIFEST.MF"
"""`JarInputStream` finds it as the first or second member only."""
LEVEL: Final = 9


def write_zip(destination: Path, files: Iterable[PackagedFile]) -> None:
    """Write files as a zip archive that appears at `destination` when it is complete.

    Members are deflated, in order of their paths, with no time, owner or folder of their own. The bytes also depend on
    the zlib that Python is linked with. Raises `PackageError` (`bad-package-path`) and `StorageError`
    (`archive-not-written`).
    """
    with new_archive(destination) as file:
        fill_zip(file, files)


def fill_zip(file: IO[bytes], files: Iterable[PackagedFile]) -> None:
    """Write the archive that `write_zip` writes into an open file."""
    ordered = sorted(files, key=lambda each: (each.path != JAR_MANIFEST, each.path))
    check_paths(each.path for each in ordered)
    with zipfile.ZipFile(file, "w") as archive:
        for each in ordered:
            _add(archive, each)


def _add(archive: zipfile.ZipFile, file: PackagedFile) -> None:
    entry = zipfile.ZipInfo(file.path, date_time=EPOCH)
    entry.create_system, entry.external_attr = UNIX, (0o100000 | file.mode) << 16
    data = file.content if isinstance(file.content, bytes) else file.content.read_bytes()
    archive.writestr(entry, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
