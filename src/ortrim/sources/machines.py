"""The parts of emulated machines: a kernel, a shell, and the libraries that programs for them need.

They serve verification and enter no artifact, so they are not pinned: each is the version that apt's signed index had
when it was fetched, which is written down beside it with its SHA-256.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError
from ortrim.sources.apt_packages import DebianPackage, PackageRequest, fetch_packages
from ortrim.sources.debian_package import write_data_archive
from ortrim.sources.package_record import read_packages, write_packages
from ortrim.storage.files import storage_errors
from ortrim.storage.records import cached_folder
from ortrim.storage.unpack import unpack
from ortrim.tools.emulators import SUITE, Emulation, machine_folder

KERNEL_PACKAGE: Final = "linux-image-cloud-arm64"
KERNEL_PATTERN: Final = r"linux-image-[0-9][a-z0-9.+-]*-cloud-arm64"
SHELL_PACKAGE: Final = "busybox-static"
LIBRARY_PACKAGES: Final = ("libc6", "libgcc-s1", "libstdc++6", "musl")
"""Both C libraries, and what the official library needs besides."""
KERNEL_HOST: Final = "arm64"
"""Debian's word for the architecture whose kernel all machines run."""


@dataclass(frozen=True, kw_only=True)
class MachineParts:
    """A folder of parts and the packages that they came from.

    `root` is a folder with `usr/lib`, and `lib` that leads there. `kernel` and `shell` are there for `arm64` alone.
    """

    root: Path
    kernel: Path
    shell: Path
    packages: tuple[DebianPackage, ...]


def machine_parts(emulation: Emulation, announce: Callable[[str], None] = lambda _: None) -> MachineParts:
    """Return a machine's parts, fetched through apt when they are not in the cache.

    Raises what `fetch_packages` raises, and `SourcesError` `machine-damaged` when the cache holds something else.
    """
    folder = machine_folder(emulation.debian)
    cached_folder(folder, lambda temporary: _fill(temporary, emulation, announce), large=True)
    return MachineParts(
        root=folder / "root",
        kernel=folder / "kernel",
        shell=folder / "shell",
        packages=read_packages(folder, reference="machine-damaged", what="the folder of a machine's parts"),
    )


def _fill(folder: Path, emulation: Emulation, announce: Callable[[str], None]) -> None:
    has_kernel = emulation.debian == KERNEL_HOST
    names = (*LIBRARY_PACKAGES, *((KERNEL_PACKAGE, SHELL_PACKAGE) if has_kernel else ()))
    announce(f"fetch Debian's {', '.join(names)} for {emulation.debian}")
    packages: list[DebianPackage] = []

    def accept(package: DebianPackage, file: Path) -> None:
        packages.append(package)
        _take(package, file, folder, emulation)

    depended = {KERNEL_PACKAGE: KERNEL_PATTERN}
    fetch_packages(PackageRequest(names=names, suite=SUITE, architecture=emulation.debian, depended=depended), accept)
    with storage_errors(folder):
        _link(folder, emulation)
    write_packages(folder, packages)


def _take(package: DebianPackage, file: Path, folder: Path, emulation: Emulation) -> None:
    """Keep what is needed of one package."""
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".package-") as name:
        archive, content = Path(name) / "data.tar", Path(name) / "content"
        write_data_archive(file, archive)
        if package.name in LIBRARY_PACKAGES:
            places = [f"usr/lib/{place}" for place in emulation.library_folders]
            unpack(archive, content, members={place: place for place in places})
            for place in places:
                _merge(content / place, folder / "root" / place)
        elif package.name == SHELL_PACKAGE:
            unpack(archive, content, members={"usr/bin/busybox": "busybox", "bin/busybox": "busybox"})
            (content / "busybox").rename(folder / "shell")
        else:
            unpack(archive, content, members={"boot": ""})
            _kernel(content, package).rename(folder / "kernel")


def _kernel(content: Path, package: DebianPackage) -> Path:
    for kernel in sorted(content.glob("vmlinuz-*")):
        return kernel
    raise SourcesError("machine-damaged", "the kernel's package holds no kernel", where=package.name)


def _merge(libraries: Path, target: Path) -> None:
    """Add shared libraries to the machine's."""
    target.mkdir(parents=True, exist_ok=True)
    for library in sorted(libraries.glob("*.so*")):
        library.rename(target / library.name)


def _link(folder: Path, emulation: Emulation) -> None:
    """Have the linkers found where programs look for them: `/lib/NAME`, `/usr/lib/NAME` with one `/usr`.

    musl's linker is its C library, `libc.so`.
    """
    (folder / "root" / "lib").symlink_to("usr/lib")
    for name, loader in zip(emulation.library_folders, emulation.loaders, strict=True):
        files = (f"{name}/{file}" for file in (loader, "libc.so"))
        inside = folder / "root" / "usr" / "lib"
        found = next((file for file in files if (inside / file).is_file()), None)
        if found:
            (inside / loader).symlink_to(found)
