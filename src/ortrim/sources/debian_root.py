"""A small root file system made of Debian packages: what a container image rests on where no registry gives one.

The packages are whatever versions apt's signed index had when they were fetched; these and their digests are written
beside the root and into the image's file, so that another version is another image.
"""

import hashlib
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.sources.apt_packages import DebianPackage, PackageRequest, fetch_packages
from ortrim.sources.debian_package import write_data_archive
from ortrim.sources.package_record import read_packages, write_packages
from ortrim.sources.root_writer import RootWriter
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors
from ortrim.storage.records import cached_folder

ROOT_FILE: Final = "root.tar"


@dataclass(frozen=True, kw_only=True)
class DebianRoot:
    """A root file system: the tar file that holds it and the packages that it was made of."""

    archive: Path
    packages: tuple[DebianPackage, ...]


def debian_root(request: PackageRequest, announce: Callable[[str], None] = lambda _: None) -> DebianRoot:
    """Return a root file system of packages, fetched through apt and laid out when it is not in the cache.

    `/usr/bin/python3` leads to the Python among the packages. Raises what `fetch_packages` raises, and `SourcesError`
    `root-damaged` when the cache holds something else.
    """
    names = hashlib.sha256(" ".join(request.names).encode()).hexdigest()[:12]
    folder = cache_folder("roots") / f"debian-{request.suite}-{request.architecture}-{names}"
    cached_folder(folder, lambda temporary: _fill(temporary, request, announce), large=True)
    packages = read_packages(folder, reference="root-damaged", what="the root file system of an image")
    return DebianRoot(archive=folder / ROOT_FILE, packages=packages)


def _fill(folder: Path, request: PackageRequest, announce: Callable[[str], None]) -> None:
    announce(f"fetch Debian's {', '.join(request.names)} for {request.architecture}")
    packages: list[DebianPackage] = []
    with storage_errors(folder), tarfile.open(folder / ROOT_FILE, "w", format=tarfile.PAX_FORMAT) as archive:
        root = RootWriter(archive)

        def accept(package: DebianPackage, file: Path) -> None:
            packages.append(package)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".package-") as name:
                data = Path(name) / "data.tar"
                write_data_archive(file, data)
                root.add_package(data, package.name)

        fetch_packages(request, accept)
        root.complete()
    write_packages(folder, packages)
