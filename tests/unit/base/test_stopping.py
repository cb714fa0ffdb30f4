"""Programs of other threads, stopped from outside."""

import threading
import time
from collections.abc import Iterator

import pytest

from ortrim.base.command import StopRequest, run, stop_request, stopped_by
from ortrim.errors import ToolError


@pytest.fixture
def asked() -> Iterator[threading.Event]:
    """Let this thread be one that can be asked to stop."""
    event = threading.Event()
    with stopped_by(event):
        yield event


def test_nobody_asks_a_thread_that_is_not_told_so() -> None:
    """Which is how the main thread is: Ctrl-C reaches it by itself."""
    assert stop_request() is None


def test_a_thread_is_asked_once(asked: threading.Event) -> None:
    """Whatever it does to clean up is not interrupted."""
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
    """Although it would run for a minute, and the next one runs."""
    timer = threading.Timer(0.3, asked.set)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(["sleep", "60"])
    assert run(["echo", "after"]).stdout == "after\n"


@pytest.mark.usefixtures("asked")
def test_the_time_limit_holds_there_too() -> None:
    """Asking now and then makes it no longer."""
    for seconds in (0.05, 0.5):
        with pytest.raises(ToolError) as caught:
            run(["sleep", "60"], timeout_seconds=seconds)
        assert caught.value.code == "tool-timeout"


@pytest.mark.usefixtures("asked")
def test_output_is_whole_however_long_it_takes() -> None:
    """What comes between two questions is not lost."""
    script = "for i in 1 2 3 4; do echo $i; echo e$i >&2; sleep 0.15; done; head -c 200000 /dev/zero | tr '\\0' x"
    done = run(["sh", "-c", script], timeout_seconds=30)
    assert (done.stdout[:8], len(done.stdout), done.stderr) == ("1\n2\n3\n4\n", 200_008, "e1\ne2\ne3\ne4\n")


def test_a_system_without_process_groups_ends_the_program_itself(
    asked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has none; what ends all children there is a program that is not on this machine."""
    monkeypatch.delattr("os.killpg")
    threading.Timer(0.3, asked.set).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(["sleep", "60"])
    assert time.monotonic() - started < 10
