"""Machines that are emulated here: what emulates them, as which processors, and where their parts are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.storage.cache import cache_folder
from ortrim.tools.base import Tool

SUITE: Final = "trixie"
"""The Debian release of the kernel and the libraries: its glibc, 2.41, loads what is built for any older one."""
PACKAGES_FILE: Final = "packages.json"


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """One architecture as it is emulated.

    `machine` is the kernel's word for it, `debian` Debian's; `library_folders` are those of its libraries below
    `/usr/lib`, glibc's first, and `loaders` the programs that link at start, there too. `user_cpus` and `system_cpus`
    are qemu's names of the processors offered, the default first; without any, the whole machine is not emulated.
    """

    machine: str
    debian: str
    library_folders: tuple[str, ...]
    loaders: tuple[str, ...]
    user: Tool
    user_cpus: tuple[str, ...]
    system_cpus: tuple[str, ...] = ()


QEMU_SYSTEM: Final = Tool(name="qemu-system-aarch64", package="qemu-system-arm", minimum=(7,))
"""Emulates the whole machine; its 64-bit kernel runs 32-bit programs too."""
SYSTEM_CPUS: Final = ("cortex-a53", "cortex-a72", "cortex-a76")
EMULATIONS: Final[Mapping[str, Emulation]] = MappingProxyType(
    {
        "arm64": Emulation(
            machine="aarch64",
            debian="arm64",
            library_folders=("aarch64-linux-gnu", "aarch64-linux-musl"),
            loaders=("ld-linux-aarch64.so.1", "ld-musl-aarch64.so.1"),
            user=Tool(name="qemu-aarch64-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("cortex-a53", "cortex-a72", "cortex-a76"),
            system_cpus=SYSTEM_CPUS,
        ),
        "arm": Emulation(
            machine="armv7l",
            debian="armhf",
            library_folders=("arm-linux-gnueabihf", "arm-linux-musleabihf"),
            loaders=("ld-linux-armhf.so.3", "ld-musl-armhf.so.1"),
            user=Tool(name="qemu-arm-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15"),
            system_cpus=SYSTEM_CPUS,
        ),
        "riscv64": Emulation(
            machine="riscv64",
            debian="riscv64",
            library_folders=("riscv64-linux-gnu", "riscv64-linux-musl"),
            loaders=("ld-linux-riscv64-lp64d.so.1", "ld-musl-riscv64.so.1"),
            user=Tool(name="qemu-riscv64-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("rv64", "sifive-u54"),
        ),
    }
)
"""By the architecture's name in `core.targets`."""


def machine_folder(debian: str) -> Path:
    """Return where the parts of a machine are kept, by Debian's word for its architecture; it need not exist."""
    return cache_folder("machines") / f"debian-{SUITE}-{debian}"
