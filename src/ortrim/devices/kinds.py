"""The kinds of devices: what each is called, measures and needs, and how it is opened, found ready and listed.

Nothing else names a kind or asks which one a device is. What opens a kind is imported then: planning needs none of it.
"""

import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from ortrim.base.tools import EMULATIONS, X64_USER, Emulation, Tool, find_xcrun, require
from ortrim.base.tools import QEMU_SYSTEM as MACHINE_TOOL
from ortrim.binaries.apple import is_simulated
from ortrim.buildspec.targets import APPLE_ARCHITECTURES, TARGETS, Architecture, Target
from ortrim.errors import Diagnostic, UsageError, VerifyError

if TYPE_CHECKING:
    from ortrim.compiling.plan import BuildJob
    from ortrim.devices.device import Device, ProgramDevice
    from ortrim.devices.farms.farm import Farm

Announce = Callable[[str], None]
FARM_RESULTS: Final = "farms"
CPU_AND_MEMORY: Final = re.compile(r"(?P<cpu>[a-z0-9-]*)(?:@(?P<mib>[1-9][0-9]{0,4}))?")
DEFAULT_MEMORY_MIB: Final = 256
LEAST_MIB: Final = 32
MOST_MIB: Final = 16384
KERNEL: Final = EMULATIONS["arm64"]
"""Whose kernel and shell emulated machines have: it runs programs for 32 bits too."""
HOST_MACHINES: Final[Mapping[str, str]] = MappingProxyType({
    "x86_64": "x64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "armv8l": "arm", "riscv64": "riscv64",
})  # fmt: skip
"""The kernel's word for an architecture, Darwin's among them -> that of `buildspec.targets`."""
DARWIN: Final = "Darwin"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind: its name on the command line, and the form of its devices' names, whose detail `read` turns into ours.

    `memory` and `time` say what can be measured there, `reach` what stands behind it: this machine, a processor that is
    emulated here, a machine of Linux or Android elsewhere, what runs Apple's programs, or a farm. A device that
    `is_here` takes this machine's processor, as do those whose detail `emulators` fits; one with a `ceiling` has as
    much memory as its name says, and one with `cores` keeps runs on chosen ones. To open one with `parts` is to put
    what it is made of into the cache, and no more. `ready` raises what keeps a named device from being opened, as far
    as that is known before there is something to run.
    """

    name: str
    form: str
    reach: Literal["here", "emulated", "remote", "apple", "farm"]
    memory: bool = True
    time: bool = True
    is_here: bool = False
    ceiling: bool = False
    cores: bool = False
    parts: bool = False
    emulators: re.Pattern[str] | None = None
    read: Callable[[str], str] = str
    open: "Callable[[DeviceName, Opening], Device]"
    list: "Callable[[RulesOf], Iterable[ListedDevice]]"
    ready: "Callable[[DeviceName, Target], object]" = lambda _name, _target: None

    def __str__(self) -> str:
        return self.name

    @property
    def listed_form(self) -> str:
        """The form as the list of devices shows it for want of a device."""
        return self.form.replace("[:", ":[")

    def cpus(self, emulation: Emulation) -> tuple[str, ...]:
        """Return the processors of one kind of emulator: of whole machines, or of single programs."""
        return emulation.system_cpus if self.ceiling else emulation.user_cpus


@dataclass(frozen=True, kw_only=True)
class DeviceName:
    """A device that is asked for: the processor to emulate, the serial number, or the destination is its `detail`.

    As a string it is the name that the device itself has; one without a detail that its kind could have gets that when
    it is opened. `cores` are those that runs there are kept on, all when it is empty.
    """

    kind: str
    detail: str = ""
    memory_mib: int = DEFAULT_MEMORY_MIB
    cores: tuple[int, ...] = ()

    def __str__(self) -> str:
        ceiling = "" if self.memory_mib == DEFAULT_MEMORY_MIB else f"@{self.memory_mib}"
        return f"{self.kind}:{self.detail}{ceiling}" if self.detail else self.kind

    @property
    def row(self) -> Kind:
        """All that is decided by its kind."""
        return KINDS[self.kind]

    @property
    def is_emulator(self) -> bool:
        """Whether it is emulated on this machine."""
        row = self.row
        return (row.is_here and row.reach != "here") or bool(row.emulators and row.emulators.fullmatch(self.detail))

    def on(self, cores: tuple[int, ...]) -> "DeviceName":
        """Return the same device, its runs kept on `cores` if it has any of its own."""
        return replace(self, cores=cores) if self.row.cores else self


class DeviceRules(ABC):
    """Which devices run a platform's programs; unless it says otherwise, none that is emulated or used unasked."""

    @abstractmethod
    def runs_here(self, target: Target) -> bool:
        """Whether this machine itself runs programs for a target."""

    def translates(self, _target: Target) -> bool:
        """Whether it does so by translating them."""
        return False

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

    def default_devices(
        self,
        _target: Target,
        _cpu: str = "",
        *,
        on_macs: bool = False,  # noqa: ARG002 - some platforms ask
    ) -> tuple[str, ...]:
        """Return the names of the devices on which a target is verified when none is named; see `read_name`.

        `on_macs` says that GitHub's Macs compile what is compiled on Macs.
        """
        return ()

    def open_host(self, target: Target, _cores: Sequence[int]) -> "ProgramDevice":
        """Return this machine, which `runs_here` said runs a target's programs."""
        raise LookupError(f"this machine does not run {target.identifier}")

    def require_fitting(  # noqa: B027 - most devices say so themselves
        self, device: "ProgramDevice", target: Target, job: "BuildJob | None"
    ) -> None:
        """Refuse a device that cannot run what was built and does not say so itself."""


def has_processor_of(target: Target) -> bool:
    """Whether this machine's processor is of a target's architecture."""
    return HOST_MACHINES.get(platform.machine()) == target.architecture.value


def on_mac_of(target: Target) -> bool:
    """Whether this is a Mac whose processor is of a target's architecture."""
    return platform.system() == DARWIN and has_processor_of(target)


RulesOf = Callable[[Target], DeviceRules]


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a device is opened for: a target with its platform's rules; `announce` gets what is waited for.

    `job` is what built the library that is to run, if one did, `headers` the folder of its runtime's headers. Into
    `folder`, the target's, goes the project of an app, and what a farm gives back.
    """

    target: Target
    rules: DeviceRules
    announce: Announce = lambda _: None
    job: "BuildJob | None" = None
    headers: Path = Path()
    folder: Path = Path()


@dataclass(frozen=True, kw_only=True)
class ListedDevice:
    """A device by the name that `--device` takes, or the form of such names.

    `targets` are those that it runs, empty when only the device itself knows. `memory` and `time` say whether they
    can be measured there; parity and illegal instructions can everywhere. `problem` and `remedy` are empty for one
    that is ready; `found` says what is there.
    """

    name: str
    targets: tuple[str, ...] = ()
    memory: bool = True
    time: bool = True
    found: str = ""
    problem: str = ""
    remedy: str = ""


def read_names(rules: DeviceRules, target: Target, names: tuple[str, ...], cpu: str = "") -> tuple[DeviceName, ...]:
    """Return what these names mean."""
    found: list[DeviceName] = []
    for name in names:
        device = read_name(rules, target, name, cpu)
        if device in found:
            raise UsageError("device-twice", "the same device is given twice", where=f"--device {name}")
        found.append(device)
    return tuple(found)


def read_name(rules: DeviceRules, target: Target, name: str, cpu: str = "") -> DeviceName:
    """Return what a name means for a target whose library takes `cpu` for granted, any of its architecture if empty.

    `rules` are those of the target's platform.
    """
    kind, _, detail = name.partition(":")
    # A processor is optional, and its memory may follow the kind directly: qemu-system@128.
    kind, at, memory = kind.partition("@")
    row = KINDS.get(kind)
    if row is None or (at and (detail or not row.ceiling)):
        raise _unknown(name, f"there are: {FORMS}; invoke devices lists the available ones")
    if row.reach == "emulated":
        return _emulated_name(rules, target, row, detail + at + memory, cpu)
    if detail and row.form == row.name:
        raise _unknown(name, f"there are: {FORMS}")
    if why := rules.refusal(target, row):
        raise UsageError("wrong-device", why, where=f"--device {kind}", hint=f"choose {rules.kinds_for(target)}")
    if row.reach == "farm" and not detail:
        raise _unknown(kind, f"say which of its devices: {FARMS}")
    return DeviceName(kind=kind, detail=row.read(detail))


def _emulated_name(rules: DeviceRules, target: Target, row: Kind, detail: str, cpu: str) -> DeviceName:
    """Without a processor a name means the first that runs what is compiled for `cpu`."""
    emulation = rules.emulation_of(target)
    if emulation is None:
        what = f"{row} does not emulate what {target.identifier} runs on"
        raise UsageError("wrong-device", what, where=f"--device {row}", hint=f"choose {rules.kinds_for(target)}")
    parts = CPU_AND_MEMORY.fullmatch(detail) if row.ceiling else None
    name = parts["cpu"] if parts else detail
    named = f"{row}:{name}" if name else row.name
    offered = row.cpus(emulation)
    if name not in ("", *offered) or not offered:
        raise _unknown(named, f"there are: {_listed(row, offered) or 'none for this target'}")
    able = emulation.having(cpu, offered)
    if not able or name not in ("", *able):
        hint = f"there are: {_listed(row, able)}" if able else f"choose {rules.kinds_for(target, cpu)}"
        raise _lacking(target, row, name, cpu, hint)
    name, memory_mib = name or able[0], int((parts and parts["mib"]) or DEFAULT_MEMORY_MIB)
    if not LEAST_MIB <= memory_mib <= MOST_MIB:
        what = f"a machine cannot have {memory_mib} MiB"
        hint = f"give from {LEAST_MIB} to {MOST_MIB}, such as {row}:{name}@128"
        raise UsageError("unknown-device", what, where=f"--device {row}:{detail}", hint=hint)
    return DeviceName(kind=row.name, detail=name, memory_mib=memory_mib)


def _unknown(name: str, hint: str) -> UsageError:
    return UsageError("unknown-device", f"{name!r} is not a device", where="--device", hint=hint)


def _lacking(target: Target, row: Kind, name: str, cpu: str, hint: str) -> UsageError:
    """Return the diagnostic of a processor below the baseline, where a run would end with an illegal instruction."""
    instructions = f"instructions that the library for {target.identifier} may use anywhere"
    what = f"{name} lacks {instructions}" if name else f"{row} emulates no processor with all {instructions}"
    where = f"--device {row}:{name}" if name else f"--device {row}"
    return UsageError("wrong-device", what, where=where, why=f"the buildspec says for it: cpu = '{cpu}'", hint=hint)


def _listed(row: Kind, cpus: tuple[str, ...]) -> str:
    return ", ".join(f"{row}:{cpu}" for cpu in cpus)


def emulator_kinds(emulation: Emulation | None, cpu: str) -> tuple[str, ...]:
    """Return the kinds of emulators that have a processor with all that `cpu` has."""
    return tuple(row.name for row in EMULATORS if emulation and emulation.having(cpu, row.cpus(emulation)))


def default_emulators(emulation: Emulation, cpu: str = "") -> Iterator[str]:
    """Yield the names of the emulators on which programs run when none is named, all of one kind together.

    `cpu` is the least processor that they are compiled for, empty for any. Without a default that has all its
    instructions it is the first processor that does, if there is one.
    """
    for row in EMULATORS:
        able = emulation.having(cpu, row.cpus(emulation))
        yield from (f"{row}:{name}" for name in [each for each in emulation.defaults if each in able] or able[:1])


def _open_host(name: DeviceName, to: Opening) -> "ProgramDevice":
    return to.rules.open_host(to.target, name.cores)


def _open_qemu_user(name: DeviceName, to: Opening) -> "ProgramDevice":
    from ortrim.devices import qemu
    from ortrim.sources.root_file_systems import machine_parts

    emulation = EMULATIONS[to.target.architecture.value]
    tool = require(emulation.user)
    return qemu.QemuUser(emulation, machine_parts(emulation, to.announce), tool, cpu=name.detail)


def _open_qemu_system(name: DeviceName, to: Opening) -> "ProgramDevice":
    from ortrim.devices import qemu
    from ortrim.sources.root_file_systems import machine_parts

    emulation, tool = EMULATIONS[to.target.architecture.value], require(MACHINE_TOOL)
    system = machine_parts(KERNEL, to.announce)
    parts = system if emulation is KERNEL else machine_parts(emulation, to.announce)
    machine = qemu.Machine(program=tool.path, cpu=name.detail, memory_mib=name.memory_mib, kernel=system.kernel)
    return qemu.QemuSystem(emulation, parts, tool, machine, shell=system.shell)


def _open_adb(name: DeviceName, to: Opening) -> "ProgramDevice":
    from ortrim.devices import adb

    device = adb.open_adb(name.detail or None, cores=name.cores, announce=to.announce)
    try:
        to.rules.require_fitting(device, to.target, to.job)
    except BaseException:
        device.close()
        raise
    return device


def _open_ssh(name: DeviceName, to: Opening) -> "ProgramDevice":
    from ortrim.devices import ssh

    return ssh.open_ssh(name.detail, cores=name.cores, announce=to.announce)


def _open_macho(_name: DeviceName, to: Opening) -> "ProgramDevice":
    from ortrim.devices import macho

    tool = macho_emulator(to.target)
    device = macho.open_macho(to.target, to.headers, require(tool) if tool else None, to.announce)
    to.rules.require_fitting(device, to.target, to.job)
    return device


def macho_emulator(target: Target) -> Tool | None:
    """Return what runs the code of an Apple target on this machine; None where its own processor does."""
    if has_processor_of(target):
        return None
    return X64_USER if target.architecture is Architecture.X64 else EMULATIONS[target.architecture.value].user


def _macho_ready(_name: DeviceName, target: Target) -> None:
    if tool := macho_emulator(target):
        require(tool)


def _open_simulator(name: DeviceName, to: Opening) -> "ProgramDevice":
    from ortrim.devices import simctl

    return simctl.open_simulator(name.detail, APPLE_ARCHITECTURES[to.target.architecture], announce=to.announce)


def _open_phone(name: DeviceName, to: Opening) -> "Device":
    """Nothing is asked of the phone before it is told what to run, with an app that is compiled by then."""
    from ortrim.devices import devicectl
    from ortrim.devices.harness_projects import HARNESS, job_app

    job = to.job
    assert job is not None
    make_app = partial(job_app, job, to.headers, folder=to.folder / HARNESS)
    return devicectl.open_phone(name.detail, make_app)


def _adb_ready(name: DeviceName, _target: Target) -> None:
    from ortrim.devices import adb

    adb.choose(adb.adb_devices(adb.find_adb()), name.detail or None)


def _read_destination(detail: str) -> str:
    from ortrim.devices.ssh import ssh_destination

    return ssh_destination(detail)


def _ssh_ready(name: DeviceName, _target: Target) -> None:
    from ortrim.devices import ssh

    client = ssh.SshClient(name.detail)
    client.connect()
    client.close()


def _targets(rules_of: RulesOf, fits: Callable[[DeviceRules, Target], bool]) -> tuple[str, ...]:
    return tuple(name for name, target in TARGETS.items() if fits(rules_of(target), target))


def _looked(line: ListedDevice, who: str, find: Callable[[], str], before: str = "") -> ListedDevice:
    """Return the line with what `find` says is there, or with the problem that it raises, as one of `who`."""
    try:
        return replace(line, found=before + find())
    except Diagnostic as error:
        problem = f"{who or error.where} {error.what}"
        return replace(line, problem=problem, remedy=error.hint.removeprefix("run: "))


def _by_tool(line: ListedDevice, tool: Tool) -> ListedDevice:
    def find() -> str:
        installed = require(tool)
        return f"{installed.name} {installed.version}"

    return _looked(line, tool.name, find)


def _list_host(rules_of: RulesOf) -> Iterator[ListedDevice]:
    names = _targets(rules_of, lambda rules, target: rules.runs_here(target))
    if not names:
        yield ListedDevice(name=HOST.name, problem=f"no target runs on {platform.system()} on {platform.machine()}")
        return
    first = TARGETS[names[0]]
    cpu = rules_of(first).open_host(first, ()).facts().cpu
    translated = ", ".join(name for name in names if rules_of(TARGETS[name]).translates(TARGETS[name]))
    found = f"{cpu} ({translated} by Rosetta 2)" if translated else cpu
    yield ListedDevice(name=HOST.name, targets=names, found=found)


def _list_qemu_user(rules_of: RulesOf) -> Iterator[ListedDevice]:
    for each in EMULATIONS.values():
        yield from _list_emulated(QEMU_USER, each.user, rules_of, (each,))


def _list_qemu_system(rules_of: RulesOf) -> Iterator[ListedDevice]:
    machines = tuple(each for each in EMULATIONS.values() if each.system_cpus)
    return _list_emulated(QEMU_SYSTEM, MACHINE_TOOL, rules_of, machines)


def _list_emulated(row: Kind, tool: Tool, rules_of: RulesOf, machines: tuple[Emulation, ...]) -> Iterator[ListedDevice]:
    targets = tuple(
        name for each in machines for name, target in TARGETS.items() if rules_of(target).emulation_of(target) is each
    )
    line = ListedDevice(name=row.name, targets=targets, memory=row.memory, time=row.time)
    line = _by_tool(line, tool)
    for cpu in dict.fromkeys(cpu for each in machines for cpu in row.cpus(each)):
        yield replace(line, name=f"{row}:{cpu}")


def _list_macho(rules_of: RulesOf) -> Iterator[ListedDevice]:
    """Yield what runs Apple's libraries here; of those for another processor only if that can be emulated."""
    able = [TARGETS[name] for name in _targets(rules_of, lambda rules, target: not rules.refusal(target, MACHO))]
    line = ListedDevice(name=MACHO.name, time=MACHO.time)
    if not able:
        yield replace(line, problem="runs on Linux alone", remedy="a Mac runs them itself: --device host")
        return
    emulators = {target.identifier: macho_emulator(target) for target in able}
    (tool,) = {tool for tool in emulators.values() if tool}
    found = _by_tool(line, tool)
    names = tuple(name for name, needed in emulators.items() if not (needed and found.problem))
    other = found.problem or f"{found.found} for another, with parity alone"
    yield replace(found, targets=names, found=f"this machine's processor; {other}", problem="")


def _list_adb(_rules_of: RulesOf) -> Iterator[ListedDevice]:
    from ortrim.devices import adb

    form = ListedDevice(name=ADB.listed_form)
    try:
        seen = adb.adb_devices(adb.find_adb())
    except Diagnostic as error:
        yield replace(form, problem=error.what, remedy=error.hint.removeprefix("run: "))
        return
    if not seen:
        yield replace(form, problem="adb sees no device", remedy=adb.CONNECT_HINT)
    for listing in seen:
        name = DeviceName(kind=ADB.name, detail=listing.serial)
        line = ListedDevice(name=str(name), time=not name.is_emulator, found=listing.model)
        remedy = "look at the device's screen, and at the output of: adb devices -l"
        yield line if listing.online else replace(line, problem=f"is {listing.state}", remedy=remedy)


def _list_ssh(_rules_of: RulesOf) -> Iterator[ListedDevice]:
    from ortrim.devices import ssh

    yield _by_tool(ListedDevice(name=SSH.form), ssh.TOOL)


def _list_simulators(_rules_of: RulesOf) -> Iterator[ListedDevice]:
    """Yield the form of simulators' names, with which one is taken without a name."""
    from ortrim.devices import simctl

    targets = [target for target in TARGETS.values() if is_simulated(target)]
    here = [target for target in targets if on_mac_of(target)] or targets
    names = tuple(target.identifier for target in here)
    line = ListedDevice(name=SIMCTL.listed_form, targets=names, memory=SIMCTL.memory, time=SIMCTL.time)
    yield _looked(line, "", partial(simctl.simulators_text, APPLE_ARCHITECTURES[here[0].architecture]))


def _list_phones(rules_of: RulesOf) -> Iterator[ListedDevice]:
    """Yield each phone that this Mac sees, or why it sees none."""
    from ortrim.devices import devicectl

    form = ListedDevice(
        name=DEVICECTL.listed_form,
        targets=_targets(rules_of, lambda rules, target: not rules.refusal(target, DEVICECTL)),
    )
    try:
        seen = devicectl.list_phones(find_xcrun(DEVICECTL.name))
    except Diagnostic as error:
        yield replace(form, problem=f"{error.where} {error.what}", remedy=error.hint.removeprefix("run: "))
        return
    if not seen:
        yield replace(form, problem="this Mac sees no phone", remedy=devicectl.CONNECT_HINT)
    for phone in seen:
        found, (problem, remedy) = " · ".join(filter(None, (phone.model, phone.system))), phone.obstacle
        yield replace(form, name=phone.device, found=found, problem=problem, remedy=remedy)


def _firebase() -> "tuple[Callable[[], Farm], Callable[[], str]]":
    """Return what opens Test Lab, and what finds its program."""
    from ortrim.devices.farms import firebase

    return lambda: firebase.FirebaseFarm(gcloud=firebase.find_gcloud()), firebase.found


def _device_farm() -> "tuple[Callable[[], Farm], Callable[[], str]]":
    """Return what opens AWS Device Farm, and what finds its library."""
    from ortrim.devices.farms import aws_device_farm

    return aws_device_farm.DeviceFarm, aws_device_farm.found_boto3


def _farm(name: str, form: str, tool: str, reach: "Callable[[], tuple[Callable[[], Farm], Callable[[], str]]]") -> Kind:
    """Return the row of a farm, which is reached by a `tool`."""

    def opened(named: DeviceName, to: Opening) -> "Device":
        """As for a phone, nothing is asked of the farm yet."""
        from ortrim.devices.device import device_folder
        from ortrim.devices.farms.farm import FarmDevice
        from ortrim.devices.harness_projects import HARNESS, job_apks

        job = to.job
        assert job is not None
        return FarmDevice(
            farm=reach()[0](),
            device=named.detail,
            make_apks=partial(job_apks, job, folder=to.folder / HARNESS),
            folder=to.folder / FARM_RESULTS / device_folder(str(named)),
            tell=to.announce,
        )

    def line(targets: tuple[str, ...] = ()) -> ListedDevice:
        return _looked(ListedDevice(name=form, targets=targets), f"{tool}:", reach()[1], f"{tool} ")

    def listed(rules_of: RulesOf) -> Iterator[ListedDevice]:
        yield line(_targets(rules_of, lambda rules, target: not rules.refusal(target, row)))

    def ready(named: DeviceName, _target: Target) -> None:
        found = line()
        if found.problem:
            raise VerifyError("no-device", found.problem, where=f"--device {named}", hint=found.remedy)

    row = Kind(name=name, form=form, reach="farm", open=opened, list=listed, ready=ready)
    return row


HOST: Final = Kind(name="host", form="host", reach="here", is_here=True, cores=True, open=_open_host, list=_list_host)
QEMU_USER: Final = Kind(
    name="qemu-user",
    form="qemu-user[:CPU]",
    reach="emulated",
    memory=False,
    time=False,
    is_here=True,
    parts=True,
    open=_open_qemu_user,
    list=_list_qemu_user,
    ready=lambda _name, target: require(EMULATIONS[target.architecture.value].user),
)
QEMU_SYSTEM: Final = Kind(
    name="qemu-system",
    form="qemu-system[:CPU][@MIB]",
    reach="emulated",
    time=False,
    is_here=True,
    ceiling=True,
    parts=True,
    open=_open_qemu_system,
    list=_list_qemu_system,
    ready=lambda _name, _target: require(MACHINE_TOOL),
)
MACHO: Final = Kind(
    name="macho",
    form="macho",
    reach="apple",
    time=False,
    is_here=True,
    parts=True,
    open=_open_macho,
    list=_list_macho,
    ready=_macho_ready,
)
ADB: Final = Kind(
    name="adb",
    form="adb[:SERIAL]",
    reach="remote",
    cores=True,
    emulators=re.compile(r"emulator-[0-9]+"),
    open=_open_adb,
    list=_list_adb,
    ready=_adb_ready,
)
SSH: Final = Kind(
    name="ssh",
    form="ssh:[USER@]HOST[:PORT]",
    reach="remote",
    cores=True,
    read=_read_destination,
    open=_open_ssh,
    list=_list_ssh,
    ready=_ssh_ready,
)
SIMCTL: Final = Kind(
    name="simctl",
    form="simctl[:NAME]",
    reach="apple",
    memory=False,
    time=False,
    is_here=True,
    open=_open_simulator,
    list=_list_simulators,
)
DEVICECTL: Final = Kind(name="devicectl", form="devicectl[:NAME]", reach="apple", open=_open_phone, list=_list_phones)
FIREBASE: Final = _farm("firebase", "firebase:MODEL-VERSION", "gcloud", _firebase)
DEVICE_FARM: Final = _farm("devicefarm", "devicefarm:PROJECT/POOL", "boto3", _device_farm)
ROWS: Final = (HOST, QEMU_USER, QEMU_SYSTEM, MACHO, ADB, SSH, SIMCTL, DEVICECTL, FIREBASE, DEVICE_FARM)
EMULATORS: Final = (QEMU_USER, QEMU_SYSTEM)
KINDS: Final[Mapping[str, Kind]] = MappingProxyType({row.name: row for row in ROWS})
FORMS: Final = ", ".join(row.form for row in ROWS)
FARMS: Final = ", ".join(row.form for row in ROWS if row.reach == "farm")


def list_devices(rules_of: RulesOf) -> tuple[ListedDevice, ...]:
    """Return what can be verified on, ready or not, this machine's first.

    Raises nothing for what is missing: its line says so.
    """
    return tuple(line for row in sorted(ROWS, key=lambda row: not row.is_here) for line in row.list(rules_of))


def fetch_machines(announce: Announce) -> None:
    """Fetch the parts of every emulated machine that the cache does not hold."""
    from ortrim.sources.root_file_systems import machine_parts

    for emulation in EMULATIONS.values():
        machine_parts(emulation, announce)
