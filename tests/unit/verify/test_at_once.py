import os
import signal
import threading
import time
from functools import partial

import pytest

from ortrim.base.command import run
from ortrim.errors import VerifyError
from ortrim.verify.target import at_once


def test_works_run_at_the_same_time_and_their_results_are_in_order() -> None:
    barrier = threading.Barrier(3, timeout=20)

    def work(number: int) -> int:
        barrier.wait()
        return number

    assert at_once([partial(work, number) for number in range(3)]) == (0, 1, 2)
    assert at_once([]) == ()


def test_what_one_raises_is_raised_when_all_have_ended() -> None:
    ended: list[bool] = []

    def fails() -> None:
        raise VerifyError("device-lost", "gone")

    def goes_on() -> None:
        time.sleep(0.2)
        ended.append(True)

    with pytest.raises(VerifyError):
        at_once([fails, goes_on])
    assert ended == [True]


def test_one_device_gets_no_thread() -> None:
    assert at_once([threading.current_thread]) == (threading.main_thread(),)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_stops_what_devices_run(number: int) -> None:
    """Programs that run in threads end at once, and cleaning up is left to run."""
    started = threading.Barrier(3, timeout=20)
    cleaned: list[str] = []

    def act(name: str) -> None:
        started.wait()
        try:
            run(["sleep", "60"], timeout_seconds=100)
        finally:
            cleaned.append(run(["echo", name]).stdout)

    def interrupt() -> None:
        started.wait()
        time.sleep(0.3)  # until the main thread, too, has nothing left to do but wait
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        at_once([partial(act, name) for name in "ab"])
    thread.join()
    assert sorted(cleaned) == ["a\n", "b\n"]
