"""Opening a device that was asked for by its name.

- Which devices there are here, and what can be measured on each.
- Which devices a target is verified on, and whether a report has what is asked for of each.
"""

import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from ortrim.base.tools import EMULATIONS, QEMU_SYSTEM, Emulation, Tool, install_command, require
from ortrim.buildspec.buildspec import TargetSpec
from ortrim.buildspec.targets import APPLE_ARCHITECTURES, TARGETS, Target
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.root_file_systems import machine_parts
from ortrim.devices import kinds
from ortrim.devices.adb import CONNECT_HINT, AdbListing, adb_devices, choose, find_adb, open_adb
from ortrim.devices.device import ProgramDevice
from ortrim.devices.emulators import QemuUser
from ortrim.devices.host import Host
from ortrim.devices.mac import mac_facts
from ortrim.devices.names import DeviceName, ListedDevice, read_names
from ortrim.devices.qemu_system import QemuSystem
from ortrim.devices.simctl import listed_phones, listed_simulators, open_simulator
from ortrim.devices.ssh import SshClient, open_ssh
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.planning.doctor import FARM_CHECKS, SSH
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.platforms.apple.platform import translated_here
from ortrim.verify.reports import NOT_FOR_DEVICE, DeviceReport, VerifyReport

Announce = Callable[[str], None]

KERNEL_ARCHITECTURE: Final = "arm64"


def open_device(
    target: Target, name: DeviceName, announce: Announce = lambda _: None, *, job: BuildJob | None = None
) -> ProgramDevice:
    """Return a device that `read_name` found, no farm's, which runs programs for `target`; nothing is run yet.

    `job` is what built the library that is to run, if one did. The parts of emulated machines are fetched when they are
    not in the cache, which is reported to `announce`, as is what a device waits for. Raises `ToolError` for a program
    that is missing or too old, `VerifyError` as `require_fitting` does, and what fetching or connecting raises. Whoever
    calls closes the device.
    """
    if name.row.needs_app:
        raise LookupError(f"{name} needs an app, which the caller has")
    opener = ACTIONS[name.row].open
    assert opener is not None
    return opener(target, name, announce, job)


def _fitting(device: ProgramDevice, target: Target, job: BuildJob | None) -> ProgramDevice:
    try:
        platform_of(target).require_fitting(device, target, job)
    except BaseException:
        device.close()
        raise
    return device


def _qemu_user(emulation: Emulation, name: DeviceName, announce: Announce) -> ProgramDevice:
    tool = require(emulation.user)
    return QemuUser(emulation, machine_parts(emulation, announce), tool, cpu=name.detail)


def _qemu_system(emulation: Emulation, name: DeviceName, announce: Announce) -> ProgramDevice:
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


@dataclass(frozen=True, kw_only=True)
class Actions:
    """What is done about a kind: opening a device, finding out whether one is there, and listing those that are.

    `open` is None where an app is needed, which whoever opens it has; `ready` is None where nothing can be found out
    before there is something to run.
    """

    list: Callable[[], Iterable[ListedDevice]]
    open: Callable[[Target, DeviceName, Announce, BuildJob | None], ProgramDevice] | None = None
    ready: Callable[[Target, DeviceName], object] | None = None


def _look_for_ssh(_target: Target, name: DeviceName) -> None:
    client = SshClient(name.detail)
    client.connect()
    client.close()


def _look_for_farm(_target: Target, name: DeviceName) -> None:
    (farm,) = (each for each in _farms() if each.name == name.row.form)
    if farm.problem:
        raise VerifyError("no-device", farm.problem, where=f"--device {name}", hint=farm.remedy)


def _emulation(target: Target) -> Emulation:
    return EMULATIONS[target.architecture.value]


def list_devices() -> tuple[ListedDevice, ...]:
    """Return what can be verified on, ready or not. Raises nothing for what is missing: its line says so."""
    return tuple(line for actions in ACTIONS.values() for line in actions.list())


def fetch_machines(announce: Callable[[str], None]) -> None:
    """Fetch the parts of every emulated machine that the cache does not hold. Raises what `machine_parts` raises."""
    for emulation in EMULATIONS.values():
        machine_parts(emulation, announce)


def _host() -> ListedDevice:
    targets = [target for target in TARGETS.values() if platform_of(target).runs_here(target)]
    if not targets:
        return ListedDevice(
            name=kinds.HOST.name, problem=f"no target runs on {platform.system()} on {platform.machine()}"
        )
    names = tuple(target.identifier for target in targets)
    facts = mac_facts() if platform.system() == kinds.DARWIN else Host().facts()
    by_rosetta = ", ".join(target.identifier for target in targets if translated_here(target))
    found = f"{facts.cpu} ({by_rosetta} by Rosetta 2)" if by_rosetta else facts.cpu
    return ListedDevice(name=kinds.HOST.name, targets=names, found=found)


def _user_machines() -> Iterator[ListedDevice]:
    for architecture, emulation in EMULATIONS.items():
        yield from _emulated(kinds.QEMU_USER, emulation.user, _targets_of(architecture), emulation.user_cpus)


def _system_machines() -> Iterator[ListedDevice]:
    emulated = {architecture: emulation for architecture, emulation in EMULATIONS.items() if emulation.system_cpus}
    cpus = dict.fromkeys(cpu for emulation in emulated.values() for cpu in emulation.system_cpus)
    targets = tuple(name for architecture in emulated for name in _targets_of(architecture))
    yield from _emulated(kinds.QEMU_SYSTEM, QEMU_SYSTEM, targets, cpus)


def _emulated(kind: kinds.Kind, tool: Tool, targets: tuple[str, ...], cpus: Iterable[str]) -> Iterator[ListedDevice]:
    line = _by_tool(ListedDevice(name=kind.name, targets=targets, memory=kind.memory, time=kind.time), tool)
    yield from (replace(line, name=f"{kind}:{cpu}") for cpu in cpus)


def _adb() -> Iterator[ListedDevice]:
    try:
        seen = adb_devices(find_adb())
    except Diagnostic as error:
        yield ListedDevice(name=kinds.ADB.listed_form, problem=error.what, remedy=error.hint.removeprefix("run: "))
        return
    yield from map(_adb_device, seen)
    if not seen:
        yield ListedDevice(name=kinds.ADB.listed_form, problem="adb sees no device", remedy=CONNECT_HINT)


def _adb_device(listing: AdbListing) -> ListedDevice:
    name = DeviceName(kind=kinds.ADB.name, detail=listing.serial)
    problem = "" if listing.online else f"is {listing.state}"
    remedy = "" if listing.online else "look at the device's screen, and at the output of: adb devices -l"
    return ListedDevice(
        name=str(name),
        time=not name.is_emulator,
        found=listing.model,
        problem=problem,
        remedy=remedy,
    )


def _ssh() -> ListedDevice:
    return _by_tool(ListedDevice(name=kinds.SSH.form), SSH)


def _farms() -> Iterator[ListedDevice]:
    """Yield the form of each farm's names, with what of it is here: a program, a library, or credentials."""
    for kind, check in zip((kinds.FIREBASE, kinds.DEVICE_FARM), FARM_CHECKS, strict=True):
        about = check.finding()
        yield ListedDevice(
            name=kind.form,
            targets=_targets_of_kind(kind),
            found=f"{about.name} {about.found}".strip() if about.found else "",
            problem=f"{about.name}: {about.problem}" if about.problem else "",
            remedy=about.remedy,
        )


def _by_tool(line: ListedDevice, tool: Tool) -> ListedDevice:
    """Return the line of what a program reaches, with what there is of that."""

    def find() -> str:
        installed = require(tool)
        return f"{installed.name} {installed.version}"

    return line.with_tool(find, lambda error: f"{tool.name} {error.what}")


def _targets_of(architecture: str) -> tuple[str, ...]:
    emulated = EMULATIONS[architecture]
    return tuple(
        target.identifier for target in TARGETS.values() if platform_of(target).emulation_of(target) is emulated
    )


def _targets_of_kind(kind: kinds.Kind) -> tuple[str, ...]:
    """Return the targets whose programs run on a kind of device."""
    return tuple(target.identifier for target in TARGETS.values() if not platform_of(target).refusal(target, kind))


ACTIONS: Final[Mapping[kinds.Kind, Actions]] = MappingProxyType({
    kinds.HOST: Actions(
        list=lambda: (_host(),),
        open=lambda target, name, _announce, _job: platform_of(target).open_host(target, name.cores),
    ),
    kinds.QEMU_USER: Actions(
        list=_user_machines,
        open=lambda target, name, announce, _job: _qemu_user(_emulation(target), name, announce),
        ready=lambda target, _name: require(_emulation(target).user),
    ),
    kinds.QEMU_SYSTEM: Actions(
        list=_system_machines,
        open=lambda target, name, announce, _job: _qemu_system(_emulation(target), name, announce),
        ready=lambda _target, _name: require(QEMU_SYSTEM),
    ),
    kinds.SIMCTL: Actions(
        list=lambda: (listed_simulators(),),
        open=lambda target, name, announce, _job: open_simulator(
            name.detail, APPLE_ARCHITECTURES[target.architecture], announce=announce
        ),
    ),
    kinds.ADB: Actions(
        list=_adb,
        open=lambda target, name, announce, job: _fitting(
            open_adb(name.detail or None, cores=name.cores, announce=announce), target, job
        ),
        ready=lambda _target, name: choose(adb_devices(find_adb()), name.detail or None),
    ),
    kinds.SSH: Actions(
        list=lambda: (_ssh(),),
        open=lambda _target, name, announce, _job: open_ssh(name.detail, cores=name.cores, announce=announce),
        ready=_look_for_ssh,
    ),
    kinds.DEVICECTL: Actions(list=lambda: listed_phones(_targets_of_kind(kinds.DEVICECTL))),
    kinds.FIREBASE: Actions(list=_farms, ready=_look_for_farm),
    kinds.DEVICE_FARM: Actions(list=tuple, ready=_look_for_farm),
})  # fmt: skip
"""By kind, in the order of the list of devices; all farms are listed by the first."""


def devices_of(target: Target, request: Request, cpu: str = "") -> tuple[DeviceName, ...]:
    """Return the devices that were named for a target, else its defaults, with the cores that were asked for.

    `cpu` is the least processor that its library is compiled for, empty for any. Raises `UsageError` as `read_names`
    does.
    """
    rules = platform_of(target)
    found = read_names(rules, target, request.devices or rules.default_devices(target, cpu), cpu)
    return tuple(device.on(request.cores) for device in found)


def require_devices(targets: Sequence[TargetSpec], request: Request, host: Target | None) -> None:
    """Refuse, before anything is compiled, what could not be verified.

    Raises `VerifyError` `no-device` for targets that run neither on this machine nor in an emulator that is installed
    here while no device is named (for Android and Apple's systems a package is made all the same, and its report says
    that it was run nowhere); `UsageError` for names that are none, for `--least-memory` without a machine
    whose memory can be lowered, and for `--cores` without one that has cores of its own.
    """
    if not request.devices:
        _require_defaults(targets, host)
    found = [device for target in targets for device in devices_of(target.target, request, target.cpu or "")]
    if request.cores and not any(device.takes_cores for device in found):
        what = "none of the devices can pin runs to cores"
        hint = "name one that has: --device adb, --device ssh:USER@HOST, or --device host"
        raise UsageError("bad-option", what, where="--cores", hint=hint)
    if request.least_memory and not any(device.row.ceiling for device in found):
        what = "none of the devices can limit its memory"
        hint = "name a qemu-system for a target of ARM: --target linux-arm64 --device qemu-system"
        raise UsageError("bad-option", what, where="--least-memory", hint=hint)


def require_ready(targets: Iterable[Target], request: Request) -> None:
    """Refuse, before anything is compiled, a device that was named and is not there: its programs or itself.

    A simulator is started, and a phone on a Mac's cable asked, only when they have something to run. Raises `ToolError`
    for a program that is missing or too old, what `choose` and `SshClient` raise, and `VerifyError` `no-device` for a
    farm that cannot be reached from here.
    """
    if not request.devices:
        return
    for name, target in {name: each for each in targets for name in devices_of(each, request)}.items():
        if (ready := ACTIONS[name.row].ready) is not None:
            ready(target, name)


def answers(report: VerifyReport, target: Target, request: Request, cpu: str = "") -> bool:
    """Whether a report has all that is asked for, so that nothing is left to verify; `cpu` is as for `devices_of`."""
    found = {device.device: device for device in report.devices}
    return all(_answered(found.get(str(device)), device, request) for device in devices_of(target, request, cpu))


def _answered(found: DeviceReport | None, device: DeviceName, request: Request) -> bool:
    if found is None:
        return False
    if found.failure:
        # A device does not become another one.
        return found.failure.code == NOT_FOR_DEVICE
    if found.failed_models:
        return False
    if found.host is not None and found.host.pinned_cores != device.cores:
        return False
    least_memory = bool(found.least_memory) or not (request.least_memory and device.row.ceiling)
    return least_memory and (bool(found.traces) or not request.trace)


def _require_defaults(targets: Sequence[TargetSpec], host: Target | None) -> None:
    machines = tuple(target for target in targets if platform_of(target.target).needs_device())
    needs = {target.id: _missing_emulator(target, host) for target in machines}
    lacking = {identifier: package for identifier, package in needs.items() if package is not None}
    if lacking:
        here = host.identifier if host else f"{platform.system()} on {platform.machine()}"
        what = f"a library for another machine cannot be run on {here}, so it could not be verified"
        commands = " && ".join(install_command(package) for package in dict.fromkeys(lacking.values()) if package)
        emulator = f"install an emulator: {commands}; or " if commands else ""
        hint = (
            f"{emulator}name a device that runs it: --device adb, or --device ssh:USER@HOST; or build it on a host of "
            "its own kind; invoke plan (or --plan-only) shows its plan on any"
        )
        raise VerifyError("no-device", what, where=", ".join(lacking), hint=hint)


def _missing_emulator(spec: TargetSpec, host: Target | None) -> str | None:
    """Return the package with what runs a target's programs here, empty for none; None when nothing is missing."""
    target = spec.target
    if host and (target.system, target.architecture) == (host.system, host.architecture):
        return None
    rules = platform_of(target)
    emulation = rules.emulation_of(target)
    if emulation is None or platform.system() != "Linux" or not rules.default_devices(target, spec.cpu or ""):
        return ""  # qemu runs single programs of Linux on Linux alone
    return None if shutil.which(emulation.user.name) else emulation.user.package
