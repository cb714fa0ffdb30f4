"""Machines that are emulated here: what emulates them, as which processors, and where their parts are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.base.cache import cache_folder
from ortrim.base.tools import Tool

SUITE: Final = "trixie"
"""The Debian release of the kernel and the libraries: its glibc, 2.41, loads what is built for any older one."""


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """One architecture as it is emulated.

    `machine` is the kernel's word, `debian` Debian's; `library_folders` lie below `/usr/lib`, glibc's first, with the
    `loaders`. `user_cpus` and `system_cpus` are qemu's names, the default first; without any, the whole machine is not
    emulated. `defaults` are those to verify on when no device is named. `baselines` has, for each least processor of a
    buildspec, the emulated ones with all its instructions.
    """

    machine: str
    debian: str
    library_folders: tuple[str, ...]
    loaders: tuple[str, ...]
    user: Tool
    user_cpus: tuple[str, ...]
    system_cpus: tuple[str, ...] = ()
    defaults: tuple[str, ...]
    baselines: Mapping[str, tuple[str, ...]]

    def having(self, cpu: str, offered: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the `offered` processors with all instructions of `cpu`; all of them when that is empty."""
        return tuple(name for name in offered if not cpu or name in self.baselines[cpu])


QEMU_SYSTEM: Final = Tool(name="qemu-system-aarch64", package="qemu-system-arm", minimum=(7,))
"""Emulates the whole machine; its 64-bit kernel runs 32-bit programs too."""
X64_USER: Final = Tool(name="qemu-x86_64-static", package="qemu-user-static", minimum=(7, 2))
"""Emulates a processor with AVX2 and without AVX-512, for converting; before 7.2 it has no AVX."""
SYSTEM_CPUS: Final = ("cortex-a53", "cortex-a72", "cortex-a76")
# What the tables of baselines say is tried, pair by pair, by tests/integration/test_cpu_baselines.py with qemu 7.2.
DOT_PRODUCT: Final = ("cortex-a76",)
ARM_WITH_DIVISION: Final = ("cortex-a7", "cortex-a15", "max", *SYSTEM_CPUS)
ARM64_BASELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    **dict.fromkeys(("cortex-a35", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73"), SYSTEM_CPUS),
    **dict.fromkeys(("cortex-a55", "cortex-a75", "cortex-a76", "cortex-a78", "neoverse-n1"), DOT_PRODUCT),
})  # fmt: skip
ARM_BASELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    **dict.fromkeys(("cortex-a7", "cortex-a15", "cortex-a17"), ARM_WITH_DIVISION),
    "cortex-a8": ("cortex-a8", "cortex-a9", *ARM_WITH_DIVISION),
    "cortex-a9": ("cortex-a9", *ARM_WITH_DIVISION),
    **dict.fromkeys(("cortex-a53", "cortex-a72"), ("max", *SYSTEM_CPUS)),
})  # fmt: skip
RISCV64_BASELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "sifive-u74": ("rv64", "sifive-u54"), "spacemit-x60": (),
})  # fmt: skip
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
            defaults=("cortex-a53", "cortex-a76"),
            baselines=ARM64_BASELINES,
        ),
        "arm": Emulation(
            machine="armv7l",
            debian="armhf",
            library_folders=("arm-linux-gnueabihf", "arm-linux-musleabihf"),
            loaders=("ld-linux-armhf.so.3", "ld-musl-armhf.so.1"),
            user=Tool(name="qemu-arm-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15", "max"),
            system_cpus=SYSTEM_CPUS,
            defaults=("cortex-a7", "cortex-a53"),
            baselines=ARM_BASELINES,
        ),
        "riscv64": Emulation(
            machine="riscv64",
            debian="riscv64",
            library_folders=("riscv64-linux-gnu", "riscv64-linux-musl"),
            loaders=("ld-linux-riscv64-lp64d.so.1", "ld-musl-riscv64.so.1"),
            user=Tool(name="qemu-riscv64-static", package="qemu-user-static", minimum=(7,)),
            user_cpus=("rv64", "sifive-u54"),
            defaults=("rv64",),
            baselines=RISCV64_BASELINES,
        ),
    }
)
"""By the architecture's name in `spec.targets`."""


def machine_folder(debian: str) -> Path:
    """Return where the parts of a machine are kept, by Debian's word for its architecture; it need not exist."""
    return cache_folder("machines") / f"debian-{SUITE}-{debian}"
