"""Every kind of device, each with a machine of its own behind it, and what is left on it of processes and files."""

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import pytest

from adb_machine import adb_machine
from adb_virtual_machine import adb_virtual_machine
from fake_runtime import device_called
from ortrim.base.command import Completed
from ortrim.base.tools import Program
from ortrim.devices.adb import BASE, open_adb
from ortrim.devices.device import ProgramDevice
from ortrim.devices.ssh import open_ssh
from running import running
from ssh_machine import ssh_machine

HOST_TARGET: Final = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}.get(platform.machine(), "")
RUNNER: Final = "runner --library"


class Opening(Protocol):
    """How to open a device; can be pickled for another process."""

    def __call__(self) -> ProgramDevice:
        """Open it."""


@dataclass(frozen=True, kw_only=True)
class ByName:
    name: str
    target: str

    def __call__(self) -> ProgramDevice:
        return device_called(self.name, self.target)


@dataclass(frozen=True, kw_only=True)
class ByAdb:
    serial: str
    program: Path
    environment: tuple[tuple[str, str], ...]

    def __call__(self) -> ProgramDevice:
        return open_adb(self.serial, client=Program(path=self.program, environment=dict(self.environment)))


@dataclass(frozen=True, kw_only=True)
class BySsh:
    configuration: Path
    base: str

    def __call__(self) -> ProgramDevice:
        return open_ssh("board", configuration=self.configuration, base=self.base)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of device: the target whose programs it runs, how it is opened, and what there is on its machine."""

    name: str
    target: str
    opening: Opening
    processes: Callable[[], list[str]]
    files: Callable[[], list[str]]
    busy: Callable[[Path], bool]


def runners_of(place: Path) -> list[str]:
    """Return the command lines of this machine's runners that have a folder in them, emulated ones too."""
    return [line for line in running().splitlines() if RUNNER in line and str(place) in line]


@contextmanager
def _local(name: str, target: str, place: Path) -> Iterator[Kind]:
    yield Kind(
        name=name,
        target=target,
        opening=ByName(name=name, target=target),
        processes=lambda: runners_of(place),
        files=list,
        busy=lambda _: bool(runners_of(place)),
    )


@contextmanager
def _qemu_system(_: Path) -> Iterator[Kind]:
    def begun(temporary: Path) -> bool:
        return any(b"@@BEGIN" in answer.read_bytes() for answer in temporary.glob("*/answer"))

    name = "qemu-system:cortex-a53"
    opening = ByName(name=name, target="linux-arm64")
    # The machine ends with its run, and all that is in it; qemu itself is a process of this machine.
    yield Kind(name=name, target="linux-arm64", opening=opening, processes=list, files=list, busy=begun)


def _runners_in(lines: list[str]) -> list[str]:
    """Return the lines whose program is a runner; of a program's path, toybox prints the name alone."""
    return [line for line in lines if line.split()[1:3] == ["runner", "--library"]]


def _lines(done: Completed) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def by_adb(client: Program, serial: str) -> ByAdb:
    return ByAdb(serial=serial, program=client.path, environment=tuple(client.environment.items()))


@contextmanager
def _adb(_: Path) -> Iterator[Kind]:
    with adb_machine({}) as machine:
        yield Kind(
            name="adb",
            target=HOST_TARGET,
            opening=by_adb(machine.client, machine.serials[0]),
            processes=lambda: _runners_in(machine.processes(RUNNER)),
            files=lambda: _lines(machine.inside("find", BASE, "-mindepth", "1")),
            busy=lambda _: bool(_runners_in(machine.processes(RUNNER))),
        )


@contextmanager
def _adb_machine(_: Path) -> Iterator[Kind]:
    with adb_virtual_machine(cpu="cortex-a53", disk_mib=64) as machine:
        yield Kind(
            name="adb-machine",
            target="linux-arm64",
            opening=by_adb(machine.client, machine.serial),
            processes=lambda: _runners_in(machine.processes(RUNNER)),
            files=lambda: _lines(machine.shell(f"find {BASE} -mindepth 1")),
            busy=lambda _: bool(_runners_in(machine.processes(RUNNER))),
        )


@contextmanager
def _ssh(_: Path) -> Iterator[Kind]:
    with ssh_machine() as machine:
        yield Kind(
            name="ssh",
            target=HOST_TARGET,
            opening=BySsh(configuration=machine.configuration, base=str(machine.work)),
            processes=lambda: runners_of(machine.work),
            files=lambda: [str(path) for path in machine.work.rglob("*")],
            busy=lambda _: bool(runners_of(machine.work)),
        )


KINDS: Final[Mapping[str, Callable[[Path], AbstractContextManager[Kind]]]] = {
    "host": partial(_local, "host", HOST_TARGET),
    "qemu-user": partial(_local, "qemu-user:cortex-a53", "linux-arm64"),
    "qemu-system": _qemu_system,
    "adb": _adb,
    "adb-machine": _adb_machine,
    "ssh": _ssh,
}
"""What runs a machine of each kind; runners on this machine are found by the folder in which they were compiled."""
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "host": (),
    "qemu-user": ("apt-get", "qemu-aarch64-static"),
    "qemu-system": ("apt-get", "qemu-system-aarch64"),
    "adb": ("adb", "apt-get", "dpkg-deb", "unshare"),
    "adb-machine": ("adb", "apt-get", "dpkg-deb", "qemu-system-aarch64"),
    "ssh": ("sshd",),
}
EVERY_KIND: Final = [pytest.param(name, marks=pytest.mark.needs(*NEEDS[name])) for name in KINDS]
"""For `pytest.mark.parametrize`, each with the tools that it takes."""
