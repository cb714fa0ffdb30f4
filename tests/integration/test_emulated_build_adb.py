"""The demo for ARM64 through adb: built here, and verified in an emulated machine as on a phone, by the command line.

What was compiled here before is not compiled again.
"""

from pathlib import Path

import pytest

from adb_builds import verified_demo
from adb_virtual_machine import adb_virtual_machine

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("adb", "apt-get", "dpkg-deb", "qemu-system-aarch64"),
]


@pytest.mark.parametrize("cpu", ["cortex-a53", pytest.param("cortex-a76", marks=pytest.mark.slow)])
def test_the_demo_is_verified_through_adb(tmp_path: Path, cpu: str) -> None:
    """The same library as everywhere is in parity there, its memory is measured, and nothing stays on the machine."""
    with adb_virtual_machine(cpu=cpu) as machine:
        found = verified_demo(machine.client, machine.serial, "linux-arm64", tmp_path / "output")
        assert machine.shell("find /data/local/tmp -mindepth 1").stdout == ""
        assert machine.processes("runner --library") == []
    assert (found["verdict"], found["failure"]) == ("pass", None)
    assert {output["verdict"] for output in found["parity"]} == {"pass"}
    host = found["host"]
    assert (host["machine"], host["kind"], host["cpu"].lower()) == ("aarch64", "vm", cpu)
    assert (host["memory_meaningful"], host["time_meaningful"]) == (True, False)
    (peak,) = (part for part in found["comparisons"] if part["measure"] == "peak RSS")
    assert 10**6 < peak["ours"] < 10**8
    assert {part["verdict"] for part in found["comparisons"] if part["measure"] == "load"} == {"not judged"}
