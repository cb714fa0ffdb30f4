"""`invoke devices` at its boundary."""

from collections.abc import Callable

import pytest

from ortrim.cli.tasks import setup
from ortrim.devices.kinds import ListedDevice
from ortrim.errors import SourcesError
from program_runs import Run

READY = ListedDevice(name="host", targets=("linux-x64",), memory=True, time=True, found="AMD EPYC")
ABSENT = ListedDevice(
    name="qemu-user:rv64",
    targets=("linux-riscv64",),
    memory=False,
    time=False,
    found="",
    problem="qemu-riscv64-static is not installed",
    remedy="apt-get install qemu-user-static",
)
PHONE = ListedDevice(name="adb:\x1b[2J", targets=(), memory=True, time=False, found="evil \x1b[31m")


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """List three devices without looking for any."""
    monkeypatch.setattr(setup, "list_devices", lambda _rules_of: (READY, ABSENT, PHONE))


def test_devices_are_listed(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a line: what it runs, what it measures, what to do; names from outside cannot steer the terminal."""
    monkeypatch.setenv("COLUMNS", "200")
    ended = ortrim("devices")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    rows = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "ok host linux-x64 parity, memory, time AMD EPYC" in rows
    assert any(row.startswith("absent qemu-user:rv64 linux-riscv64 parity qemu-riscv64-static is not") for row in rows)
    assert any("the device says parity, memory" in row for row in rows)


def test_devices_as_data(ortrim: Run) -> None:
    first, second, _ = ortrim("devices", "--json").document()
    assert (first["name"], first["targets"], first["memory"], first["problem"]) == ("host", ["linux-x64"], True, "")
    assert second["remedy"] == "apt-get install qemu-user-static"


def test_machines_are_fetched_when_asked_for(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fetch(announce: Callable[[str], None]) -> None:
        calls.append("fetched")
        announce("fetch it all")

    monkeypatch.setattr(setup, "fetch_machines", fetch)
    assert ortrim("devices").code == 0
    assert calls == []
    ended = ortrim("devices", "--fetch")
    assert (ended.code, calls) == (0, ["fetched"])
    assert "fetch it all" in ended.out + ended.err


def test_a_fetch_that_fails(ortrim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the code of sources and its reference, in JSON too."""

    def refuse(_announce: object) -> None:
        raise SourcesError("apt-missing", "there is no apt-get here")

    monkeypatch.setattr(setup, "fetch_machines", refuse)
    ended = ortrim("devices", "--fetch", "--json")
    assert (ended.code, ended.document()["errors"][0]["code"]) == (14, "apt-missing")
