import tempfile
from pathlib import Path

import pytest

from fake_machine import fake_qemu
from ortrim.base.tools import InstalledTool
from ortrim.devices import qemu as subject
from ortrim.devices.machine_files import read_answer, regular
from ortrim.devices.qemu import Boot, Machine, boot, qemu_words
from ortrim.errors import StorageError, ToolError, VerifyError
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


def test_the_command_line() -> None:
    """The processor and the ceiling are those asked for; there is no network, and a panic ends the machine."""
    words = qemu_words(Machine(program=Path("/q"), cpu="cortex-a76", memory_mib=128, kernel=Path("/k")))
    text = " ".join(words)
    assert words[0] == "/q"
    for part in ("-cpu cortex-a76", "-m 128", "-kernel /k", "-nic none", "-no-reboot", "panic=-1"):
        assert part in text


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
    """What makes no sense is not taken for anything, and the console is shown for it."""
    error = refused(VerifyError, booted, fake_qemu(tmp_path / "qemu", answer=answer, console="\x1b[31mwhat it said"))
    assert error.code == "machine-garbage"
    assert "what it said" in error.why
    assert list(temporary.iterdir()) == []


def test_a_qemu_that_is_gone(tmp_path: Path, temporary: Path) -> None:
    """A program that was removed since it was found is a missing tool."""
    tool = fake_qemu(tmp_path / "qemu")
    tool.path.unlink()
    assert refused(ToolError, booted, tool).code == "tool-missing"
    assert list(temporary.iterdir()) == []


def test_no_room_for_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files that cannot be used is a diagnostic of storage."""
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
