"""Devices by their names on the command line: what a name means, before anything is opened.

- One line of the list of devices.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from ortrim.buildspec.targets import Target
from ortrim.devices.emulators import emulated_cpu, emulated_machine
from ortrim.devices.kinds import FARMS, FORMS, HOST, KINDS, SSH, DeviceRules, Kind
from ortrim.devices.qemu_system import DEFAULT_MEMORY_MIB
from ortrim.devices.ssh import require_destination
from ortrim.errors import Diagnostic, UsageError

WITH_PORT: Final = re.compile(r"(?:[^@:/]+@)?(?:[^@:/\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")


@dataclass(frozen=True, kw_only=True)
class DeviceName:
    """A device that is asked for: the processor to emulate, the serial number, or the destination is its `detail`.

    As a string it is the name that the device itself has; `adb` without a serial number gets one when it is opened, as
    `simctl` and `devicectl` without a name get theirs.
    `cores` are those that runs there are kept on, all when it is empty.
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
        return (row.is_here and row is not HOST) or bool(row.emulators and row.emulators.fullmatch(self.detail))

    @property
    def takes_cores(self) -> bool:
        """Whether runs there can be kept on chosen cores: an emulator has no cores of its own, a farm no such wish."""
        return self.row.cores

    def on(self, cores: tuple[int, ...]) -> "DeviceName":
        """Return the same device, its runs kept on `cores` if it takes any."""
        return replace(self, cores=cores) if self.takes_cores else self


def read_names(rules: DeviceRules, target: Target, names: tuple[str, ...], cpu: str = "") -> tuple[DeviceName, ...]:
    """Return what these names mean. Raises `UsageError`: `device-twice`, and as `read_name` does."""
    found: list[DeviceName] = []
    for name in names:
        device = read_name(rules, target, name, cpu)
        if device in found:
            raise UsageError("device-twice", "the same device is given twice", where=f"--device {name}")
        found.append(device)
    return tuple(found)


def read_name(rules: DeviceRules, target: Target, name: str, cpu: str = "") -> DeviceName:
    """Return what a name means for a target whose library takes `cpu` for granted, any of its architecture if empty.

    `rules` are those of the target's platform. Raises `UsageError`: `unknown-device`, `wrong-device` (it cannot run
    programs for the target, or it lacks instructions of `cpu`), `bad-destination`.
    """
    kind, _, detail = name.partition(":")
    # A processor is optional, and its memory may follow the kind directly: qemu-system@128.
    kind, at, memory = kind.partition("@")
    row = KINDS.get(kind)
    if row is None or (at and (detail or not row.ceiling)):
        _unknown(name, f"there are: {FORMS}; invoke devices lists the available ones")
    if row.ceiling:
        emulated, memory_mib = emulated_machine(rules, target, row, detail + at + memory, cpu)
        return DeviceName(kind=kind, detail=emulated, memory_mib=memory_mib)
    if row.reach == "emulated":
        return DeviceName(kind=kind, detail=emulated_cpu(rules, target, row, detail, cpu))
    if row is HOST and detail:
        _unknown(name, f"there are: {FORMS}")
    if why := rules.refusal(target, row):
        raise UsageError("wrong-device", why, where=f"--device {kind}", hint=f"choose {rules.kinds_for(target)}")
    if row.reach == "farm" and not detail:
        _unknown(kind, f"say which of its devices: {FARMS}")
    return DeviceName(kind=kind, detail=require_destination(ssh_destination(detail)) if row is SSH else detail)


def ssh_destination(detail: str) -> str:
    """Return what `ssh` takes for `user@host:port`; what is without a port it takes as it is."""
    return f"ssh://{detail}" if WITH_PORT.fullmatch(detail) else detail


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
    targets: tuple[str, ...] = ()
    memory: bool = True
    time: bool = True
    found: str = ""
    problem: str = ""
    remedy: str = ""

    def with_tool(self, find: Callable[[], str], problem: Callable[[Diagnostic], str]) -> "ListedDevice":
        """Return the line with what `find` says is there, or with the problem, if it raises one."""
        try:
            return replace(self, found=find())
        except Diagnostic as error:
            return replace(self, problem=problem(error), remedy=error.hint.removeprefix("run: "))
