"""The kinds of devices, a row for each: all that is decided by the kind alone, but for what `planning.devices` does.

Nothing else names a kind or asks which one a device is.
"""

import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from ortrim.base.tools import Emulation
from ortrim.buildspec.targets import Target

HOST_MACHINES: Final[Mapping[str, str]] = MappingProxyType({
    "x86_64": "x64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
})  # fmt: skip
"""The kernel's word for an architecture, Darwin's among them -> that of `spec.targets`."""
DARWIN: Final = "Darwin"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind: its name on the command line, and the form of its devices' names.

    `memory` and `time` say what can be measured there, `reach` what stands behind it: this machine, a processor that is
    emulated here, a machine of Linux or Android elsewhere, Apple's tools, or a farm. A device that `is_here` takes this
    machine's processor, as do those whose detail `emulators` fits; one with a `ceiling` has as much memory as its name
    says, one with `cores` keeps runs on chosen ones, and one that `needs_app` runs nothing but apps.
    """

    name: str
    form: str
    reach: Literal["here", "emulated", "remote", "apple", "farm"]
    memory: bool = True
    time: bool = True
    is_here: bool = False
    ceiling: bool = False
    cores: bool = False
    needs_app: bool = False
    emulators: re.Pattern[str] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def listed_form(self) -> str:
        """The form as the list of devices shows it for want of a device."""
        return self.form.replace("[:", ":[")


HOST: Final = Kind(name="host", form="host", reach="here", is_here=True, cores=True)
QEMU_USER: Final = Kind(
    name="qemu-user", form="qemu-user[:CPU]", reach="emulated", memory=False, time=False, is_here=True
)
QEMU_SYSTEM: Final = Kind(
    name="qemu-system", form="qemu-system[:CPU][@MIB]", reach="emulated", time=False, is_here=True, ceiling=True
)
ADB: Final = Kind(name="adb", form="adb[:SERIAL]", reach="remote", cores=True, emulators=re.compile(r"emulator-[0-9]+"))
SSH: Final = Kind(name="ssh", form="ssh:[USER@]HOST[:PORT]", reach="remote", cores=True)
SIMCTL: Final = Kind(name="simctl", form="simctl[:NAME]", reach="apple", memory=False, time=False, is_here=True)
DEVICECTL: Final = Kind(name="devicectl", form="devicectl[:NAME]", reach="apple", needs_app=True)
FIREBASE: Final = Kind(name="firebase", form="firebase:MODEL-VERSION", reach="farm", needs_app=True)
DEVICE_FARM: Final = Kind(name="devicefarm", form="devicefarm:PROJECT/POOL", reach="farm", needs_app=True)
ROWS: Final = (HOST, QEMU_USER, QEMU_SYSTEM, ADB, SSH, SIMCTL, DEVICECTL, FIREBASE, DEVICE_FARM)
KINDS: Final[Mapping[str, Kind]] = MappingProxyType({row.name: row for row in ROWS})
FORMS: Final = ", ".join(row.form for row in ROWS)
FARMS: Final = ", ".join(row.form for row in ROWS if row.reach == "farm")


class DeviceRules(ABC):
    """Which devices run a platform's programs; unless it says otherwise, none that is emulated or used unasked."""

    @abstractmethod
    def runs_here(self, target: Target) -> bool:
        """Whether this machine itself runs programs for a target."""

    def emulation_of(self, _target: Target) -> Emulation | None:
        """Return what emulates a target's machine with a system around it, None when nothing here does."""
        return None

    @abstractmethod
    def kinds_for(self, target: Target, cpu: str = "") -> str:
        """Say which kinds of device run a target's programs, those compiled for `cpu` and better when that is named."""

    def refusal(self, target: Target, kind: Kind) -> str:
        """Say why no device of a kind, an emulator's apart, runs a target's programs here; empty when one may."""
        match kind.reach:
            case "here":
                return "" if self.runs_here(target) else f"this machine does not run programs for {target.identifier}"
            case "remote":
                return ""
            case "apple":
                return f"{kind} runs no programs for {target.identifier}"
            case _:
                return f"a device farm runs apps, which {target.identifier} is not for"

    def default_devices(self, _target: Target, _cpu: str = "") -> tuple[str, ...]:
        """Return the names of the devices on which a target is verified when none is named; see `read_name`."""
        return ()


def has_processor_of(target: Target) -> bool:
    """Whether this machine's processor is of a target's architecture."""
    return HOST_MACHINES.get(platform.machine()) == target.architecture.value


def on_mac_of(target: Target) -> bool:
    """Whether this is a Mac whose processor is of a target's architecture."""
    return platform.system() == DARWIN and has_processor_of(target)
