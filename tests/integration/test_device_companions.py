"""A library that needs another beside it, as with `c++_shared`, on devices of every kind: Linux stands in for Bionic.

Bionic's loader, like glibc's, takes an open library for the one of that soname that is needed. musl's looks for files
alone; no build of ours for musl has a companion.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adb_machine import adb_machine
from failing_runs import run_refused
from fake_runtime import COMPANION, VALUES, Programs, device_called, fake_request
from harness_farm import FakeFarm, carry_out
from ortrim.devices.adb import open_adb
from ortrim.devices.device import ProgramDevice
from ortrim.devices.farms.farm import FarmDevice
from ortrim.devices.host import Host
from ortrim.parity.inputs import load_array
from ortrim.parity.runner import RunRequest

pytestmark = [pytest.mark.network]


@pytest.fixture(name="adb")
def fixture_adb() -> Iterator[ProgramDevice]:
    """Open a device behind adb: this machine's programs, in namespaces of their own."""
    with adb_machine({}) as machine, closing(open_adb(machine.serials[0], client=machine.client)) as device:
        yield device


def needy(folder: Path, programs: Path) -> RunRequest:
    return replace(fake_request(folder, programs, "good"), library=programs / "libneedy.so")


def check_both_ways(device: ProgramDevice, folder: Path, programs: Path) -> None:
    """Hold that the library cannot be opened without its companion, says which it lacks, and runs with it."""
    alone = needy(folder, programs)
    error = run_refused(device, alone)
    assert error.code == "library-refused"
    assert "libc++_shared.so" in error.why
    device.run(replace(alone, companions=(programs / COMPANION,)))
    assert load_array(folder / "outputs" / "only" / "output_000.npy").tolist() == (2 * VALUES).tolist()


def test_here(programs: Programs, tmp_path: Path) -> None:
    """On this machine the companion stays where it is."""
    check_both_ways(Host(), tmp_path, programs("linux-x64"))


@pytest.mark.needs("adb", "apt-get", "dpkg-deb", "unshare")
def test_behind_adb(adb: ProgramDevice, programs: Programs, tmp_path: Path) -> None:
    """It is pushed beside the library; nothing in the shell's environment leads there."""
    check_both_ways(adb, tmp_path, programs("linux-x64"))


@pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-system-aarch64")
@pytest.mark.parametrize("name", ["qemu-user:cortex-a53", "qemu-system:cortex-a53"])
def test_in_emulators(programs: Programs, tmp_path: Path, name: str) -> None:
    check_both_ways(device_called(name), tmp_path, programs("linux-arm64"))


def test_in_the_app_of_a_farm(programs: Programs, tmp_path: Path) -> None:
    """It lies among the app's libraries under the name that it is needed by."""
    request = replace(needy(tmp_path, programs("linux-x64")), companions=(programs("linux-x64") / COMPANION,))
    farm = FakeFarm(carry_out)
    device = FarmDevice(farm=farm, device="Pixel8-34", make_apks=farm.make_apks, folder=tmp_path / "farm")
    assert len(list(device.run_all((request,)))) == 1
    assert load_array(tmp_path / "outputs" / "only" / "output_000.npy").tolist() == (2 * VALUES).tolist()


@pytest.mark.parametrize("given", ["absent.so", "runner"])
def test_companions_that_cannot_be_opened(programs: Programs, tmp_path: Path, given: str) -> None:
    """What is absent or no library is refused as the library itself is, and named."""
    request = needy(tmp_path, programs("linux-x64"))
    wrong = programs("linux-x64") / given
    error = run_refused(Host(), replace(request, companions=(wrong,)))
    assert error.code == "library-refused"
    assert Path(given).name in error.why
