"""What runs a target's programs: this machine, an emulator on it, a machine or phone elsewhere, or a farm's phone."""

import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ortrim.core.targets import APPLE, Architecture, OperatingSystem, Target
from ortrim.tools.emulators import EMULATIONS, Emulation

HOST_MACHINES: Final[Mapping[str, str]] = MappingProxyType({
    "x86_64": "x64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
})  # fmt: skip
"""The kernel's word for an architecture, Darwin's among them -> that of `core.targets`."""
DARWIN: Final = "Darwin"
SIMULATORS: Final = "ios-simulator-"
"""How the targets begin whose programs run in a Mac's simulator of a phone, and on no phone."""
FARM_FORMS: Final = ("firebase:MODEL-VERSION", "devicefarm:PROJECT/POOL", "browserstack:DEVICE-VERSION")


def runs_here(target: Target) -> bool:
    """Whether this machine itself runs programs for a target, on a Mac those that Rosetta 2 translates among them."""
    if target.system is OperatingSystem.MACOS:
        return _on_mac_of(target) or translated_here(target)
    return target.system is OperatingSystem.LINUX and platform.system() != DARWIN and _same_processor(target)


def translated_here(target: Target) -> bool:
    """Whether this is a Mac with Apple's processor, and a target is for Macs with Intel's."""
    apple = platform.system() == DARWIN and platform.machine() == "arm64"
    return apple and target.system is OperatingSystem.MACOS and target.architecture is Architecture.X64


def is_simulated(target: Target) -> bool:
    """Whether a target's programs run in a simulator of a phone."""
    return target.identifier.startswith(SIMULATORS)


def simulated_here(target: Target) -> bool:
    """Whether this is a Mac whose simulators run programs for a target."""
    return is_simulated(target) and _on_mac_of(target)


def _on_mac_of(target: Target) -> bool:
    return platform.system() == DARWIN and _same_processor(target)


def _same_processor(target: Target) -> bool:
    return HOST_MACHINES.get(platform.machine()) == target.architecture.value


def emulation_of(target: Target) -> Emulation | None:
    """Return what emulates a target's machine with a Linux around it, None when nothing here does."""
    return EMULATIONS.get(target.architecture.value) if target.system is OperatingSystem.LINUX else None


def kinds_for(target: Target, cpu: str = "") -> str:
    """Say which kinds of device run a target's programs, those compiled for `cpu` and better when that is named."""
    if target.system is OperatingSystem.ANDROID:
        return f"adb, or a device farm's: {', '.join(FARM_FORMS)}"
    if target.system in APPLE:
        return _apple_kinds(target)
    here = ("host",) if runs_here(target) else ()
    return ", ".join((*here, *_emulators(emulation_of(target), cpu), "adb")) + " or ssh:[USER@]HOST[:PORT]"


def _apple_kinds(target: Target) -> str:
    if is_simulated(target):
        return "simctl[:NAME], on a Mac with such a processor"
    if target.system is OperatingSystem.MACOS:
        return "the Mac itself: run the same command on one"
    return "devicectl[:NAME], on a Mac"


def _emulators(emulation: Emulation | None, cpu: str) -> tuple[str, ...]:
    if emulation is None:
        return ()
    kinds = (("qemu-user", emulation.user_cpus), ("qemu-system", emulation.system_cpus))
    return tuple(kind for kind, offered in kinds if emulation.having(cpu, offered))
