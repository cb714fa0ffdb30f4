"""The demo for Android on Android's own linker and C library, which `ORTRIM_BIONIC` names, through adb."""

from pathlib import Path

import pytest

from adb_builds import verified_demo
from bionic_machine import bionic_machine, bionic_virtual_machine, find_bionic

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("adb", "apt-get", "dpkg-deb", "unshare", "bionic-binaries"),
]


@pytest.mark.parametrize("which", [0, -1])
def test_the_demo_is_verified_on_bionic(which: int, tmp_path: Path) -> None:
    """The library is in parity; an emulator's memory and time are evaluated nowhere; nothing stays on the device."""
    bionic = find_bionic()
    assert bionic is not None
    with bionic_machine(bionic, bionic.cpus[which]) as machine:
        target = f"android-{bionic.abi}"
        found = verified_demo(machine.client, machine.serials[0], target, tmp_path / "output")
        assert machine.shell("find /data/local/tmp -mindepth 1").stdout == ""
        assert machine.processes("runner --library") == []
    assert (found["verdict"], found["failure"]) == ("pass", None)
    assert {output["verdict"] for output in found["parity"]} == {"pass"}
    host = found["host"]
    assert host["abi"] == bionic.abi
    assert (host["kind"], host["memory_meaningful"]) == (
        ("user-emulation", False) if bionic.emulated else ("emulator", True)
    )
    assert not host["time_meaningful"]
    of_memory = [part for part in found["comparisons"] if "RSS" in part["measure"]]
    if bionic.emulated:
        assert {part["verdict"] for part in of_memory} <= {"not judged"}


@pytest.mark.needs("qemu-system-aarch64")
def test_the_demo_is_verified_with_large_pages(tmp_path: Path) -> None:
    """On a kernel with pages of 16 KB, which Android's newer phones have, every output is in parity."""
    bionic = find_bionic()
    assert bionic is not None
    if bionic.abi != "arm64-v8a":
        pytest.skip(f"the kernel is for arm64, and ORTRIM_BIONIC has {bionic.abi}")
    with bionic_virtual_machine(bionic) as machine:
        found = verified_demo(machine.client, machine.serial, f"android-{bionic.abi}", tmp_path / "output")
    assert (found["verdict"], found["failure"]) == ("pass", None)
    assert {output["verdict"] for output in found["parity"]} == {"pass"}
    host = found["host"]
    assert (host["page_bytes"], host["kind"], host["time_meaningful"]) == (16384, "emulator", False)
