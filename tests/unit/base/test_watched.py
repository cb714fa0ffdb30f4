"""Programs that are heard while they run."""

import sys
import threading
import time
from collections.abc import Callable

import pytest

from ortrim.base.command import Completed, stopped_by, watch
from ortrim.errors import ToolError

MOST_BYTES = 1 << 20
TALKER = "import sys, time; print('one', file=sys.stderr, flush=True); sys.stdin.read(); time.sleep(60)"
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
    """Watch a program in Python."""
    return watch([sys.executable, "-c", program], on_output, check, most_bytes=MOST_BYTES)


def test_both_streams_and_the_exit_code_come_back() -> None:
    """And each line of standard error was heard once, a last one without an end too."""
    heard: list[str] = []
    program = "import sys; print('result'); sys.stderr.write('a\\n\\nb\\r\\nc'); sys.exit(3)"
    done = watched(program, heard.append)
    assert (done.returncode, done.stdout, done.stderr) == (3, "result\n", "a\n\nb\nc")
    assert heard == ["a", "", "b", "c"]


def test_a_program_that_says_nothing() -> None:
    """Nothing is heard."""
    heard: list[str] = []
    assert watched("print('result')", heard.append).stdout == "result\n"
    assert heard == []


def test_lines_are_heard_while_the_program_runs() -> None:
    """Or it could not be stopped for what it says."""

    def on_output(line: str) -> None:
        assert line == "one"
        raise Enough

    with pytest.raises(Enough):
        watched(TALKER, on_output)


def test_a_program_that_is_stopped_is_heard_to_its_last_word() -> None:
    """What it does when it is asked to end is what matters then."""
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
    """Or a program that hangs would never be found out."""
    times: list[float] = []

    def check() -> None:
        times.append(time.monotonic())
        if len(times) == 3:
            raise Enough

    with pytest.raises(Enough):
        watched("import time; time.sleep(60)", lambda _: None, check)


def test_output_without_an_end() -> None:
    """It is stopped."""
    with pytest.raises(ToolError) as caught:
        watched("import sys\nwhile True: sys.stderr.write('x' * 4096)", lambda _: None)
    assert caught.value.code == "tool-endless"


def test_a_program_that_is_absent() -> None:
    """It is told like everywhere."""
    with pytest.raises(ToolError) as caught:
        watch(["ortrim-no-such-program"], lambda _: None, nothing, most_bytes=MOST_BYTES)
    assert caught.value.code == "tool-missing"
