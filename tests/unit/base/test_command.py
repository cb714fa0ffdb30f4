"""Programs that are heard while they run."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.analysis.inspect import inspect_onnx
from ortrim.base import command
from ortrim.base.command import (
    Captured,
    Completed,
    StopRequest,
    Terminated,
    is_shortage,
    meanwhile,
    memory_limit,
    out_of_memory,
    run,
    silence_told_to,
    stop_request,
    stopped_by,
    stream,
    watch,
)
from ortrim.base.scripts import Python, ScriptCrash, run_script
from ortrim.errors import ExitCode, MemoryShortage, StorageError, ToolError
from refusing import refused

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
    path = tmp_path / "pid"
    yield path
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.kill(int(path.read_text()), signal.SIGKILL)


def test_run_returns_what_was_printed_and_the_exit_code() -> None:
    done = run([*PYTHON, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"])
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert done.argv[0] == sys.executable


def test_a_signal_is_a_negative_exit_code() -> None:
    done = run([*PYTHON, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
    assert done.returncode == -signal.SIGKILL


def test_arguments_are_not_read_by_a_shell(tmp_path: Path) -> None:
    words = ["$HOME", "*", "a b", '"', "'; exit 3"]
    done = run([*PYTHON, "import sys; print(sys.argv[1:])", tmp_path / "with space", *words])
    assert done.stdout == f"{[str(tmp_path / 'with space'), *words]}\n"


def test_the_environment_replaces_the_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORTRIM_TEST", "ours")
    show = "import os; print(os.environ.get('ORTRIM_TEST'), os.environ.get('GIVEN'), os.getcwd())"
    assert run([*PYTHON, show], environment={"GIVEN": "1"}, cwd=tmp_path).stdout == f"None 1 {tmp_path}\n"
    assert run([*PYTHON, show], cwd=tmp_path).stdout == f"ours None {tmp_path}\n"


def test_a_program_never_waits_for_the_terminal() -> None:
    """Standard input is empty: a program that asks a question gets no answer instead of hanging."""
    assert run([*PYTHON, "import sys; print(repr(sys.stdin.read()))"], timeout_seconds=20).stdout == "''\n"


def test_much_output_on_both_streams_does_not_block() -> None:
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
            caught = refused(ToolError, start, [program])
            assert (caught.code, caught.where) == ("tool-missing", program)


def test_a_folder_of_path_that_refuses_hides_no_absent_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root's folders do after `su`; root may search every folder, but can execute none."""
    (tmp_path / "no-such-program-anywhere").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert refused(ToolError, run, ["no-such-program-anywhere"]).code == "tool-missing"


@pytest.mark.parametrize(
    ("content", "mode"), [("#!/bin/sh\n", 0o644), ("#!/no/such/interpreter\n", 0o755), ("\x7fELF not really", 0o755)]
)
def test_a_program_that_cannot_start_is_a_diagnostic(tmp_path: Path, content: str, mode: int) -> None:
    """No permission, no interpreter, wrong format: the file is there, so it is not called missing."""
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(mode)
    caught = refused(ToolError, run, [program])
    assert caught.code == "tool-not-startable"
    assert caught.why


def test_a_missing_working_folder_is_not_a_missing_program(tmp_path: Path) -> None:
    """The message names the folder, since that is what has to be mended."""
    caught = refused(ToolError, run, [sys.executable, "-V"], cwd=tmp_path / "absent")
    assert caught.code == "tool-not-startable"
    assert str(tmp_path / "absent") in caught.what


def test_a_word_with_a_zero_byte_is_a_diagnostic() -> None:
    """Words from a hostile buildspec cannot end in a traceback."""
    with pytest.raises(ToolError, match="cannot be started"):
        run([sys.executable, "a\0b"])


def test_a_timeout_stops_the_grandchildren(child_pid: Path) -> None:
    caught = refused(ToolError, run, [*PYTHON, PARENT, child_pid, ""], timeout_seconds=2)
    assert caught.code == "tool-timeout"
    assert "2 seconds" in caught.what
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
    monkeypatch.setattr(command, "SILENT_SECONDS", 0.1)
    told: list[str] = []
    with silence_told_to(told.append):
        run(
            [sys.executable, "-m", "timeit", "-n", "1", "-r", "1", "-s", "import time", "time.sleep(0.5)"],
            silent_seconds=60,
        )
    assert told == ["timeit has printed nothing for 0 s; it has printed nothing so far"]


def test_a_program_that_stays_silent_is_stopped(child_pid: Path) -> None:
    caught = refused(ToolError, run, [*PYTHON, PARENT, child_pid, ""], silent_seconds=1)
    assert caught.code == "tool-silent"
    assert caught.why == "its last line: started"
    assert is_gone(wait_for_pid(child_pid))


def test_a_program_that_speaks_is_not_silent() -> None:
    script = "import time\nfor _ in range(4): print('again', flush=True); time.sleep(0.5)"
    assert run([*PYTHON, script], silent_seconds=1.5).returncode == 0


def test_a_program_that_falls_silent_over_a_full_disk_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """apt-get waits for ever then; the diagnostic says which disk."""
    monkeypatch.setattr(command, "SILENT_SECONDS", 0.2)
    words = "write (28: No space left on device)\nIgn:3"
    error = refused(StorageError, run, [*PYTHON, SILENT.format(words, 60)], cwd=tmp_path, silent_seconds=60)
    assert (error.code, error.where) == ("disk-full", str(tmp_path))
    assert error.why.startswith("its last line: Ign:3\n")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_stops_the_program(stream: str) -> None:
    script = f"import sys\nwhile True: sys.{stream}.write('again ' * 1000)"
    caught = refused(ToolError, run, [*PYTHON, script], timeout_seconds=60, most_bytes=10**6)
    assert (caught.code, caught.where) == ("tool-endless", sys.executable)
    done = run([*PYTHON, f"import sys; sys.{stream}.write('x' * 10**6)"], timeout_seconds=60, most_bytes=10**6)
    assert len(done.stdout) + len(done.stderr) == 10**6


def test_the_limit_of_output_is_for_both_streams_together() -> None:
    script = "import sys; sys.stdout.write('x' * 10**6); sys.stdout.flush(); sys.stderr.write('x')"
    assert refused(ToolError, run, [*PYTHON, script], timeout_seconds=60, most_bytes=10**6).code == "tool-endless"


def test_a_program_that_closes_its_streams_is_waited_for() -> None:
    """A program that goes on without a stream to print on ends with its own exit code, or at the limit."""
    script = "import os, time; os.close(1); os.close(2); time.sleep(float({})); os._exit(5)"
    assert run([*PYTHON, script.format("0.3")], timeout_seconds=60).returncode == 5
    assert refused(ToolError, run, [*PYTHON, script.format("60")], timeout_seconds=0.3).code == "tool-timeout"


def test_a_grandchild_that_ignores_the_signal_is_killed(child_pid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent's end is not the end of the stop: what is left of the group is killed after the grace."""
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.5)
    with pytest.raises(ToolError, match="was stopped"):
        run([*PYTHON, PARENT, child_pid, STUBBORN], timeout_seconds=2)
    assert is_gone(wait_for_pid(child_pid))


def test_lines_arrive_as_they_are_printed() -> None:
    seen: list[tuple[str, float]] = []
    script = (
        "import sys, time; print('a', flush=True); print('b', file=sys.stderr, flush=True); time.sleep(0.5); print('c')"
    )
    code = stream([*PYTHON, script + "; sys.exit(3)"], lambda line: seen.append((line, time.monotonic())))
    assert code == 3
    assert [line for line, _ in seen] == ["a", "b", "c"]
    assert seen[2][1] - seen[0][1] > 0.3


def test_a_reader_that_raises_stops_the_program(child_pid: Path) -> None:

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
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
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


MOST_BYTES = 1 << 20
FAREWELL = """
import os, signal, sys, time
def end(*_):
    os.write(2, b"last words\\n")  # the signal may interrupt the print below, and no other could begin then
    sys.exit(19)
signal.signal(signal.SIGTERM, end)
print("begun", file=sys.stderr, flush=True)
time.sleep(60)
"""


class Enough(Exception):
    """A test has seen enough."""


def nothing() -> None:
    """Check nothing."""


def watched(program: str, on_output: Callable[[str], None], check: Callable[[], None] = nothing) -> Completed:
    return watch([sys.executable, "-c", program], on_output, check, most_bytes=MOST_BYTES)


def test_both_streams_and_the_exit_code_come_back() -> None:
    """And each line of standard error was heard once, a last one without an end too."""
    heard: list[str] = []
    program = "import sys; print('result'); sys.stderr.write('a\\n\\nb\\r\\nc'); sys.exit(3)"
    done = watched(program, heard.append)
    assert (done.returncode, done.stdout, done.stderr) == (3, "result\n", "a\n\nb\nc")
    assert heard == ["a", "", "b", "c"]


def test_a_program_that_is_stopped_is_heard_to_its_last_word() -> None:
    heard: list[str] = []

    def check() -> None:
        if heard:
            raise Enough

    with pytest.raises(Enough):
        watched(FAREWELL, heard.append, check)
    assert heard == ["begun", "last words"]


def test_another_thread_can_stop_it() -> None:
    """As on Ctrl-C, when several devices are used."""
    asked = threading.Event()
    heard: list[str] = []

    def check() -> None:
        if heard:
            asked.set()

    with stopped_by(asked), pytest.raises(KeyboardInterrupt):
        watched(FAREWELL, heard.append, check)
    assert heard[-1] == "last words"


def test_checks_go_on_while_nothing_is_said() -> None:
    times: list[float] = []

    def check() -> None:
        times.append(time.monotonic())
        if len(times) == 3:
            raise Enough

    with pytest.raises(Enough):
        watched("import time; time.sleep(60)", lambda _: None, check)


def test_output_without_an_end() -> None:
    caught = refused(ToolError, watched, "import sys\nwhile True: sys.stderr.write('x' * 4096)", lambda _: None)
    assert caught.code == "tool-endless"


def test_a_program_that_is_absent() -> None:
    caught = refused(ToolError, watch, ["ortrim-no-such-program"], lambda _: None, nothing, most_bytes=MOST_BYTES)
    assert caught.code == "tool-missing"


Pipe = tuple[IO[str], int]


def make_pipe() -> Pipe:
    read, write = os.pipe()
    return os.fdopen(read), write


@given(st.binary(max_size=100))
def test_any_bytes_become_text(data: bytes) -> None:
    stream, write = make_pipe()
    os.write(write, data)
    os.close(write)
    with Captured((stream,), None) as captured:
        while not captured.read(5):
            pass
        (text,) = captured.texts()
    stream.close()
    assert text == data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    assert "\r" not in text


@pytest.fixture
def asked() -> Iterator[threading.Event]:
    event = threading.Event()
    with stopped_by(event):
        yield event


def test_nobody_asks_a_thread_that_is_not_told_so() -> None:
    """Which is how the main thread is: Ctrl-C reaches it by itself."""
    assert stop_request() is None


def test_a_thread_is_asked_once(asked: threading.Event) -> None:
    request = stop_request()
    assert isinstance(request, StopRequest)
    request.check()
    asked.set()
    with pytest.raises(KeyboardInterrupt):
        request.check()
    request.check()


def test_requests_are_a_threads_own(asked: threading.Event) -> None:
    """Another thread that nobody asks is left alone, and afterwards so is this one."""
    found: list[StopRequest | None] = []
    thread = threading.Thread(target=lambda: found.append(stop_request()))
    thread.start()
    thread.join()
    assert found == [None]
    asked.set()
    with stopped_by(threading.Event()):
        assert run(["echo", "on"]).stdout == "on\n"


def test_a_program_is_stopped_when_asked(asked: threading.Event) -> None:
    timer = threading.Timer(0.3, asked.set)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(["sleep", "60"])
    assert run(["echo", "after"]).stdout == "after\n"


def test_work_meanwhile_is_waited_for() -> None:
    """With what the caller's context says, such as which bundle is read."""
    name: ContextVar[str] = ContextVar("name", default="unset")
    found: list[str] = []
    token = name.set("ours")
    with meanwhile(lambda: found.append(run(["sh", "-c", f"sleep 0.2; echo {name.get()}"]).stdout)):
        assert found == []
    name.reset(token)
    assert found == ["ours\n"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, Terminated, ValueError])
def test_what_ends_the_body_stops_the_work_meanwhile(error: type[BaseException]) -> None:
    ended: list[bool] = []

    def work() -> None:
        try:
            run(["sleep", "60"])
        finally:
            ended.append(True)

    began = time.monotonic()
    with pytest.raises(error), meanwhile(work):
        raise error
    assert ended == [True]
    assert time.monotonic() - began < 30


@pytest.mark.usefixtures("asked")
def test_the_time_limit_holds_there_too() -> None:
    for seconds in (0.05, 0.5):
        assert refused(ToolError, run, ["sleep", "60"], timeout_seconds=seconds).code == "tool-timeout"


@pytest.mark.usefixtures("asked")
def test_output_is_whole_however_long_it_takes() -> None:
    """What comes between two questions is not lost."""
    script = "for i in 1 2 3 4; do echo $i; echo e$i >&2; sleep 0.15; done; head -c 200000 /dev/zero | tr '\\0' x"
    done = run(["sh", "-c", script], timeout_seconds=30)
    assert (done.stdout[:8], len(done.stdout), done.stderr) == ("1\n2\n3\n4\n", 200_008, "e1\ne2\ne3\ne4\n")


def test_a_system_without_process_groups_ends_the_program_itself(
    asked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.killpg")
    threading.Timer(0.3, asked.set).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(["sleep", "60"])
    assert time.monotonic() - started < 10


ANSWERS = """
import json, sys
from pathlib import Path
answer = {"failure": "conversion-failed", "words": "std::bad_alloc"}
Path(sys.argv[1]).with_name("answer.json").write_text(json.dumps(answer))
"""
MEMORY_PYTHON = Python(words=(sys.executable,), environment={})
LIMITED = """
import resource, sys
from pathlib import Path
import onnx
from ortrim.analysis.inspect import inspect_onnx
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20),) * 2)
try:
    inspect_onnx(Path(sys.argv[1]))
except Exception as error:
    print(error)
"""


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2_000_000_000, 2_000_000_000))


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    "said",
    [
        "RUNTIME_EXCEPTION : Exception during initialization: std::bad_alloc",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB",
        "ImportError: libx.so: failed to map segment from shared object",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
def test_a_program_that_ran_into_the_limit_is_told_from_others(said: str) -> None:
    """Unless it had a lower limit of its own, which is the model's business."""
    assert is_shortage(said)
    assert is_shortage(said, own_limit=8_000_000_000)
    assert not is_shortage(said, own_limit=1_000_000_000)
    assert not is_shortage("Non-zero status code returned while running Add node")


def test_without_a_limit_the_model_asks_for_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is left to whoever knows the model."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert memory_limit() is None
    assert not is_shortage("std::bad_alloc")
    assert "ulimit" not in out_of_memory().hint


@pytest.mark.usefixtures("limited")
def test_the_limit_is_named() -> None:
    error = out_of_memory("m.onnx", "Arena alloc failed")
    assert (error.code, error.exit_code) == ("out-of-memory", ExitCode.MEMORY)
    assert error.what == "memory ran out: a process may use 2,000 MB here"
    assert error.hint == "raise the limit: ulimit -v unlimited"


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("code", ["raise MemoryError", ANSWERS])
def test_a_script_that_runs_out_is_no_crash(tmp_path: Path, code: str) -> None:
    (tmp_path / "script.py").write_text(code)
    caught = refused(MemoryShortage, run_script, MEMORY_PYTHON, tmp_path / "script.py", {}, folder=tmp_path)
    assert "alloc" in caught.why or "MemoryError" in caught.why


def test_a_crash_without_a_limit_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "memory_limit", lambda: None)
    (tmp_path / "script.py").write_text("raise MemoryError")
    with pytest.raises(ScriptCrash):
        run_script(MEMORY_PYTHON, tmp_path / "script.py", {}, folder=tmp_path)


def test_a_model_that_does_not_fit_is_not_damaged(tmp_path: Path) -> None:
    """For real: protobuf's own allocation fails."""
    import onnx  # noqa: PLC0415 - slow to import
    from onnx import helper  # noqa: PLC0415

    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, (16 << 20,), bytes(64 << 20), raw=True)
    graph = helper.make_graph([], "g", [], [], [weights])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    assert inspect_onnx(tmp_path / "m.onnx")["facts"].node_count == 0
    said = run([sys.executable, "-c", LIMITED, tmp_path / "m.onnx"]).stdout
    assert said.startswith("error: out-of-memory\n") or said == "\n"  # the latter is a MemoryError, worded by the tasks
    assert "not-onnx" not in said
