"""The demo's library for ARM64 through adb into an emulated machine, when it was built here."""

from contextlib import closing
from pathlib import Path

import pytest

from adb_virtual_machine import adb_virtual_machine
from built_here import built_here, parity_on
from ortrim.core.measurements import Verdict
from ortrim.verify.devices.adb import open_adb

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("adb", "apt-get", "dpkg-deb", "qemu-system-aarch64"),
]


@pytest.mark.parametrize("cpu", ["cortex-a53", "cortex-a76"])
def test_the_demo_is_in_parity_through_adb(tmp_path: Path, cpu: str) -> None:
    """An Android-like machine that adb reaches over loopback runs the runner and the library as a phone does."""
    built = built_here("linux-arm64", tmp_path / "artifacts")
    with adb_virtual_machine(cpu=cpu) as machine:
        with closing(open_adb(machine.serial, client=machine.client)) as device:
            found = parity_on(device, built, tmp_path)
            facts = device.facts()
        assert machine.shell("find /data/local/tmp -mindepth 1").stdout == ""
        assert machine.processes("runner --library") == []
    assert found
    assert {output.verdict for output in found} == {Verdict.PASS}, found
    assert (facts.machine, facts.kind, facts.cpu.lower()) == ("aarch64", "vm", cpu)
    assert (facts.memory_meaningful, facts.time_meaningful) == (True, False)
