"""Which devices there are here, and what can be measured on each."""

import platform
from collections.abc import Callable, Iterator
from typing import Final

from ortrim.core.targets import TARGETS, OperatingSystem
from ortrim.errors import Diagnostic
from ortrim.sources.machines import machine_parts
from ortrim.tools.base import Tool, require
from ortrim.tools.doctor_devices import SSH
from ortrim.tools.doctor_farms import FARM_CHECKS
from ortrim.tools.emulators import EMULATIONS, QEMU_SYSTEM
from ortrim.verify.devices.adb import adb_devices
from ortrim.verify.devices.adb_client import find_adb
from ortrim.verify.devices.adb_listing import CONNECT_HINT, AdbListing
from ortrim.verify.devices.host import Host
from ortrim.verify.devices.listed_device import ListedDevice, absent
from ortrim.verify.devices.listing_apple import listed_phones, listed_simulators
from ortrim.verify.devices.mac import mac_facts
from ortrim.verify.devices.qemu_system import QemuSystem
from ortrim.verify.devices.qemu_user import QemuUser
from ortrim.verify.devices.runnable import DARWIN, FARM_FORMS, emulation_of, runs_here, translated_here

ADB_FORM: Final = "adb:[SERIAL]"
SSH_FORM: Final = "ssh:[USER@]HOST[:PORT]"
FARM_TOOLS: Final = ("gcloud", "boto3", "BrowserStack")
"""What `doctor` calls that which each farm is reached with, in the order of `FARM_FORMS`."""
EMULATOR: Final = "emulator-"
"""How `adb` names Android's emulators."""


def list_devices() -> tuple[ListedDevice, ...]:
    """Return what can be verified on, ready or not. Raises nothing for what is missing: its line says so."""
    here = (_host(), *_user_machines(), *_system_machines(), listed_simulators())
    return (*here, *_adb(), _ssh(), *listed_phones(), *_farms())


def fetch_machines(announce: Callable[[str], None]) -> None:
    """Fetch the parts of every emulated machine that the cache does not hold. Raises what `machine_parts` raises."""
    for emulation in EMULATIONS.values():
        machine_parts(emulation, announce)


def _host() -> ListedDevice:
    targets = [target for target in TARGETS.values() if runs_here(target)]
    names = tuple(target.identifier for target in targets)
    facts = mac_facts() if platform.system() == DARWIN else Host().facts()
    by_rosetta = ", ".join(target.identifier for target in targets if translated_here(target))
    found = f"{facts.cpu} ({by_rosetta} by Rosetta 2)" if by_rosetta else facts.cpu
    return ListedDevice(name=Host.name, targets=names, memory=True, time=True, found=found)


def _user_machines() -> Iterator[ListedDevice]:
    for architecture, emulation in EMULATIONS.items():
        looked_for = _looked_for(emulation.user)
        for cpu in emulation.user_cpus:
            yield _emulated(QemuUser, f"qemu-user:{cpu}", _targets_of(architecture), looked_for)


def _system_machines() -> Iterator[ListedDevice]:
    looked_for = _looked_for(QEMU_SYSTEM)
    emulated = {architecture: emulation for architecture, emulation in EMULATIONS.items() if emulation.system_cpus}
    for cpu in dict.fromkeys(cpu for emulation in emulated.values() for cpu in emulation.system_cpus):
        targets = tuple(name for architecture in emulated for name in _targets_of(architecture))
        yield _emulated(QemuSystem, f"qemu-system:{cpu}", targets, looked_for)


def _emulated(
    kind: type[QemuUser | QemuSystem], name: str, targets: tuple[str, ...], looked_for: tuple[str, str, str]
) -> ListedDevice:
    found, problem, remedy = looked_for
    memory, time = kind.memory_meaningful, kind.time_meaningful
    return ListedDevice(
        name=name, targets=targets, memory=memory, time=time, found=found, problem=problem, remedy=remedy
    )


def _adb() -> Iterator[ListedDevice]:
    try:
        seen = adb_devices(find_adb())
    except Diagnostic as error:
        yield absent(ADB_FORM, error.what, error.hint.removeprefix("run: "))
        return
    yield from map(_adb_device, seen)
    if not seen:
        yield absent(ADB_FORM, "adb sees no device", CONNECT_HINT)


def _adb_device(listing: AdbListing) -> ListedDevice:
    emulated = listing.serial.startswith(EMULATOR)
    problem = "" if listing.online else f"is {listing.state}"
    remedy = "" if listing.online else "look at the device's screen, and at what this prints: adb devices -l"
    return ListedDevice(
        name=f"adb:{listing.serial}",
        targets=(),
        memory=True,
        time=not emulated,
        found=listing.model,
        problem=problem,
        remedy=remedy,
    )


def _ssh() -> ListedDevice:
    found, problem, remedy = _looked_for(SSH)
    return ListedDevice(name=SSH_FORM, targets=(), memory=True, time=True, found=found, problem=problem, remedy=remedy)


def _farms() -> Iterator[ListedDevice]:
    """Yield the form of each farm's names, with what of it is here: a program or a library, and credentials."""
    checks = dict(FARM_CHECKS)
    for form, name in zip(FARM_FORMS, FARM_TOOLS, strict=True):
        about = checks[name]()
        yield ListedDevice(
            name=form,
            targets=tuple(target.identifier for target in TARGETS.values() if target.system is OperatingSystem.ANDROID),
            memory=True,
            time=True,
            found=f"{name} {about.found}".strip() if about.found else "",
            problem=f"{name}: {about.problem}" if about.problem else "",
            remedy=about.remedy,
        )


def _looked_for(tool: Tool) -> tuple[str, str, str]:
    """Return what was found of a program, what is wrong with it, and what helps."""
    try:
        installed = require(tool)
    except Diagnostic as error:
        return "", f"{tool.name} {error.what}", error.hint.removeprefix("run: ")
    return f"{installed.name} {installed.version}", "", ""


def _targets_of(architecture: str) -> tuple[str, ...]:
    emulated = EMULATIONS[architecture]
    return tuple(target.identifier for target in TARGETS.values() if emulation_of(target) is emulated)
