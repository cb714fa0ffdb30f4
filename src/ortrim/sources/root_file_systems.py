"""Root file systems made of Debian packages: under container images that no registry gives, and of emulated machines.

The packages are those of apt's signed index when they were fetched; their digests are written beside the root and into
the image's file, so that another version is another image.
"""

import hashlib
import io
import re
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from ortrim.base import archives
from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.files import storage_errors
from ortrim.base.tools import SUITE, Emulation, machine_folder
from ortrim.errors import SourcesError, StorageError
from ortrim.sources import debian
from ortrim.sources.debian import fetch_packages

ALIASES: Final = ("bin", "lib", "lib64", "sbin")  # names at the top that lead into `usr`
EMPTY_FOLDERS: Final = ("dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "var/tmp")
ACCOUNTS: Final = (("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("etc/group", "root:x:0:\n"))
PYTHON: Final = re.compile(r"usr/bin/python3\.\d+")
MAXIMUM_BYTES: Final = 4 << 30
SOURCE_DATE: Final = 315532800  # the time of every file: the first of 1980, as in builds


class RootWriter:
    """Writes a root file system as a tar file, the same bytes for the same packages, unpacking nothing."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._names: set[str] = set()
        for alias in ALIASES:
            self._add_folder(f"usr/{alias}")
            self._add_link(alias, f"usr/{alias}")

    def add_package(self, data: Path, package: str) -> None:
        """Add the files of a package's `data.tar`."""
        try:
            with (
                archives.bounded_stream(data, MAXIMUM_BYTES) as stream,
                tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:") as source,
            ):
                for member in source:
                    self._add(member, source, package)
        except archives.DAMAGE as error:
            what = "is damaged or cut short"
            raise StorageError("corrupt-archive", what, where=package, why=str(error)) from error

    def complete(self) -> None:
        """Add what packages bring by scripts of their own, which are not run."""
        for name in EMPTY_FOLDERS:
            self._add_folder(name)
        for name, text in ACCOUNTS:
            member = _plain(tarfile.TarInfo(name), 0o644)
            member.size = len(text)
            self._archive.addfile(member, io.BytesIO(text.encode()))
        pythons = sorted(name for name in self._names if PYTHON.fullmatch(name))
        if pythons and "usr/bin/python3" not in self._names:
            self._add_link("usr/bin/python3", PurePosixPath(pythons[0]).name)

    def _add(self, member: tarfile.TarInfo, source: tarfile.TarFile, package: str) -> None:
        path = PurePosixPath(member.name)
        known = member.isfile() or member.isdir() or member.issym() or member.islnk()
        if path.is_absolute() or ".." in path.parts or not known:
            raise archives.unsafe_member(
                package, member.name, "its name is absolute or contains '..', or it is a device"
            )
        name = str(path)
        if name in self._names or not path.parts:
            return
        self._names.add(name)
        member.name, member.pax_headers = name, {}
        if member.islnk():
            member.linkname = str(PurePosixPath(member.linkname))
        content = source.extractfile(member) if member.isreg() else None
        self._archive.addfile(_plain(member, member.mode & 0o755), content)

    def _add_folder(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            member = _plain(tarfile.TarInfo(name), 0o1777 if name in ("tmp", "var/tmp") else 0o755)
            member.type = tarfile.DIRTYPE
            self._archive.addfile(member)

    def _add_link(self, name: str, target: str) -> None:
        self._names.add(name)
        member = _plain(tarfile.TarInfo(name), 0o777)
        member.type, member.linkname = tarfile.SYMTYPE, target
        self._archive.addfile(member)


def _plain(member: tarfile.TarInfo, mode: int) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime, member.mode = SOURCE_DATE, mode
    return member


ROOT_FILE: Final = "root.tar"


@dataclass(frozen=True, kw_only=True)
class DebianRoot:
    """A root file system: the tar file that holds it and the packages that it was made of."""

    archive: Path
    packages: tuple[debian.DebianPackage, ...]


def debian_root(request: debian.PackageRequest, announce: Callable[[str], None] = lambda _: None) -> DebianRoot:
    """Return a root file system of packages, through apt when it is not in the cache, with `/usr/bin/python3`."""
    names = hashlib.sha256(" ".join(request.names).encode()).hexdigest()[:12]
    folder = cache_folder("roots") / f"debian-{request.suite}-{request.architecture}-{names}"
    cached_folder(folder, lambda temporary: _fill(temporary, request, announce), large=True)
    packages = debian.read_packages(folder, code="root-damaged", what="the root file system of an image")
    return DebianRoot(archive=folder / ROOT_FILE, packages=packages)


def _fill(folder: Path, request: debian.PackageRequest, announce: Callable[[str], None]) -> None:
    announce(f"fetch Debian's {', '.join(request.names)} for {request.architecture}")
    packages: list[debian.DebianPackage] = []
    with storage_errors(folder), tarfile.open(folder / ROOT_FILE, "w", format=tarfile.PAX_FORMAT) as archive:
        root = RootWriter(archive)

        def accept(package: debian.DebianPackage, file: Path) -> None:
            packages.append(package)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".package-") as name:
                data = Path(name) / "data.tar"
                debian.write_data_archive(file, data)
                root.add_package(data, package.name)

        fetch_packages(request, accept)
        root.complete()
    debian.write_packages(folder, packages)


KERNEL_PACKAGE: Final = "linux-image-cloud-arm64"
KERNEL_PATTERN: Final = r"linux-image-[0-9][a-z0-9.+-]*-cloud-arm64"
SHELL_PACKAGE: Final = "busybox-static"
LIBRARY_PACKAGES: Final = ("libc6", "libgcc-s1", "libstdc++6", "musl")
"""Both C libraries, and what the official library needs besides."""
KERNEL_HOST: Final = "arm64"  # Debian's word for the architecture whose kernel all machines run


@dataclass(frozen=True, kw_only=True)
class MachineParts:
    """A folder of parts and the packages that they came from; `kernel` and `shell` are there for `arm64` alone."""

    root: Path
    kernel: Path
    shell: Path
    packages: tuple[debian.DebianPackage, ...]


def machine_parts(emulation: Emulation, announce: Callable[[str], None] = lambda _: None) -> MachineParts:
    """Return a machine's parts, fetched through apt when they are not in the cache."""
    folder = machine_folder(emulation.debian)
    cached_folder(folder, lambda temporary: _machines_fill(temporary, emulation, announce), large=True)
    return MachineParts(
        root=folder / "root",
        kernel=folder / "kernel",
        shell=folder / "shell",
        packages=debian.read_packages(folder, code="machine-damaged", what="the folder of a machine's parts"),
    )


def _machines_fill(folder: Path, emulation: Emulation, announce: Callable[[str], None]) -> None:
    has_kernel = emulation.debian == KERNEL_HOST
    names = (*LIBRARY_PACKAGES, *((KERNEL_PACKAGE, SHELL_PACKAGE) if has_kernel else ()))
    announce(f"fetch Debian's {', '.join(names)} for {emulation.debian}")
    packages: list[debian.DebianPackage] = []

    def accept(package: debian.DebianPackage, file: Path) -> None:
        packages.append(package)
        _take(package, file, folder, emulation)

    depended = {KERNEL_PACKAGE: KERNEL_PATTERN}
    fetch_packages(
        debian.PackageRequest(names=names, suite=SUITE, architecture=emulation.debian, depended=depended), accept
    )
    with storage_errors(folder):
        _link(folder, emulation)
    debian.write_packages(folder, packages)


def _take(package: debian.DebianPackage, file: Path, folder: Path, emulation: Emulation) -> None:
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".package-") as name:
        archive, content = Path(name) / "data.tar", Path(name) / "content"
        debian.write_data_archive(file, archive)
        if package.name in LIBRARY_PACKAGES:
            places = [f"usr/lib/{place}" for place in emulation.library_folders]
            archives.unpack(archive, content, members={place: place for place in places})
            for place in places:
                target = folder / "root" / place
                target.mkdir(parents=True, exist_ok=True)
                for library in sorted((content / place).glob("*.so*")):
                    library.rename(target / library.name)
        elif package.name == SHELL_PACKAGE:
            archives.unpack(archive, content, members={"usr/bin/busybox": "busybox", "bin/busybox": "busybox"})
            (content / "busybox").rename(folder / "shell")
        else:
            archives.unpack(archive, content, members={"boot": ""})
            kernel = min(content.glob("vmlinuz-*"), default=None)
            if kernel is None:
                raise SourcesError("machine-damaged", "the kernel's package holds no kernel", where=package.name)
            kernel.rename(folder / "kernel")


def _link(folder: Path, emulation: Emulation) -> None:
    """Have the linkers found where programs look for them: `/lib/NAME`, `/usr/lib/NAME`; musl's is its `libc.so`."""
    (folder / "root" / "lib").symlink_to("usr/lib")
    for name, loader in zip(emulation.library_folders, emulation.loaders, strict=True):
        files = (f"{name}/{file}" for file in (loader, "libc.so"))
        inside = folder / "root" / "usr" / "lib"
        found = next((file for file in files if (inside / file).is_file()), None)
        if found:
            (inside / loader).symlink_to(found)


def zip_as_tar(archive: Path, destination: Path) -> None:
    """Write the entries of a zip below its one top folder into a tar file, the same bytes for the same zip."""
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".zip-") as name:
        content = Path(name) / "content"
        archives.unpack(archive, content, strip=1, zip_links=True)
        with storage_errors(destination), tarfile.open(destination, "w") as target:
            for path in sorted(content.rglob("*")):
                inside = path.relative_to(content).as_posix()
                target.add(path, inside, recursive=False, filter=lambda member: _plain(member, member.mode & 0o755))
