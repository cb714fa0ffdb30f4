"""Devices by their names on the command line."""

import platform
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Final

from ortrim.core.targets import Target
from ortrim.errors import UsageError
from ortrim.sources.machines import machine_parts
from ortrim.tools.base import require
from ortrim.tools.emulators import EMULATIONS, QEMU_SYSTEM, Emulation
from ortrim.verify.devices.adb import open_adb
from ortrim.verify.devices.base import Device
from ortrim.verify.devices.host import Host
from ortrim.verify.devices.qemu_system import DEFAULT_MEMORY_MIB, QemuSystem
from ortrim.verify.devices.qemu_user import QemuUser
from ortrim.verify.devices.ssh import open_ssh

Announce = Callable[[str], None]
Open = Callable[[Target, str, Announce], Device]

HOST_MACHINES: Final[Mapping[str, str]] = MappingProxyType({
    "x86_64": "x64", "aarch64": "arm64", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
})  # fmt: skip
"""The kernel's word for an architecture -> that of `core.targets`."""
KERNEL_ARCHITECTURE: Final = "arm64"
CPU_AND_MEMORY: Final = re.compile(r"(?P<cpu>[a-z0-9-]*)(?:@(?P<mib>[1-9][0-9]{0,4}))?")
LEAST_MIB: Final = 32
MOST_MIB: Final = 16384
WITH_PORT: Final = re.compile(r"(?:[^@:/]+@)?(?:[^@:/\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")
FORMS: Final = "host, qemu-user[:CPU], qemu-system[:CPU][@MIB], adb[:SERIAL], ssh:[USER@]HOST[:PORT]"


def devices_for(target: Target, names: tuple[str, ...], announce: Announce = lambda _: None) -> tuple[Device, ...]:
    """Return the devices of these names, each of which can run programs for `target`; nothing is run yet.

    The parts of emulated machines are fetched when they are not in the cache, which `announce` is told of. Raises
    `UsageError` (`unknown-device`, `wrong-device`, `device-twice`), `ToolError` for a program that is missing or too
    old, and what fetching or connecting raises. Whoever calls closes the devices.
    """
    with ExitStack() as opened:
        devices: list[Device] = []
        for name in names:
            devices.append(_open(target, name, announce))
            opened.callback(devices[-1].close)
            _refuse_twice(devices, name)
        opened.pop_all()
    return tuple(devices)


def default_devices(target: Target) -> tuple[str, ...]:
    """Return the names of the devices on which a target is verified when none is named: the host if it can."""
    if runs_here(target):
        return ("host",)
    emulation = EMULATIONS.get(target.architecture.value)
    if emulation is None:
        return ()
    return ("qemu-user", *(f"qemu-system:{cpu}" for cpu in emulation.system_cpus[:1]))


def runs_here(target: Target) -> bool:
    """Whether this machine's own processor runs programs for a target."""
    return HOST_MACHINES.get(platform.machine()) == target.architecture.value


def _refuse_twice(devices: list[Device], name: str) -> None:
    if devices[-1].name in {device.name for device in devices[:-1]}:
        raise UsageError("device-twice", "the same device is given twice", where=f"--device {name}")


def _open(target: Target, name: str, announce: Announce) -> Device:
    kind, _, detail = name.partition(":")
    # A processor is optional, and its memory may follow the kind directly: qemu-system@128.
    kind, at, memory = kind.partition("@")
    openers: dict[str, Open] = {
        "host": _host,
        "qemu-user": _qemu_user,
        "qemu-system": _qemu_system,
        "adb": lambda _target, serial, _announce: open_adb(serial or None),
        "ssh": lambda _target, destination, _announce: open_ssh(ssh_destination(destination)),
    }
    if kind not in openers or (at and (detail or kind != "qemu-system")):
        hint = f"there are: {FORMS}; invoke devices lists what is here"
        raise UsageError("unknown-device", f"{name!r} is not a device", where="--device", hint=hint)
    return openers[kind](target, detail + at + memory, announce)


def ssh_destination(detail: str) -> str:
    """Return what `ssh` takes for `user@host:port`; what is without a port it takes as it is."""
    return f"ssh://{detail}" if WITH_PORT.fullmatch(detail) else detail


def _host(target: Target, detail: str, _announce: Announce) -> Device:
    if detail:
        hint = f"there are: {FORMS}"
        raise UsageError("unknown-device", f"'host:{detail}' is not a device", where="--device", hint=hint)
    if not runs_here(target):
        what = f"this machine does not run programs for {target.identifier}"
        hint = "choose qemu-user, qemu-system, adb or ssh"
        raise UsageError("wrong-device", what, where="--device host", hint=hint)
    return Host()


def _qemu_user(target: Target, detail: str, announce: Announce) -> Device:
    emulation = _emulation(target, "qemu-user")
    cpu = _known(detail or emulation.user_cpus[0], emulation.user_cpus, "qemu-user")
    tool = require(emulation.user)
    return QemuUser(emulation, machine_parts(emulation, announce), tool, cpu=cpu)


def _qemu_system(target: Target, detail: str, announce: Announce) -> Device:
    emulation = _emulation(target, "qemu-system")
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
    tool = require(QEMU_SYSTEM)
    system = machine_parts(EMULATIONS[KERNEL_ARCHITECTURE], announce)
    parts = system if emulation is EMULATIONS[KERNEL_ARCHITECTURE] else machine_parts(emulation, announce)
    return QemuSystem(emulation, parts, tool, kernel=system.kernel, shell=system.shell, cpu=cpu, memory_mib=memory_mib)


def _emulation(target: Target, kind: str) -> Emulation:
    emulation = EMULATIONS.get(target.architecture.value)
    if emulation is None:
        what = f"{kind} does not emulate what {target.identifier} runs on"
        raise UsageError("wrong-device", what, where=f"--device {kind}", hint="choose host, adb or ssh")
    return emulation


def _known(cpu: str, cpus: tuple[str, ...], kind: str) -> str:
    if cpu not in cpus:
        hint = f"there are: {', '.join(f'{kind}:{known}' for known in cpus) or 'none for this target'}"
        raise UsageError("unknown-device", f"'{kind}:{cpu}' is not a device", where="--device", hint=hint)
    return cpu
