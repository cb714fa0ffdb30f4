from dataclasses import replace

import pytest

from bench_samples import sample_plan, sample_report, samples_of
from ortrim.bench.points import entries_of
from ortrim.bench.scores import report_of
from ortrim.report.history import BenchEntry, entry_of
from sample_reports import on_device, recorded_report

WHEN = "2026-11-21T12:00:00+00:00"


def test_an_entry_holds_what_can_be_compared() -> None:
    report = recorded_report()
    entry = entry_of(report, WHEN)
    assert (entry.file_bytes, entry.components) == (report.size.file_bytes, report.size.components)
    assert (entry.spec, entry.target, entry.recorded_at) == (report.name, report.target, WHEN)
    assert {each.measure for each in entry.measures} == {"load", "peak memory", "p50", "p99"}
    ours = [run for run in report.devices[0].runs if run.library == "ours"]
    assert [each.value for each in entry.measures if each.measure == "load"] == [run.load_ms.p50 for run in ours]
    assert len([each for each in entry.measures if each.measure == "p50"]) == sum(len(run.cases) for run in ours)


def test_a_figure_that_is_no_number_is_left_out() -> None:
    report = recorded_report()
    ours = next(run for run in report.devices[0].runs if run.library == "ours")
    broken = replace(ours, load_ms=replace(ours.load_ms, p50=float("nan")))
    measures = entry_of(on_device(report, runs=(broken,)), WHEN).measures
    assert measures
    assert "load" not in {each.measure for each in measures}


def test_a_library_that_ran_nowhere_has_its_sizes() -> None:
    entry = entry_of(replace(recorded_report(), devices=()), WHEN)
    assert entry.measures == ()
    assert entry.components


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
