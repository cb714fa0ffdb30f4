"""Opening a device that was asked for by its name."""

from collections.abc import Callable
from typing import Final

from ortrim.core.targets import APPLE_ARCHITECTURES, OperatingSystem, Target
from ortrim.sources.machines import machine_parts
from ortrim.tools.base import require
from ortrim.tools.emulators import EMULATIONS, QEMU_SYSTEM, Emulation
from ortrim.verify.devices.adb import open_adb
from ortrim.verify.devices.base import Device
from ortrim.verify.devices.fitness import require_fitting
from ortrim.verify.devices.host import Host
from ortrim.verify.devices.mac import MacHost
from ortrim.verify.devices.names import DeviceName
from ortrim.verify.devices.qemu_system import QemuSystem
from ortrim.verify.devices.qemu_user import QemuUser
from ortrim.verify.devices.runnable import translated_here
from ortrim.verify.devices.simctl import open_simulator
from ortrim.verify.devices.ssh import open_ssh

Announce = Callable[[str], None]

KERNEL_ARCHITECTURE: Final = "arm64"


def open_device(
    target: Target, name: DeviceName, announce: Announce = lambda _: None, *, api: int | None = None
) -> Device:
    """Return a device that `read_name` found, no farm's, which runs programs for `target`; nothing is run yet.

    `api` is the least API level of what is to run, on Android. The parts of emulated machines are fetched when they are
    not in the cache, which `announce` is told of, and of what a device waits for. Raises `ToolError` for a program that
    is missing or too old, `VerifyError` as `require_fitting` does, and what fetching or connecting raises. Whoever
    calls closes the device.
    """
    match name.kind:
        case "host":
            return open_host(target, name.cores)
        case "qemu-user":
            return _qemu_user(EMULATIONS[target.architecture.value], name, announce)
        case "qemu-system":
            return _qemu_system(EMULATIONS[target.architecture.value], name, announce)
        case "adb":
            return _fitting(open_adb(name.detail or None, cores=name.cores, announce=announce), target, api)
        case "ssh":
            return open_ssh(name.detail, cores=name.cores, announce=announce)
        case "simctl":
            return open_simulator(name.detail, APPLE_ARCHITECTURES[target.architecture], announce=announce)
        case "devicectl" | "firebase" | "devicefarm" | "browserstack":
            raise LookupError(f"{name} needs an app, which the caller has")


def open_host(target: Target, cores: tuple[int, ...] = ()) -> Host | MacHost:
    """Return this machine, which `runs_here` said runs a target's programs. Raises as the two of them do."""
    if target.system is OperatingSystem.MACOS:
        return MacHost(cores, translated=translated_here(target))
    return Host(cores)


def _fitting(device: Device, target: Target, api: int | None) -> Device:
    try:
        if target.system is OperatingSystem.ANDROID:
            require_fitting(device.facts(), device.name, target, api)
    except BaseException:
        device.close()
        raise
    return device


def _qemu_user(emulation: Emulation, name: DeviceName, announce: Announce) -> Device:
    tool = require(emulation.user)
    return QemuUser(emulation, machine_parts(emulation, announce), tool, cpu=name.detail)


def _qemu_system(emulation: Emulation, name: DeviceName, announce: Announce) -> Device:
    tool = require(QEMU_SYSTEM)
    system = machine_parts(EMULATIONS[KERNEL_ARCHITECTURE], announce)
    parts = system if emulation is EMULATIONS[KERNEL_ARCHITECTURE] else machine_parts(emulation, announce)
    return QemuSystem(
        emulation,
        parts,
        tool,
        kernel=system.kernel,
        shell=system.shell,
        cpu=name.detail,
        memory_mib=name.memory_mib,
    )
