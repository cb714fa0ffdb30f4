import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from ortrim.base import command
from ortrim.base.command import run, silence_told_to, stream
from ortrim.errors import ExitCode, StorageError, ToolError

PYTHON = (sys.executable, "-I", "-S", "-c")
PARENT = f"""
import subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([{sys.executable!r}, "-I", "-S", "-c", sys.argv[2] + "import time; time.sleep(60)"])
Path(sys.argv[1]).write_text(str(child.pid))
print("started", flush=True)
time.sleep(60)
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"


def wait_for_pid(path: Path) -> int:
    """Return the number that appears in a file."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError, ValueError):
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError(f"nothing was written to {path}")


def is_gone(pid: int) -> bool:
    """Whether a program ended, within a few seconds; a zombie that nobody has reaped counts as ended."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state in {"Z", "X"}:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def child_pid(tmp_path: Path) -> Iterator[Path]:
    """Give a file for a grandchild's number; whatever is left of it is killed after the test."""
    path = tmp_path / "pid"
    yield path
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.kill(int(path.read_text()), signal.SIGKILL)


def test_run_returns_what_was_printed_and_the_exit_code() -> None:
    """Both streams come back apart, with the exit code as it was."""
    done = run([*PYTHON, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"])
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert done.argv[0] == sys.executable


def test_a_signal_is_a_negative_exit_code() -> None:
    """A program that a signal killed is told from one that failed."""
    done = run([*PYTHON, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
    assert done.returncode == -signal.SIGKILL


def test_arguments_are_not_read_by_a_shell(tmp_path: Path) -> None:
    """Spaces, quotes, dollars and globs arrive as they were given; paths may stand among the words."""
    words = ["$HOME", "*", "a b", '"', "'; exit 3"]
    done = run([*PYTHON, "import sys; print(sys.argv[1:])", tmp_path / "with space", *words])
    assert done.stdout == f"{[str(tmp_path / 'with space'), *words]}\n"


def test_the_environment_replaces_the_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of ours reaches the program when an environment is given, and everything when none is."""
    monkeypatch.setenv("ORTRIM_TEST", "ours")
    show = "import os; print(os.environ.get('ORTRIM_TEST'), os.environ.get('GIVEN'), os.getcwd())"
    assert run([*PYTHON, show], environment={"GIVEN": "1"}, cwd=tmp_path).stdout == f"None 1 {tmp_path}\n"
    assert run([*PYTHON, show], cwd=tmp_path).stdout == f"ours None {tmp_path}\n"


def test_a_program_never_waits_for_the_terminal() -> None:
    """Standard input is empty: a program that asks a question gets no answer instead of hanging."""
    assert run([*PYTHON, "import sys; print(repr(sys.stdin.read()))"], timeout_seconds=20).stdout == "''\n"


def test_much_output_on_both_streams_does_not_block() -> None:
    """Eight megabytes on each stream, in turns, come back whole."""
    script = "import sys\nfor _ in range(128): sys.stdout.write('o' * 65536); sys.stderr.write('e' * 65536)"
    done = run([*PYTHON, script], timeout_seconds=60)
    assert (len(done.stdout), len(done.stderr)) == (8 << 20, 8 << 20)


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "de_DE.ISO-8859-1"])
def test_output_that_is_not_utf8_is_kept_readable(monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    """Compilers print whatever bytes a source has; they become replacement characters, whatever our locale."""
    monkeypatch.setenv("LC_ALL", locale)
    script = r"import sys; sys.stdout.buffer.write(b'a\xff\xfe\xc3\xa9\x00b\n')"
    assert run([*PYTHON, script]).stdout == "a\ufffd\ufffdé\0b\n"
    lines: list[str] = []
    assert stream([*PYTHON, script], lines.append) == 0
    assert lines == ["a\ufffd\ufffdé\0b"]


def test_a_missing_program_is_a_diagnostic(tmp_path: Path) -> None:
    """The reference and the exit code are those of tools, and the name is given, for `run` and `stream` alike."""
    for program in ("no-such-program-anywhere", str(tmp_path / "absent")):
        for start in (run, lambda argv: stream(argv, print)):
            with pytest.raises(ToolError) as caught:
                start([program])
            assert (caught.value.code, caught.value.where) == ("tool-missing", program)
            assert caught.value.exit_code is ExitCode.TOOL


def test_a_folder_of_path_that_refuses_hides_no_absent_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root's folders do after `su`; root may search every folder, but can execute none."""
    (tmp_path / "no-such-program-anywhere").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ToolError) as caught:
        run(["no-such-program-anywhere"])
    assert caught.value.code == "tool-missing"


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        ("#!/bin/sh\n", 0o644),
        ("#!/no/such/interpreter\n", 0o755),
        ("\x7fELF not really", 0o755),
    ],
)
def test_a_program_that_cannot_start_is_a_diagnostic(tmp_path: Path, content: str, mode: int) -> None:
    """No permission, no interpreter, wrong format: the file is there, so it is not called missing."""
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(mode)
    with pytest.raises(ToolError) as caught:
        run([program])
    assert caught.value.code == "tool-not-startable"
    assert caught.value.why


def test_a_missing_working_folder_is_not_a_missing_program(tmp_path: Path) -> None:
    """The message names the folder, since that is what has to be mended."""
    with pytest.raises(ToolError) as caught:
        run([sys.executable, "-V"], cwd=tmp_path / "absent")
    assert caught.value.code == "tool-not-startable"
    assert str(tmp_path / "absent") in caught.value.what


def test_a_word_with_a_zero_byte_is_a_diagnostic() -> None:
    """Words from a hostile buildspec cannot end in a traceback."""
    with pytest.raises(ToolError, match="cannot be started"):
        run([sys.executable, "a\0b"])


def test_a_timeout_stops_the_grandchildren(child_pid: Path) -> None:
    """A compiler's children do not go on after their build was given up."""
    with pytest.raises(ToolError) as caught:
        run([*PYTHON, PARENT, child_pid, ""], timeout_seconds=2)
    assert caught.value.code == "tool-timeout"
    assert "2 seconds" in caught.value.what
    assert is_gone(wait_for_pid(child_pid))


SILENT: Final = "import time; print({!r}, flush=True); time.sleep({})"
"""Says something, and then nothing for so many seconds."""


def test_the_last_line_of_a_silent_program_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it goes on; whoever waits knows for what."""
    monkeypatch.setattr(command, "SILENT_SECONDS", 0.2)
    told: list[str] = []
    with silence_told_to(told.append):
        run([*PYTHON, SILENT.format("first\nfetches x", 0.5)], silent_seconds=60)
        run([*PYTHON, SILENT.format("fetches y", 0.3)])
    assert [line.partition(" has printed nothing for ")[2] for line in told] == ["0 s; its last line: fetches x"]


def test_a_program_that_says_nothing_at_all_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of Python goes by its own name."""
    monkeypatch.setattr(command, "SILENT_SECONDS", 0.1)
    told: list[str] = []
    with silence_told_to(told.append):
        run(
            [sys.executable, "-m", "timeit", "-n", "1", "-r", "1", "-s", "import time", "time.sleep(0.5)"],
            silent_seconds=60,
        )
    assert told == ["timeit has printed nothing for 0 s; it has printed nothing so far"]


def test_a_program_that_stays_silent_is_stopped(child_pid: Path) -> None:
    """With its children, and its last line is in the diagnostic."""
    with pytest.raises(ToolError) as caught:
        run([*PYTHON, PARENT, child_pid, ""], silent_seconds=1)
    assert (caught.value.code, caught.value.exit_code) == ("tool-silent", ExitCode.TOOL)
    assert caught.value.why == "its last line: started"
    assert is_gone(wait_for_pid(child_pid))


def test_a_program_that_speaks_is_not_silent() -> None:
    """The limit is on each silence, not on all of them together."""
    script = "import time\nfor _ in range(4): print('again', flush=True); time.sleep(0.5)"
    assert run([*PYTHON, script], silent_seconds=1.5).returncode == 0


def test_a_program_that_falls_silent_over_a_full_disk_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """apt-get waits for ever then; the diagnostic says which disk."""
    monkeypatch.setattr(command, "SILENT_SECONDS", 0.2)
    words = "write (28: No space left on device)\nIgn:3"
    with pytest.raises(StorageError) as caught:
        run([*PYTHON, SILENT.format(words, 60)], cwd=tmp_path, silent_seconds=60)
    assert (caught.value.code, caught.value.where) == ("disk-full", str(tmp_path))
    assert caught.value.why.startswith("its last line: Ign:3\n")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_stops_the_program(stream: str) -> None:
    """A program that prints more than it may is stopped, on whichever stream; what is just allowed comes back whole."""
    script = f"import sys\nwhile True: sys.{stream}.write('again ' * 1000)"
    with pytest.raises(ToolError) as caught:
        run([*PYTHON, script], timeout_seconds=60, most_bytes=10**6)
    assert (caught.value.code, caught.value.where) == ("tool-endless", sys.executable)
    done = run([*PYTHON, f"import sys; sys.{stream}.write('x' * 10**6)"], timeout_seconds=60, most_bytes=10**6)
    assert len(done.stdout) + len(done.stderr) == 10**6


def test_a_program_that_closes_its_streams_is_waited_for() -> None:
    """A program that goes on without a stream to print on ends with its own exit code, or at the limit."""
    script = "import os, time; os.close(1); os.close(2); time.sleep(float({})); os._exit(5)"
    assert run([*PYTHON, script.format("0.3")], timeout_seconds=60).returncode == 5
    with pytest.raises(ToolError) as caught:
        run([*PYTHON, script.format("60")], timeout_seconds=0.3)
    assert caught.value.code == "tool-timeout"


def test_a_grandchild_that_ignores_the_signal_is_killed(child_pid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent's end is not the end of the stop: what is left of the group is killed after the grace."""
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.5)
    with pytest.raises(ToolError, match="was stopped"):
        run([*PYTHON, PARENT, child_pid, STUBBORN], timeout_seconds=2)
    assert is_gone(wait_for_pid(child_pid))


def test_lines_arrive_as_they_are_printed() -> None:
    """The first line is handed over while the program still runs, errors among the output in their order."""
    seen: list[tuple[str, float]] = []
    script = (
        "import sys, time; print('a', flush=True); print('b', file=sys.stderr, flush=True); time.sleep(0.5); print('c')"
    )
    code = stream([*PYTHON, script + "; sys.exit(3)"], lambda line: seen.append((line, time.monotonic())))
    assert code == 3
    assert [line for line, _ in seen] == ["a", "b", "c"]
    assert seen[2][1] - seen[0][1] > 0.3


def test_a_reader_that_raises_stops_the_program(child_pid: Path) -> None:
    """An error in our own code never leaves a build running behind it."""

    def refuse(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError, match="started"):
        stream([*PYTHON, PARENT, child_pid, ""], refuse)
    assert is_gone(wait_for_pid(child_pid))


US = """
import sys
from ortrim.base.command import {name}
{name}([sys.executable, "-I", "-S", "-c", sys.argv[1], sys.argv[2], ""]{rest})
"""


@pytest.mark.parametrize(("name", "rest"), [("run", ""), ("stream", ", print")])
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_ending_us_ends_the_grandchildren(child_pid: Path, name: str, rest: str, number: int, code: int) -> None:
    """Ctrl-C, a CI's cancellation and a closed terminal stop the whole build, and the exit code says which it was."""
    ended: list[int] = []
    outer = US.format(name=name, rest=rest)

    def interrupt() -> None:
        wait_for_pid(child_pid)
        time.sleep(0.1)
        ours = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and is_ours(entry)]
        for pid in ours:
            os.kill(pid, number)
            ended.append(pid)

    def is_ours(entry: Path) -> bool:
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            return outer.encode() in words and str(child_pid).encode() in words
        return False

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = run([sys.executable, "-c", outer, PARENT, child_pid], timeout_seconds=30)
    thread.join()
    assert len(ended) == 1
    assert done.returncode == code
    assert is_gone(wait_for_pid(child_pid))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_program_is_started_stops_it(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """It runs before `Popen` returns: an exception from inside there would leave it to nobody."""
    started: list[subprocess.Popen[str]] = []

    class Interrupted(subprocess.Popen[str]):
        def _execute_child(self, *arguments: object) -> None:
            super()._execute_child(*arguments)  # type: ignore[misc]  # of the standard library, and of no stub
            started.append(self)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([*PYTHON, "import time; time.sleep(60)"])
    assert is_gone(started[0].pid)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_are_respected() -> None:
    """A program that handles SIGTERM itself keeps its handler, and the default comes back after ours."""
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    run([*PYTHON, ""])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        during: list[object] = []
        stream([*PYTHON, "print(1)"], lambda _line: during.append(signal.getsignal(signal.SIGTERM)))
        assert during == [signal.SIG_IGN]
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_programs_run_from_other_threads() -> None:
    """Only the main thread may touch signals; a worker thread runs programs all the same."""
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(run([*PYTHON, "print('here')"]).stdout))
    thread.start()
    thread.join()
    assert results == ["here\n"]
