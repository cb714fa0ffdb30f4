"""Devices by their names on the command line: what a name means, before anything is opened.

- One line of the list of devices.
"""

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn, TypeGuard, get_args

from ortrim.errors import UsageError
from ortrim.spec.targets import APPLE, OperatingSystem, Target
from ortrim.verify.devices.emulators import (
    FARM_FORMS,
    default_emulators,
    emulated_cpu,
    emulated_machine,
    is_simulated,
    kinds_for,
    runs_here,
    simulated_here,
)
from ortrim.verify.devices.qemu_system import DEFAULT_MEMORY_MIB
from ortrim.verify.devices.ssh import require_destination

FarmKind = Literal["firebase", "devicefarm", "browserstack"]
Kind = Literal["host", "qemu-user", "qemu-system", "adb", "ssh", "simctl", "devicectl", FarmKind]

WITH_PORT: Final = re.compile(r"(?:[^@:/]+@)?(?:[^@:/\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")
FARMS: Final = ", ".join(FARM_FORMS)
FORMS: Final = (
    "host, qemu-user[:CPU], qemu-system[:CPU][@MIB], adb[:SERIAL], ssh:[USER@]HOST[:PORT], simctl[:NAME], "
    f"devicectl[:NAME], {FARMS}"
)


@dataclass(frozen=True, kw_only=True)
class DeviceName:
    """A device that is asked for: the processor to emulate, the serial number, or the destination is its `detail`.

    As a string it is the name that the device itself has; `adb` without a serial number gets one when it is opened, as
    `simctl` and `devicectl` without a name get theirs.
    `cores` are those that runs there are kept on, all when it is empty.
    """

    kind: Kind
    detail: str = ""
    memory_mib: int = DEFAULT_MEMORY_MIB
    cores: tuple[int, ...] = ()

    def __str__(self) -> str:
        ceiling = "" if self.memory_mib == DEFAULT_MEMORY_MIB else f"@{self.memory_mib}"
        return f"{self.kind}:{self.detail}{ceiling}" if self.detail else self.kind

    @property
    def takes_cores(self) -> bool:
        """Whether runs there can be kept on chosen cores: an emulator has no cores of its own, a farm no such wish."""
        return self.kind in {"host", "adb", "ssh"}

    def on(self, cores: tuple[int, ...]) -> "DeviceName":
        """Return the same device, its runs kept on `cores` if it takes any."""
        return replace(self, cores=cores) if self.takes_cores else self


def read_names(target: Target, names: tuple[str, ...], cpu: str = "") -> tuple[DeviceName, ...]:
    """Return what these names mean. Raises `UsageError`: `device-twice`, and as `read_name` does."""
    found: list[DeviceName] = []
    for name in names:
        device = read_name(target, name, cpu)
        if device in found:
            raise UsageError("device-twice", "the same device is given twice", where=f"--device {name}")
        found.append(device)
    return tuple(found)


def read_name(target: Target, name: str, cpu: str = "") -> DeviceName:
    """Return what a name means for a target whose library takes `cpu` for granted, any of its architecture if empty.

    Raises `UsageError`: `unknown-device`, `wrong-device` (it cannot run programs for the target, or it lacks
    instructions of `cpu`), `bad-destination`.
    """
    kind, _, detail = name.partition(":")
    # A processor is optional, and its memory may follow the kind directly: qemu-system@128.
    kind, at, memory = kind.partition("@")
    if not _is_kind(kind) or (at and (detail or kind != "qemu-system")):
        _unknown(name, f"there are: {FORMS}; invoke devices lists what is here")
    match kind:
        case "host":
            return _host(target, detail)
        case "qemu-user":
            return DeviceName(kind=kind, detail=emulated_cpu(target, kind, detail, cpu))
        case "qemu-system":
            emulated, memory_mib = emulated_machine(target, detail + at + memory, cpu)
            return DeviceName(kind=kind, detail=emulated, memory_mib=memory_mib)
        case "adb" | "ssh":
            return _elsewhere(target, kind, detail)
        case "simctl" | "devicectl":
            return _apple(target, kind, detail)
        case "firebase" | "devicefarm" | "browserstack":
            return _on_farm(target, kind, detail)


def default_devices(target: Target, cpu: str = "") -> tuple[str, ...]:
    """Return the names of the devices on which a target is verified when none is named: the host if it can."""
    if simulated_here(target):
        return ("simctl",)
    return ("host",) if runs_here(target) else default_emulators(target, cpu)


def ssh_destination(detail: str) -> str:
    """Return what `ssh` takes for `user@host:port`; what is without a port it takes as it is."""
    return f"ssh://{detail}" if WITH_PORT.fullmatch(detail) else detail


def is_farm(kind: Kind) -> TypeGuard[FarmKind]:
    """Whether a kind is a device farm's."""
    return kind in get_args(FarmKind)


def _host(target: Target, detail: str) -> DeviceName:
    if detail:
        _unknown(f"host:{detail}", f"there are: {FORMS}")
    if not runs_here(target):
        raise _wrong(target, "host", f"this machine does not run programs for {target.identifier}")
    return DeviceName(kind="host")


def _elsewhere(target: Target, kind: Kind, detail: str) -> DeviceName:
    if target.system in APPLE:
        raise _wrong(target, kind, f"{kind} reaches Linux and Android, which {target.identifier} is not for")
    return DeviceName(kind=kind, detail=require_destination(ssh_destination(detail)) if kind == "ssh" else detail)


def _apple(target: Target, kind: Kind, detail: str) -> DeviceName:
    """Return a simulator, which this Mac has to run, or a phone, which a farm of Macs may have."""
    simulator = kind == "simctl"
    if target.system is not OperatingSystem.IOS or is_simulated(target) is not simulator:
        raise _wrong(target, kind, f"{kind} runs no programs for {target.identifier}")
    if simulator and not simulated_here(target):
        raise _wrong(target, kind, f"this machine has no simulator that runs {target.identifier}")
    return DeviceName(kind=kind, detail=detail)


def _on_farm(target: Target, kind: FarmKind, detail: str) -> DeviceName:
    if target.system is not OperatingSystem.ANDROID:
        raise _wrong(target, kind, f"a device farm runs apps, which {target.identifier} is not for")
    if not detail:
        _unknown(kind, f"say which of its devices: {FARMS}")
    return DeviceName(kind=kind, detail=detail)


def _is_kind(word: str) -> TypeGuard[Kind]:
    return word in get_args(Kind)


def _wrong(target: Target, kind: Kind, what: str) -> UsageError:
    return UsageError("wrong-device", what, where=f"--device {kind}", hint=f"choose {kinds_for(target)}")


def _unknown(name: str, hint: str) -> NoReturn:
    raise UsageError("unknown-device", f"{name!r} is not a device", where="--device", hint=hint)


@dataclass(frozen=True, kw_only=True)
class ListedDevice:
    """A device by the name that `--device` takes, or the form of such names.

    `targets` are those that it runs, empty when only the device itself knows. `memory` and `time` say whether they
    can be measured there; parity and illegal instructions can everywhere. `problem` and `remedy` are empty for one
    that is ready; `found` says what is there.
    """

    name: str
    targets: tuple[str, ...]
    memory: bool
    time: bool
    found: str
    problem: str = ""
    remedy: str = ""


def absent(name: str, problem: str, remedy: str, targets: tuple[str, ...] = ()) -> ListedDevice:
    """Return the line of a kind of device of which there is none, or no way to any."""
    return ListedDevice(name=name, targets=targets, memory=True, time=True, found="", problem=problem, remedy=remedy)
