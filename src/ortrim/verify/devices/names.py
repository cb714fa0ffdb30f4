"""Devices by their names on the command line: what a name means, before anything is opened."""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NoReturn, TypeGuard, get_args

from ortrim.core.targets import OperatingSystem, Target
from ortrim.errors import UsageError
from ortrim.tools.emulators import EMULATIONS, Emulation
from ortrim.verify.devices.qemu_system import DEFAULT_MEMORY_MIB
from ortrim.verify.devices.ssh_client import require_destination

FarmKind = Literal["firebase", "devicefarm", "browserstack"]
Kind = Literal["host", "qemu-user", "qemu-system", "adb", "ssh", FarmKind]

HOST_MACHINES: Final[Mapping[str, str]] = MappingProxyType({
    "x86_64": "x64", "aarch64": "arm64", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
})  # fmt: skip
"""The kernel's word for an architecture -> that of `core.targets`."""
CPU_AND_MEMORY: Final = re.compile(r"(?P<cpu>[a-z0-9-]*)(?:@(?P<mib>[1-9][0-9]{0,4}))?")
LEAST_MIB: Final = 32
MOST_MIB: Final = 16384
WITH_PORT: Final = re.compile(r"(?:[^@:/]+@)?(?:[^@:/\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")
FARM_FORMS: Final = "firebase:MODEL-VERSION, devicefarm:PROJECT/POOL, browserstack:DEVICE-VERSION"
FORMS: Final = f"host, qemu-user[:CPU], qemu-system[:CPU][@MIB], adb[:SERIAL], ssh:[USER@]HOST[:PORT], {FARM_FORMS}"


@dataclass(frozen=True, kw_only=True)
class DeviceName:
    """A device that is asked for: the processor to emulate, the serial number, or the destination is its `detail`.

    As a string it is the name that the device itself has; `adb` without a serial number gets one when it is opened.
    """

    kind: Kind
    detail: str = ""
    memory_mib: int = DEFAULT_MEMORY_MIB

    def __str__(self) -> str:
        ceiling = "" if self.memory_mib == DEFAULT_MEMORY_MIB else f"@{self.memory_mib}"
        return f"{self.kind}:{self.detail}{ceiling}" if self.detail else self.kind


def read_names(target: Target, names: tuple[str, ...]) -> tuple[DeviceName, ...]:
    """Return what these names mean. Raises `UsageError`: `device-twice`, and as `read_name` does."""
    found: list[DeviceName] = []
    for name in names:
        device = read_name(target, name)
        if device in found:
            raise UsageError("device-twice", "the same device is given twice", where=f"--device {name}")
        found.append(device)
    return tuple(found)


def read_name(target: Target, name: str) -> DeviceName:
    """Return what a name means for a target.

    Raises `UsageError`: `unknown-device`, `wrong-device` (it cannot run programs for the target), `bad-destination`.
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
            cpus = _emulation(target, kind).user_cpus
            return DeviceName(kind=kind, detail=_known(detail or cpus[0], cpus, kind))
        case "qemu-system":
            return _machine(_emulation(target, kind), detail + at + memory)
        case "adb":
            return DeviceName(kind=kind, detail=detail)
        case "ssh":
            return DeviceName(kind=kind, detail=require_destination(ssh_destination(detail)))
        case "firebase" | "devicefarm" | "browserstack":
            return _on_farm(target, kind, detail)


def default_devices(target: Target) -> tuple[str, ...]:
    """Return the names of the devices on which a target is verified when none is named: the host if it can."""
    if runs_here(target):
        return ("host",)
    emulation = emulation_of(target)
    if emulation is None:
        return ()
    return ("qemu-user", *(f"qemu-system:{cpu}" for cpu in emulation.system_cpus[:1]))


def runs_here(target: Target) -> bool:
    """Whether this machine's own processor runs programs for a target."""
    return target.system is OperatingSystem.LINUX and HOST_MACHINES.get(platform.machine()) == target.architecture.value


def emulation_of(target: Target) -> Emulation | None:
    """Return what emulates a target's machine with a Linux around it, None when nothing here does."""
    return EMULATIONS.get(target.architecture.value) if target.system is OperatingSystem.LINUX else None


def ssh_destination(detail: str) -> str:
    """Return what `ssh` takes for `user@host:port`; what is without a port it takes as it is."""
    return f"ssh://{detail}" if WITH_PORT.fullmatch(detail) else detail


def _host(target: Target, detail: str) -> DeviceName:
    if detail:
        _unknown(f"host:{detail}", f"there are: {FORMS}")
    if not runs_here(target):
        what = f"this machine does not run programs for {target.identifier}"
        hint = "choose qemu-user, qemu-system, adb or ssh"
        raise UsageError("wrong-device", what, where="--device host", hint=hint)
    return DeviceName(kind="host")


def _machine(emulation: Emulation, detail: str) -> DeviceName:
    """Return an emulated machine with its processor and its memory."""
    found = CPU_AND_MEMORY.fullmatch(detail)
    if not emulation.system_cpus or found is None:
        _known(detail, emulation.system_cpus, "qemu-system")
    assert found is not None
    cpu = _known(found["cpu"] or emulation.system_cpus[0], emulation.system_cpus, "qemu-system")
    memory_mib = int(found["mib"] or DEFAULT_MEMORY_MIB)
    if not LEAST_MIB <= memory_mib <= MOST_MIB:
        what = f"a machine cannot have {memory_mib} MiB"
        hint = f"give from {LEAST_MIB} to {MOST_MIB}, such as qemu-system:{cpu}@128"
        raise UsageError("unknown-device", what, where=f"--device qemu-system:{detail}", hint=hint)
    return DeviceName(kind="qemu-system", detail=cpu, memory_mib=memory_mib)


def _on_farm(target: Target, kind: FarmKind, detail: str) -> DeviceName:
    if target.system is not OperatingSystem.ANDROID:
        what = f"a device farm runs apps, which {target.identifier} is not for"
        raise UsageError("wrong-device", what, where=f"--device {kind}", hint="choose host, qemu-user, adb or ssh")
    if not detail:
        _unknown(kind, f"say which of its devices: {FARM_FORMS}")
    return DeviceName(kind=kind, detail=detail)


def _emulation(target: Target, kind: str) -> Emulation:
    emulation = emulation_of(target)
    if emulation is None:
        what = f"{kind} does not emulate what {target.identifier} runs on"
        raise UsageError("wrong-device", what, where=f"--device {kind}", hint="choose host, adb or ssh")
    return emulation


def _known(cpu: str, cpus: tuple[str, ...], kind: str) -> str:
    if cpu not in cpus:
        hint = f"there are: {', '.join(f'{kind}:{known}' for known in cpus) or 'none for this target'}"
        _unknown(f"{kind}:{cpu}", hint)
    return cpu


def is_farm(kind: Kind) -> TypeGuard[FarmKind]:
    """Whether a kind is a device farm's."""
    return kind in get_args(FarmKind)


def _is_kind(word: str) -> TypeGuard[Kind]:
    return word in get_args(Kind)


def _unknown(name: str, hint: str) -> NoReturn:
    raise UsageError("unknown-device", f"{name!r} is not a device", where="--device", hint=hint)
