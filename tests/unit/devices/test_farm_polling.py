import threading

import pytest

from ortrim.base.command import stopped_by
from ortrim.devices.farm import FarmStage, Overdue, Seen, Transient, follow, pause, persist
from ortrim.errors import Diagnostic, NetworkError

LOST = NetworkError("farm-unreachable", "cannot be reached")


def asked(failures: int) -> tuple[list[int], Diagnostic | None, str]:
    """Ask for something that fails some times; return how often it was asked, the error and the answer."""
    count: list[int] = []

    def ask() -> str:
        count.append(1)
        if len(count) <= failures:
            raise Transient(LOST)
        return "here"

    try:
        return count, None, persist(ask, (0.0, 0.0))
    except Diagnostic as error:
        return count, error, ""


def test_a_lost_connection_is_tried_again() -> None:
    """What comes back after two failures is taken; a third failure is the answer."""
    assert asked(0) == ([1], None, "here")
    assert asked(2) == ([1, 1, 1], None, "here")
    assert asked(3) == ([1, 1, 1], LOST, "")


def test_the_diagnostic_hides_what_was_before() -> None:
    """A diagnostic is raised without the exception it came in, which a traceback would show."""
    _, error, _ = asked(9)
    assert error is not None
    assert error.__suppress_context__


def test_what_does_not_pass_is_not_tried_again() -> None:
    """A diagnostic by itself is final."""
    count: list[int] = []

    def ask() -> None:
        count.append(1)
        raise LOST

    with pytest.raises(NetworkError):
        persist(ask, (0.0, 0.0))
    assert count == [1]


def followed(stages: list[FarmStage], *, queue_seconds: float = 60, run_seconds: float = 60) -> list[str]:
    """Follow a run through stages, the last of which stays; return what was told."""
    told: list[str] = []

    def look() -> Seen[int]:
        stage = stages.pop(0) if len(stages) > 1 else stages[0]
        return stage, stage.name, 7

    limits = {"queue_seconds": queue_seconds, "run_seconds": run_seconds}
    assert follow(look, told.append, **limits, interval_seconds=0.0) == 7
    return told


def test_each_change_is_reported_once() -> None:
    """A run is looked at until it is done."""
    stages = [FarmStage.WAITING, FarmStage.WAITING, FarmStage.RUNNING, FarmStage.RUNNING, FarmStage.DONE]
    assert followed(stages) == ["WAITING", "RUNNING", "DONE"]


def test_waiting_has_an_end() -> None:
    """A run that does not begin in time is overdue at waiting."""
    with pytest.raises(Overdue, match="waiting for more than 0 seconds") as caught:
        followed([FarmStage.WAITING], queue_seconds=0)
    assert caught.value.stage is FarmStage.WAITING


def test_running_has_an_end() -> None:
    """A run that does not end in time is overdue at running, even when the farm calls it waiting again."""
    with pytest.raises(Overdue) as caught:
        followed([FarmStage.RUNNING, FarmStage.WAITING], run_seconds=0)
    assert caught.value.stage is FarmStage.RUNNING


def test_waiting_does_not_count_as_running() -> None:
    """What a device is waited for is not taken from the run's time."""
    assert followed([FarmStage.WAITING, FarmStage.DONE], run_seconds=0) == [
        "WAITING",
        "DONE",
    ]


def test_a_run_that_is_done_is_never_overdue() -> None:
    """A run that has ended when it is first looked at counts."""
    assert followed([FarmStage.DONE], queue_seconds=0, run_seconds=0) == ["DONE"]


def test_a_pause_hears_of_a_request_to_stop() -> None:
    """A thread that is asked to stop does not sleep to the end; what it does to clean up is left alone."""
    stop = threading.Event()
    with stopped_by(stop):
        pause(0.0)
        stop.set()
        with pytest.raises(KeyboardInterrupt):
            pause(3600.0)
        pause(0.01)
