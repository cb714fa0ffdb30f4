"""What samples come to."""

from dataclasses import replace

import pytest

from bench_samples import sample, sample_plan, samples_of
from ortrim.bench.points import BenchReport, Sample
from ortrim.bench.scores import process_count, report_of


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
