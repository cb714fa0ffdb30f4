"""A root folder like Android's, from Debian trixie's packages: adbd, mksh as the shell and toybox, fetched by apt."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages

SUITE: Final = "trixie"
PACKAGES: Final = (
    "adbd", "mksh", "toybox",
    "android-libbase", "android-libboringssl", "android-libcutils", "android-liblog", "libbrotli1", "libbsd0", "libc6",
    "libcap2", "libcrypt1", "libgcc-s1", "liblz4-1", "libmd0", "libprotobuf32t64", "libstdc++6", "libsystemd0",
    "libxxhash0", "libzstd1", "zlib1g",
)  # fmt: skip
"""The programs, then all that they need; the C++ library also serves the official runtime."""
ARCHITECTURES: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf"}
LAYOUT: Final = "4"
MOUNT_POINTS: Final = ("data/local/tmp", "dev", "locked", "proc", "shims", "tmp")
LINKS: Final = {"lib": "usr/lib", "lib64": "usr/lib64", "bin": "system/bin"}
TOYBOX: Final = (
    "basename", "cat", "chmod", "cp", "cut", "date", "dd", "df", "dirname", "echo", "env", "false", "find", "getconf",
    "grep", "head", "id", "kill", "ls", "mkdir", "mv", "nproc", "printf", "ps", "readlink", "rm", "sed", "sha1sum",
    "sha256sum", "sleep", "sort", "stat", "tail", "tar", "taskset", "touch", "true", "uname", "wc", "xargs",
)  # fmt: skip


def android_root(machine: str = "") -> Path:
    """Return the root for a machine in the kernel's words, by default this one; made when the cache has none."""
    architecture = ARCHITECTURES[machine or platform.machine()]
    folder = cache_folder("test-roots") / f"{SUITE}-adbd-{architecture}-{LAYOUT}"
    publish_folder(folder, lambda temporary: _make(temporary, architecture))
    return folder / "root"


def _make(folder: Path, architecture: str) -> None:
    root = folder / "root"
    root.mkdir()
    came: list[dict[str, Any]] = []

    def accept(package: DebianPackage, file: Path) -> None:
        came.append(asdict(package))
        done = run(("dpkg-deb", "--extract", file, root))
        assert done.returncode == 0, done.stderr

    fetch_packages(PackageRequest(names=PACKAGES, suite=SUITE, architecture=architecture), accept)
    (folder / "packages.json").write_text(json.dumps(came, indent=1))
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    _programs(root / "system" / "bin")


def _programs(folder: Path) -> None:
    """Put the shell and toybox's commands where Android has them."""
    folder.mkdir(parents=True)
    (folder / "sh").symlink_to("/usr/bin/mksh-static")
    for name in TOYBOX:
        (folder / name).symlink_to("/usr/bin/toybox")
