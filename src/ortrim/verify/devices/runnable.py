"""What runs a target's programs: this machine, an emulator on it, a machine elsewhere, or a farm's phone."""

import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ortrim.core.targets import OperatingSystem, Target
from ortrim.tools.emulators import EMULATIONS, Emulation

HOST_MACHINES: Final[Mapping[str, str]] = MappingProxyType({
    "x86_64": "x64", "aarch64": "arm64", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
})  # fmt: skip
"""The kernel's word for an architecture -> that of `core.targets`."""
FARM_FORMS: Final = ("firebase:MODEL-VERSION", "devicefarm:PROJECT/POOL", "browserstack:DEVICE-VERSION")


def runs_here(target: Target) -> bool:
    """Whether this machine's own processor runs programs for a target."""
    return target.system is OperatingSystem.LINUX and HOST_MACHINES.get(platform.machine()) == target.architecture.value


def emulation_of(target: Target) -> Emulation | None:
    """Return what emulates a target's machine with a Linux around it, None when nothing here does."""
    return EMULATIONS.get(target.architecture.value) if target.system is OperatingSystem.LINUX else None


def kinds_for(target: Target, cpu: str = "") -> str:
    """Say which kinds of device run a target's programs, those compiled for `cpu` and better when that is named."""
    if target.system is OperatingSystem.ANDROID:
        return f"adb, or a device farm's: {', '.join(FARM_FORMS)}"
    here = ("host",) if runs_here(target) else ()
    return ", ".join((*here, *_emulators(emulation_of(target), cpu), "adb")) + " or ssh:[USER@]HOST[:PORT]"


def _emulators(emulation: Emulation | None, cpu: str) -> tuple[str, ...]:
    if emulation is None:
        return ()
    kinds = (("qemu-user", emulation.user_cpus), ("qemu-system", emulation.system_cpus))
    return tuple(kind for kind, offered in kinds if emulation.having(cpu, offered))
