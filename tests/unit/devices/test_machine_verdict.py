from pathlib import Path

import pytest

from device_samples import sample_request
from fake_machine import OUT_OF_MEMORY, PANIC, answer_of
from ortrim.base.command import Completed
from ortrim.devices.machine_files import read_answer
from ortrim.devices.qemu import Boot, completed_run
from ortrim.errors import ExitCode, VerifyError


def judged(place: Path, answer: bytes, console: str = "", *, timed_out: bool = False) -> Completed:
    booted = Boot(answer=read_answer(answer), console=console, timed_out=timed_out)
    return completed_run(booted, sample_request(place), device="qemu-system:x", memory_mib=64)


def refused(place: Path, answer: bytes, console: str = "", *, timed_out: bool = False) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        judged(place, answer, console, timed_out=timed_out)
    assert caught.value.exit_code == ExitCode.VERIFY
    return caught.value


@pytest.mark.parametrize(("code", "returncode"), [(0, 0), (4, 4), (139, -11), (137, -9)])
def test_an_end_is_passed_on(tmp_path: Path, code: int, returncode: int) -> None:
    """What the runner printed and ended with, and its complaints without the kernel's words."""
    console = "[    1.0] kernel: words\nrunner: words"
    done = judged(tmp_path, answer_of({"0": b"printed \xff"}, [code]), console)
    assert (done.returncode, done.stdout, done.stderr) == (
        returncode, "printed \N{REPLACEMENT CHARACTER}", "runner: words",
    )  # fmt: skip


def test_an_end_just_before_the_limit_counts(tmp_path: Path) -> None:
    """A machine that answered to its end and was then stopped did answer."""
    assert judged(tmp_path, answer_of({"0": b"x"}), timed_out=True).stdout == "x"


@pytest.mark.parametrize(
    ("answer", "console", "timed_out", "reference"),
    [
        (answer_of({}, [137]), OUT_OF_MEMORY, False, "out-of-memory"),
        (answer_of({})[:-200], OUT_OF_MEMORY, False, "out-of-memory"),
        (b"@@BEGIN\n", "", True, "runner-timeout"),
        (b"@@BEGIN\n@@LATE\n", "", False, "runner-timeout"),
        (b"@@BEGIN\n@@LATE\n@@EXIT 137\n@@FILES\n", "", True, "runner-timeout"),
        (b"@@BEGIN\n@@LATE\n@@EXIT 137\n", OUT_OF_MEMORY, False, "out-of-memory"),
        (b"@@BEGIN\n@@EXIT 0\n", "", True, "machine-crashed"),
        (b"", "", True, "machine-crashed"),
        (b"@@BEGIN\n", "", False, "machine-crashed"),
        (b"", PANIC, False, "machine-crashed"),
    ],
)
def test_what_is_no_end(tmp_path: Path, answer: bytes, console: str, reference: str, *, timed_out: bool) -> None:
    """Memory, time and the machine itself are told apart."""
    assert refused(tmp_path, answer, console, timed_out=timed_out).code == reference


def test_the_ceiling_is_named(tmp_path: Path) -> None:
    """Whoever reads of too little memory sees how much there was."""
    assert "64 MiB" in refused(tmp_path, b"@@BEGIN\n", OUT_OF_MEMORY).why
    assert refused(tmp_path, b"", PANIC).where.startswith("qemu-system:x, libonnxruntime.so")
