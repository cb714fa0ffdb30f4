"""What the history keeps of a bench."""

from dataclasses import replace

import pytest

from bench_samples import sample_plan, sample_report, samples_of
from ortrim.bench.points import entries_of
from ortrim.bench.scores import report_of
from ortrim.report.history import BenchEntry


@pytest.fixture(name="entries")
def fixture_entries() -> tuple[BenchEntry, ...]:
    """Return the entries of a sweep over four points."""
    return entries_of(sample_report(threads_is_2=0.5))


def test_what_is_kept_of_a_bench(entries: tuple[BenchEntry, ...]) -> None:
    assert [(each.point, each.recommended) for each in entries] == [
        ("default", 0), ("arena=false", 0), ("threads=2", 1), ("threads=2 arena=false", 0),
    ]  # fmt: skip
    entry = entries[0]
    assert (entry.model, entry.model_sha256, entry.training_run, entry.library) == ("net", "2" * 64, "run-7", "built")
    assert (entry.cpu, entry.cores, entry.rounds, entry.deadline_ms) == ("A processor", 4, 3, 10.0)
    assert '"threads":1' in entry.settings
    figures = {(each.case, each.measure): (each.value, each.unit) for each in entry.measures}
    assert figures["one", "p50"] == (1.25, "ms")
    assert figures["two", "missed deadlines"] == (3, "runs")
    assert figures["one", "peak memory"] == (10_000_000, "bytes")
    assert len(figures) == 2 * 13


def test_without_a_deadline_none_is_missed() -> None:
    """There is no such figure then, and the deadline is 0; pinned cores are those that count."""
    plan = sample_plan(deadline_ms=None)
    plan = replace(plan, machine=replace(plan.machine, pinned_cores=(3,)))
    (entry,) = entries_of(report_of(plan, samples_of(plan, {}), "latency", "j"))
    assert (entry.deadline_ms, entry.cores, entry.recommended) == (0.0, 1, 0)
    assert "missed deadlines" not in {each.measure for each in entry.measures}
