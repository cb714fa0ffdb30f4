import threading

import pytest

from ortrim.verify.measure import DeviceRuns
from ortrim.verify.target import AggregateProgress


def test_several_are_summed_up() -> None:
    """Each counts with what it said last, and one that has not begun as much as the other."""
    told: list[tuple[int, int, str]] = []
    aggregate = AggregateProgress(lambda *words: told.append(words), 2)
    one, other = aggregate.of("a"), aggregate.of("b")
    one(1, 4, "x")
    other(2, 10, "y")
    one(3, 4, "z")
    assert told == [(1, 8, "a: x"), (3, 14, "b: y"), (5, 14, "a: z")]


def test_threads_do_not_lose_each_others_counts() -> None:
    """Whoever speaks last, all that was done is in the sum."""
    told: list[tuple[int, int]] = []
    aggregate = AggregateProgress(lambda done, total, _: told.append((done, total)), 4)

    def work(name: str) -> None:
        runs = DeviceRuns(200, aggregate.of(name))
        for _ in range(200):
            runs.done("run")

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told[-1] == (800, 800)
    assert len(told) == 800


def test_a_run_counts_when_it_has_ended() -> None:
    """What is announced is not done yet, and what fails is never done."""
    told: list[tuple[int, int, str]] = []
    runs = DeviceRuns(2, lambda *words: told.append(words))
    with runs.one("first"):
        assert told == [(0, 2, "first")]
    assert told[-1] == (1, 2, "first")
    with pytest.raises(ZeroDivisionError), runs.one("second"):
        _ = 1 // 0
    assert told[-1] == (1, 2, "second")
