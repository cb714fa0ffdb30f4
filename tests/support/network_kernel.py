"""Debian's arm64 kernels with the modules of a network card under qemu, not built into them, fetched by apt."""

import json
import lzma
import tarfile
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.tools import SUITE
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages, write_data_archive
from ortrim.sources.root_file_systems import KERNEL_HOST, KERNEL_PACKAGE, KERNEL_PATTERN

MODULES: Final = ("failover.ko", "net_failover.ko", "virtio_net.ko")
LAYOUT: Final = "1"
LARGE_PAGES: Final = "linux-image-arm64-16k"
"""A kernel whose pages have 16 KB, as those of Android's newer phones."""
PATTERNS: Final = {KERNEL_PACKAGE: KERNEL_PATTERN, LARGE_PAGES: r"linux-image-[0-9][a-z0-9.+-]*-arm64-16k"}


def network_kernel(package: str = KERNEL_PACKAGE) -> Path:
    """Return a folder with `kernel`, the modules, and `packages.json`: names, versions and digests of the packages."""
    name = "network-kernel" if package == KERNEL_PACKAGE else f"network-{package}"
    folder = cache_folder("test-roots") / f"{SUITE}-{name}-{KERNEL_HOST}-{LAYOUT}"
    publish_folder(folder, lambda temporary: _make(temporary, package))
    return folder


def _make(folder: Path, package: str) -> None:
    came: list[dict[str, Any]] = []

    def accept(found: DebianPackage, file: Path) -> None:
        came.append(asdict(found))
        archive = folder / "data.tar"
        write_data_archive(file, archive)
        with tarfile.open(archive) as content:
            for member in content:
                _take(content, member, folder)
        archive.unlink()

    depended = {package: PATTERNS[package]}
    request = PackageRequest(names=(package,), suite=SUITE, architecture=KERNEL_HOST, depended=depended)
    fetch_packages(request, accept)
    (folder / "packages.json").write_text(json.dumps(came, indent=1))
    assert {path.name for path in folder.iterdir()} >= {"kernel", *MODULES}


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    path = PurePosixPath(member.name)
    file = archive.extractfile(member) if member.isreg() else None
    if file and path.name.startswith("vmlinuz-"):
        (folder / "kernel").write_bytes(file.read())
    elif file and path.stem in MODULES:
        (folder / path.stem).write_bytes(lzma.decompress(file.read()))
