"""Which settings are worth having."""

from typing import Final

import pytest

from bench_samples import sample_report
from ortrim.bench.points import Goal, Score
from ortrim.bench.scores import LEAST_RESOLUTION, recommended, resolution, scores_of

NOISE: Final = 0.02


def score(point: str, latency: float, cpu: float, memory: float) -> Score:
    return Score(point=point, latency=latency, cpu=cpu, memory=memory)


def test_points_are_held_against_the_default() -> None:
    """As ratios over all cases; the default's are 1."""
    report = sample_report(threads_is_2=0.5, arena_is_false=2.0)
    scores = {each.point: each for each in report.models[0].scores}
    assert (scores["default"].latency, scores["default"].cpu, scores["default"].memory) == (1, 1, 1)
    assert scores["threads=2"].latency == pytest.approx(0.5)
    assert scores["arena=false"].cpu == pytest.approx(2.0)
    assert [each.point for each in report.models[0].scores if each.in_front] == ["threads=2"]
    assert report.models[0].recommended == "threads=2"


def test_differences_within_the_noise_put_nobody_behind() -> None:
    report = sample_report(threads_is_2=0.995, arena_is_false=3.0, threads_is_2__arena_is_false=3.0)
    assert {each.point for each in report.models[0].scores if each.in_front} == {"default", "threads=2"}
    assert report.models[0].recommended == "default"


@pytest.mark.parametrize(("goal", "taken"), [("latency", "fast"), ("cpu", "default"), ("memory", "small")])
def test_the_goal_decides(goal: Goal, taken: str) -> None:
    """Each has its own best; `slower` is nobody's."""
    scores = [score("default", 1, 1, 1), score("fast", 0.6, 1.5, 1.2), score("small", 1.2, 1.1, 0.5),
              score("slower", 1.3, 1.3, 1.3)]  # fmt: skip
    assert recommended(scores, goal, "default", NOISE) == taken


def test_of_equally_quick_ones_the_thriftier_is_taken() -> None:
    """Threads that spin gain a hundredth for twice the processor's time."""
    scores = [score("default", 1, 1, 1), score("spinning", 0.69, 2.2, 1), score("threads", 0.7, 1.1, 1)]
    assert recommended(scores, "latency", "default", NOISE) == "threads"


def test_one_point_is_no_choice() -> None:
    """Nothing is recommended without a sweep, nor when the default was not measured."""
    assert recommended([score("default", 1, 1, 1)], "latency", "default", NOISE) == ""
    rows = [row for row in sample_report().models[0].rows if row.point != "default"]
    assert scores_of(rows, "default") == ()


def test_noise_is_at_least_two_hundredths() -> None:
    assert resolution(sample_report().models[0].rows) == LEAST_RESOLUTION
    assert resolution([]) == LEAST_RESOLUTION


def test_there_is_always_somebody_in_front() -> None:
    for factor in (0.01, 0.97, 1.0, 1.03, 100.0):
        scores = sample_report(threads_is_2=factor, arena_is_false=1 / factor).models[0].scores
        assert any(each.in_front for each in scores)
