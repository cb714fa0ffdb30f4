"""A device that goes away in a push, in a run, in a pull: each is a lost device, and nothing stays once it is back."""

import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from adb_machine import AdbMachine, adb_machine
from adb_virtual_machine import AdbVirtualMachine, adb_virtual_machine
from android_root import android_root
from device_kinds import HOST_TARGET
from failing_runs import run_refused
from fake_runtime import VALUES, Programs, fake_request
from network_kernel import network_kernel
from ortrim.base.command import Completed
from ortrim.base.tools import Program
from ortrim.devices.adb import open_adb
from ortrim.devices.device import ProgramDevice
from ortrim.parity.inputs import load_array
from ortrim.parity.runner import RunRequest
from running import processes_in

pytestmark = [pytest.mark.network, pytest.mark.needs("adb", "apt-get", "dpkg-deb")]
STEPS = ("push", "run", "pull")
DISK_MIB = 112
MEANWHILE_SECONDS = 0.7
"""After which the other end goes away, while the step is under way; each takes longer."""


class CutClient(Program):
    """adb, with something that happens meanwhile from the first command on that has a word in it."""

    word: str
    before: Callable[[], None]
    meanwhile: Callable[[], None]

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:
        if self.word not in " ".join(map(str, words)):
            return super().run(*words, timeout_seconds=timeout_seconds)
        object.__setattr__(self, "word", "never again")
        self.before()
        timer = threading.Timer(MEANWHILE_SECONDS, self.meanwhile)
        timer.start()
        try:
            return super().run(*words, timeout_seconds=timeout_seconds)
        finally:
            timer.join()


def cut_client(
    client: Program, word: str, meanwhile: Callable[[], None], before: Callable[[], None] = lambda: None
) -> CutClient:
    made = CutClient(path=client.path, environment=client.environment)
    for name, value in {"word": word, "before": before, "meanwhile": meanwhile}.items():
        object.__setattr__(made, name, value)
    return made


ENDS = {"large 150": "output-unwritable", "allocate 600": "runner-crashed", "full": "device-full"}
"""What becomes of a library that saves, or takes, more than there is."""
WORDS = {"push": " push ", "run": "/runner", "pull": " pull "}


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder for this side's temporary files, and see that nothing stays there."""
    folder = Path(tempfile.mkdtemp(prefix="ortrim-lost-", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert (list(folder.iterdir()), processes_in(folder)) == ([], [])
    folder.rmdir()


def lose(device: ProgramDevice, request: RunRequest) -> None:
    """Make a run in which the device goes away; its verdict says which device, and what to do."""
    error = run_refused(device, request)
    assert (error.code, error.where) == ("device-lost", device.name)
    assert "adb devices -l" in error.hint


@pytest.fixture(scope="module")
def phone() -> Iterator[AdbMachine]:
    """Run a machine whose adbd can be killed, and started again."""
    with adb_machine({}) as machine:
        yield machine


@pytest.mark.needs("unshare")
@pytest.mark.parametrize("step", STEPS)
def test_a_cable_that_is_pulled(
    phone: AdbMachine, programs: Programs, temporary: Path, tmp_path: Path, step: str
) -> None:
    """The device is lost; when it is back, closing it removes what was there, and no runner outlives its limit."""
    client = cut_client(phone.client, WORDS[step], phone.kill_daemon, before=phone.stop_daemon)
    device = open_adb(phone.serials[0], client=client)
    behaviour, seconds = ("hang", 5.0) if step == "run" else ("large 8", 60.0)
    lose(device, fake_request(tmp_path, programs(HOST_TARGET), behaviour, seconds=seconds))
    assert client.word == "never again"
    phone.revive_daemons()
    phone.wait_until_gone("runner --library")
    with closing(open_adb(phone.serials[0], client=phone.client)) as again:
        again.run(fake_request(tmp_path / "again", programs(HOST_TARGET), "good"))
    device.close()
    assert phone.inside("find", "/data/local/tmp", "-mindepth", "1").stdout == ""


@pytest.fixture
def machine() -> Iterator[AdbVirtualMachine]:
    """Run an arm64 machine for one test, which may kill it."""
    with adb_virtual_machine(disk_mib=DISK_MIB) as made:
        yield made


@pytest.mark.needs("qemu-system-aarch64")
@pytest.mark.parametrize("step", STEPS)
def test_a_machine_that_dies(
    machine: AdbVirtualMachine, programs: Programs, temporary: Path, tmp_path: Path, step: str
) -> None:
    """A device that is switched off is lost at once, at whichever step, and nothing of it stays on this side."""
    client = cut_client(machine.client, WORDS[step], machine.kill)
    request = fake_request(tmp_path, programs("linux-arm64"), "hang" if step == "run" else "large 64")
    if step == "push":
        request.model.write_bytes(b"large 64 " + bytes(96 << 20))
    with closing(open_adb(machine.serial, client=client)) as device:
        lose(device, request)
    assert client.word == "never again"
    assert machine.process.poll() is not None
    assert processes_in(machine.folder) == []


def test_what_the_machine_is_made_of_is_written_down() -> None:
    """adbd, its libraries and the kernel come from apt's signed index, each with its version and digest."""
    records = [android_root("aarch64").parent / "packages.json", network_kernel() / "packages.json"]
    packages = {entry["name"]: entry for record in records for entry in json.loads(record.read_text())}
    assert {"adbd", "libc6", "mksh", "toybox"} < set(packages)
    assert any(name.startswith("linux-image-") for name in packages)
    assert all(re.fullmatch("[0-9a-f]{64}", entry["sha256"]) and entry["version"] for entry in packages.values())
    assert {entry["architecture"] for entry in packages.values()} == {"arm64"}


@pytest.mark.needs("qemu-system-aarch64")
def test_an_arm64_machine_behind_adb(
    machine: AdbVirtualMachine, programs: Programs, temporary: Path, tmp_path: Path
) -> None:
    """Its disk fills up, its memory runs out, and it goes on all the same; nothing stays on it."""
    with closing(open_adb(machine.serial, client=machine.client)) as device:
        facts = device.facts()
        assert (facts.machine, facts.cpu, facts.kind, facts.time_meaningful) == ("aarch64", "Cortex-A76", "vm", False)
        for number, (behaviour, reference) in enumerate(ENDS.items()):
            request = fake_request(tmp_path / f"{number}", programs("linux-arm64"), behaviour)
            # A model that is too large for the disk, too; the library reads its first words.
            size = DISK_MIB << 20 if behaviour == "full" else 10
            request.model.write_bytes(behaviour.encode() + b" " * size)
            assert run_refused(device, request).code == reference
        device.run(fake_request(tmp_path / "good", programs("linux-arm64"), "good"))
    assert np.array_equal(load_array(tmp_path / "good/outputs/only/output_000.npy"), 2 * VALUES)
    assert machine.shell("find /data/local/tmp -mindepth 1").stdout == ""
    assert machine.processes("runner --library") == []
