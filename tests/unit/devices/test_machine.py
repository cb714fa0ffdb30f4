import tempfile
from pathlib import Path

import pytest

from device_samples import sample_request
from fake_machine import OUT_OF_MEMORY, PANIC, answer_of, fake_qemu
from ortrim.base.command import Completed
from ortrim.base.tools import InstalledTool
from ortrim.devices import qemu as subject
from ortrim.devices.machine_files import read_answer, regular
from ortrim.devices.qemu import Boot, Machine, boot, completed_run
from ortrim.errors import StorageError, VerifyError
from refusing import refused


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def machine_of(tool: InstalledTool) -> Machine:
    return Machine(program=tool.path, cpu="cortex-a53", memory_mib=96, kernel=Path("/kernel"))


def booted(tool: InstalledTool, limit: float = 20.0) -> Boot:
    return boot(machine_of(tool), [regular("bin/x", b"x")], [["true"]], limit)


def alive(place: Path) -> list[str]:
    """List the processes whose command line names the folder of a fake qemu."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(place) in words:
            found.append(words)
    return found


@pytest.mark.parametrize(
    ("then", "reference", "why"),
    [
        ("kill -KILL $$", "machine-lost", ""),
        ("kill -TERM $$", "machine-lost", ""),
        ("echo 'unable to find CPU model' >&2; exit 1", "machine-not-startable", "unable to find CPU model"),
        ("exit 3", "machine-not-startable", ""),
    ],
)
def test_a_qemu_that_ends_badly(tmp_path: Path, temporary: Path, then: str, reference: str, why: str) -> None:
    """A qemu that was killed and one that refuses are told apart, and neither leaves a file."""
    error = refused(VerifyError, booted, fake_qemu(tmp_path / "qemu", then=then))
    assert (error.code, error.why, error.where) == (reference, why, "cortex-a53")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("hang", ["sleep 600", "trap '' TERM; sleep 600 & sleep 600"])
def test_a_qemu_that_hangs(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, hang: str) -> None:
    """It is stopped with its children at the time limit, and what its machine had sent until then is kept."""
    monkeypatch.setattr(subject, "START_SECONDS", 0.3)
    monkeypatch.setattr("ortrim.base.command.GRACE_SECONDS", 0.3)
    done = booted(fake_qemu(tmp_path / "qemu", answer=b"@@BEGIN\n", console="half", then=hang), limit=0.1)
    assert (done.timed_out, done.answer.begun, done.answer.files, done.console) == (True, 1, None, "half")
    assert alive(tmp_path / "qemu") == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [b"garbage\n" * 9, bytes(64), b"@@BEGIN\nno exit code\n", b"\xff\xfe" * 40],
    ids=["words", "zeros", "marks", "binary"],
)
def test_garbage_from_a_machine(tmp_path: Path, temporary: Path, answer: bytes) -> None:
    error = refused(VerifyError, booted, fake_qemu(tmp_path / "qemu", answer=answer, console="\x1b[31mwhat it said"))
    assert error.code == "machine-garbage"
    assert "what it said" in error.why
    assert list(temporary.iterdir()) == []


def test_no_room_for_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(StorageError):
        booted(fake_qemu(tmp_path / "qemu"))


@pytest.mark.parametrize(
    ("line", "short"),
    [
        ("[    4.1] Out of memory: Killed process 61 (runner) total-vm:9000kB", True),
        ("[    1.7] Kernel panic - not syncing: System is deadlocked on memory", True),
        ("[    0.6] Initramfs unpacking failed: write error", True),
        ("[    2.0] Kernel panic - not syncing: VFS: Unable to mount root fs", False),
        ("runner: load /payload/model.ort", False),
    ],
)
def test_what_the_console_says(line: str, *, short: bool) -> None:
    """The kernel's words for too little memory are recognised; a panic is quoted; the rest are complaints."""
    done = Boot(answer=read_answer(b""), console=f"before\n{line}\nafter\n", timed_out=False)
    assert (done.out_of_memory == line) is short
    assert done.panic == (line.partition("] ")[2] if "Kernel panic" in line else "")
    assert done.complaints.splitlines() == ["before", *([line] if line.startswith("runner") else []), "after"]


def judged(place: Path, answer: bytes, console: str = "", *, timed_out: bool = False) -> Completed:
    booted = Boot(answer=read_answer(answer), console=console, timed_out=timed_out)
    return completed_run(booted, sample_request(place), device="qemu-system:x", memory_mib=64)


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
    assert refused(VerifyError, judged, tmp_path, answer, console, timed_out=timed_out).code == reference
