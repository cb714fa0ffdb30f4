"""Which settings are worth having."""

from dataclasses import replace
from typing import Final

import pytest

from bench_samples import sample, sample_plan, sample_report, samples_of
from ortrim.bench.points import BenchReport, Goal, Sample, Score
from ortrim.bench.scores import LEAST_RESOLUTION, process_count, recommended, report_of, resolution, scores_of

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


def report(*samples: Sample, deadline_ms: float | None = 10.0) -> BenchReport:
    return report_of(sample_plan("threads=1,2", deadline_ms=deadline_ms), samples, "latency", "j.jsonl")


def test_a_row_has_the_figures_of_its_case() -> None:
    """Percentiles over all runs, jitter, and the runs that took longer than the deadline."""
    (row,) = report(sample(0, case=""), sample(0), sample(1, case=""), sample(1)).models[0].rows
    assert (row.case, row.rounds, row.total_ms.count, row.total_ms.p50) == ("one", 2, 8, 1.25)
    assert (row.total_ms.maximum, row.missed) == (12.0, 2)
    assert row.jitter_ms == row.total_ms.p99 - row.total_ms.p50
    assert row.input_ms.maximum == row.output_ms.maximum == 0.0
    assert (row.load_ms, row.first_run_ms, row.peak_rss_bytes) == (8.0, 5.0, 10_000_000)


def test_the_processors_time_is_without_that_of_loading() -> None:
    """Six inferences of a millisecond; what cannot be told is None, and noise makes nothing negative."""
    (row,) = report(sample(0, case="", cpu_seconds=0.02), sample(0)).models[0].rows
    assert row.cpu_ms == pytest.approx(1.0)
    (row,) = report(sample(0)).models[0].rows
    assert row.cpu_ms is None
    (row,) = report(sample(0, case="", cpu_seconds=1.0), sample(0)).models[0].rows
    assert row.cpu_ms == 0.0


def test_without_a_deadline_nothing_is_missed() -> None:
    (row,) = report(sample(0), deadline_ms=None).models[0].rows
    assert row.missed == 0


def test_a_point_that_failed_has_no_row() -> None:
    failing = sample(1, "threads=2", failure="the runner crashed")
    (model,) = report(sample(0), sample(0, "threads=2"), failing).models
    assert [row.point for row in model.rows] == ["default"]
    assert model.failures == (("threads=2", "the runner crashed"),)


def test_half_a_bench_is_told_as_far_as_it_went() -> None:
    """Points without any run have no row, and nothing is recommended after so few rounds."""
    half = report(sample(0, case=""), sample(0), sample(0, "threads=2", factor=0.1))
    assert (half.done, half.total) == (3, process_count(half.plan))
    assert half.total == 3 * 2 * 3
    assert [row.point for row in half.models[0].rows] == ["default", "threads=2"]
    assert half.models[0].recommended == ""


def test_several_models_are_kept_apart() -> None:
    plan = sample_plan("threads=1,2")
    other = replace(plan.models[0], name="other")
    both = replace(plan, models=(*plan.models, other))
    found = report_of(both, samples_of(plan, {}), "cpu", "j").models
    assert len(found[0].rows) == 4
    assert found[1].rows == ()
