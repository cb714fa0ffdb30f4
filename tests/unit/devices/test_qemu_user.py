import dataclasses
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


def test_a_run_comes_back_whole(tmp_path: Path) -> None:
    """The runner is run by qemu, with the machine's libraries and the processor asked for."""
    request = dataclasses.replace(sample_request(tmp_path), outputs=tmp_path / "outputs")
    (tmp_path / "outputs").mkdir()
    device = device_with(tmp_path, f'echo "$@" >{tmp_path}/words; {EMULATE}')
    assert device.run(request).cases[0].name == "only"
    assert (tmp_path / "outputs" / "only" / "output_000.npy").read_bytes() == b"the input"
    words = (tmp_path / "words").read_text()
    assert words.startswith(f"-L {tmp_path}/parts/root -cpu cortex-a53 {tmp_path}/runner --library ")
    device.close()


def test_relative_paths_hold_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner runs elsewhere, and still finds what was named from here."""
    monkeypatch.chdir(tmp_path)
    request = sample_request(Path("below"))
    assert device_with(tmp_path).run(dataclasses.replace(request, outputs=Path("below"))).status == "ok"
    assert (tmp_path / "below" / "only" / "output_000.npy").is_file()


@pytest.mark.parametrize(
    ("script", "reference"),
    [
        ("kill -ILL $$", "illegal-instruction"),
        ("kill -SEGV $$", "runner-crashed"),
        (
            "echo 'qemu: uncaught target signal 4 (Illegal instruction) - core dumped' >&2; exit 132",
            "illegal-instruction",
        ),
        ("echo 'qemu: uncaught target signal 11 (Segmentation fault) - core dumped' >&2; exit 1", "runner-crashed"),
        ("exit 4", "model-refused"),
        ("echo garbage", "runner-garbage"),
        ("echo '{}'", "runner-garbage"),
    ],
)
def test_runners_that_end_badly(tmp_path: Path, script: str, reference: str) -> None:
    """Each end has its own diagnostic, and an illegal instruction is one of them, however qemu itself ends."""
    assert run_refused(device_with(tmp_path), sample_request(tmp_path, script)).code == reference


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


def test_an_illegal_instruction_says_what_to_do(tmp_path: Path) -> None:
    """It is the library's fault, and a matter of the processor that it was built for."""
    error = run_refused(device_with(tmp_path), sample_request(tmp_path, "kill -ILL $$"))
    assert "instruction" in error.what
    assert "older" in error.hint


def test_memory_dumps_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crashed program's memory is written where qemu runs, which is a folder that goes away."""
    monkeypatch.chdir(tmp_path)
    request = sample_request(tmp_path / "request", "echo memory >qemu_runner.core; kill -SEGV $$")
    before = set(tmp_path.iterdir())
    device = device_with(tmp_path)
    run_refused(device, request)
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"qemu", "parts"}
    assert not list(tmp_path.rglob("*.core"))


def test_a_runner_that_hangs(tmp_path: Path) -> None:
    """It is stopped, as on the host."""
    assert (
        run_refused(device_with(tmp_path), sample_request(tmp_path, "sleep 600", seconds=0.3)).code == "runner-timeout"
    )


def test_a_qemu_that_is_gone(tmp_path: Path) -> None:
    """What cannot be started is said to be so."""
    device = device_with(tmp_path)
    (tmp_path / "qemu" / "qemu-aarch64-static").unlink()
    assert run_refused(device, sample_request(tmp_path, GOOD)).code == "runner-not-startable"


def test_what_means_nothing_there(tmp_path: Path) -> None:
    """Neither memory nor time does; the processor is named with what emulates it."""
    facts = device_with(tmp_path).facts()
    assert (facts.memory_meaningful, facts.time_meaningful, facts.kind) == (False, False, "user-emulation")
    assert (facts.machine, facts.cpu) == ("aarch64", "cortex-a53, emulated by qemu-aarch64-static 7.2.22")
    assert facts.fingerprint == "libc6 2.41-12"
    assert facts.page_bytes == os.sysconf("SC_PAGE_SIZE")
