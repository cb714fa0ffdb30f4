"""Zip archives whose bytes depend on nothing but what is in them: AARs, jars, frameworks, and zips of libraries."""

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

from ortrim.package.archive import new_archive
from ortrim.package.contents import PackagedFile, PackagedLink, check_paths

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

    Members are deflated, in order of their paths, with no time, owner or folder of their own. The bytes also depend on
    the zlib that Python is linked with. Raises `PackageError` (`bad-package-path`) and `StorageError`
    (`archive-not-written`).
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
            _add(archive, each)


def _add(archive: zipfile.ZipFile, each: PackagedFile | PackagedLink) -> None:
    entry = zipfile.ZipInfo(each.path, date_time=EPOCH)
    entry.create_system = UNIX
    if isinstance(each, PackagedLink):
        entry.external_attr = LINK_MODE << 16
        archive.writestr(entry, each.target, compress_type=zipfile.ZIP_STORED)
        return
    entry.external_attr = (REGULAR | each.mode) << 16
    data = each.content if isinstance(each.content, bytes) else each.content.read_bytes()
    archive.writestr(entry, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
