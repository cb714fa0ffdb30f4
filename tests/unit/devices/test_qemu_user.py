import os
from pathlib import Path

import pytest

from device_samples import GOOD, sample_request
from failing_runs import run_refused
from fake_machine import fake_parts, fake_tool
from ortrim.base.tools import EMULATIONS
from ortrim.devices.qemu import QemuUser

EMULATE = 'while [ "$1" != -cpu ]; do shift; done; shift 2; exec "$@"'


def device_with(tmp_path: Path, script: str = EMULATE) -> QemuUser:
    """Make a device whose qemu is a shell script, by default one that runs what it is given."""
    tool = fake_tool(tmp_path / "qemu", script, name="qemu-aarch64-static")
    return QemuUser(EMULATIONS["arm64"], fake_parts(tmp_path / "parts"), tool, cpu="cortex-a53")


@pytest.mark.parametrize(
    "said",
    [
        "qemu-aarch64-static: /x/runner: Invalid ELF image for this architecture",
        "qemu-aarch64-static: Could not open '/lib/ld-linux-aarch64.so.1': No such file or directory",
    ],
)
def test_a_runner_that_qemu_cannot_load(tmp_path: Path, said: str) -> None:
    """What qemu 7.2 says of a program for another processor, or without its linker, is reported in its own words."""
    error = run_refused(device_with(tmp_path, f'echo "{said}" >&2; exit 255'), sample_request(tmp_path))
    assert (error.code, error.where, error.why) == ("runner-not-startable", "qemu-user:cortex-a53", said)


def test_an_end_with_255_is_the_runners_own(tmp_path: Path) -> None:
    """Without qemu's words, its exit code for a program that it cannot load means nothing."""
    script = "echo 'runner: Could not open the model' >&2; exit 255"
    assert run_refused(device_with(tmp_path), sample_request(tmp_path, script)).code == "runner-failed"


def test_memory_dumps_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crashed program's memory is written where qemu runs, which is a folder that goes away."""
    monkeypatch.chdir(tmp_path)
    request = sample_request(tmp_path / "request", "echo memory >qemu_runner.core; kill -SEGV $$")
    before = set(tmp_path.iterdir())
    device = device_with(tmp_path)
    run_refused(device, request)
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"qemu", "parts"}
    assert not list(tmp_path.rglob("*.core"))


def test_a_qemu_that_is_gone(tmp_path: Path) -> None:
    device = device_with(tmp_path)
    (tmp_path / "qemu" / "qemu-aarch64-static").unlink()
    assert run_refused(device, sample_request(tmp_path, GOOD)).code == "runner-not-startable"


def test_what_means_nothing_there(tmp_path: Path) -> None:
    facts = device_with(tmp_path).facts()
    assert (facts.memory_meaningful, facts.time_meaningful, facts.kind) == (False, False, "user-emulation")
    assert (facts.machine, facts.cpu) == ("aarch64", "cortex-a53, emulated by qemu-aarch64-static 7.2.22")
    assert facts.fingerprint == "libc6 2.41-12"
    assert facts.page_bytes == os.sysconf("SC_PAGE_SIZE")
