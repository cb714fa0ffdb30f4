"""A bench as tables, as Markdown and in the history."""

import io
from dataclasses import replace

import pytest
from rich.console import RenderableType

from bench_samples import sample, sample_plan, sample_report, samples_of
from ortrim.base.console import Console
from ortrim.bench.points import BenchReport, entries_of
from ortrim.bench.report import bench_markdown, bench_tables, change_text
from ortrim.bench.scores import report_of
from ortrim.report.figures import NONE
from ortrim.report.history_pages import bench_history_tables


def shown(renderable: RenderableType, width: int = 80) -> str:
    stdout = io.StringIO()
    Console(stdout=stdout, width=width, environment={}).render(renderable)
    return stdout.getvalue()


def alone() -> BenchReport:
    plan = sample_plan()
    return report_of(plan, samples_of(plan, {}), "latency", "j.jsonl")


def test_one_choice_of_settings_is_reported_in_full() -> None:
    """Percentiles of each part of a run, and what else was measured; in 80 columns."""
    text = shown(bench_tables(alone()))
    lines = [line.split() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("the build of demo, ONNX Runtime 1.21.0\nA processor, 4 cores; 3 rounds in turn\n")
    assert ["milliseconds", "p50", "p90", "p99", "max"] in lines
    assert ["inference", "1.25", "12.0", "12.0", "12.0"] in lines
    assert "3 of 12 runs took longer than 10 ms" in text
    assert "1.00 ms for one inference, all cores together" in text
    assert "recommended" not in text


def test_a_sweep_is_a_table_with_the_pareto_set_and_what_to_take() -> None:
    text = shown(bench_tables(sample_report(threads_is_2=0.5, arena_is_false=2.0)))
    assert max(map(len, text.splitlines())) <= 80
    assert "net, 2 cases together" in text
    assert "★  threads=2" in text
    assert "recommended for latency: threads=2 (latency -50 %, processor -50 %)" in text.replace("\n", " ")
    assert "  [models.session]\n  threads = 2\n" in text


def test_a_default_that_is_as_good_as_any_is_recommended() -> None:
    text = shown(bench_tables(sample_report()))
    assert "recommended for latency: the default; nothing was better beyond the noise" in text.replace("\n", " ")


def test_many_cases_are_reported_together() -> None:
    report = sample_report(threads_is_2=0.5)
    (model,) = report.models
    cases = (*model.model.cases, replace(model.model.cases[0], name="three"))
    many = replace(report, models=(replace(model, model=replace(model.model, cases=cases)),))
    assert "p50 ms" not in shown(bench_tables(many))
    assert "p50 ms" in shown(bench_tables(report))


def test_half_a_bench_says_so() -> None:
    """And what cannot run, with the reason, without what would steer a terminal."""
    plan = sample_plan("threads=1,2")
    samples = (sample(0, case=""), sample(0), sample(0, "threads=2", failure="no\x1b[31m such kernel"))
    text = shown(bench_tables(report_of(plan, samples, "latency", "j.jsonl")))
    assert "stopped after 3 of 18 processes" in text
    assert "threads=2 cannot run: no" in text
    assert "\x1b" not in text


def test_nothing_measured_is_no_error() -> None:
    report = report_of(sample_plan("threads=1,2"), (), "latency", "j.jsonl")
    assert "stopped after 0 of 18" in shown(bench_tables(report))
    assert "None." in bench_markdown(report)


def test_markdown_has_every_row() -> None:
    """Case by case, with all percentiles and the lines for the buildspec."""
    text = bench_markdown(sample_report(threads_is_2=0.5))
    rows = [line for line in text.splitlines() if line.startswith(("| one", "| two"))]
    assert [row.split("|")[1].strip() for row in rows] == ["one"] * 4 + ["two"] * 4
    assert "| one | threads=2 | 0.625 |" in text
    assert "pareto, recommended" in text
    assert "```\nrecommended for latency: threads=2" in text


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.0, NONE), (1.0004, NONE), (1.041, "+4.1 %"), (0.69, "-31 %"), (3.0, "+200 %")]
)
def test_changes_as_text(ratio: float, text: str) -> None:
    assert change_text(ratio) == text


def test_the_history_shows_benches() -> None:
    """The newest first, with the model and the run that made it; the recommended one stands out."""
    entries = entries_of(sample_report(threads_is_2=0.5))
    text = shown(bench_history_tables(entries, 3), 120)
    assert max(map(len, shown(bench_history_tables(entries, 3)).splitlines())) <= 80
    assert text.startswith("bench of demo · net · built\n")
    rows = [line for line in text.splitlines() if line.startswith("2026-11-21 12:00")]
    assert [("threads=2" in row, "arena=false" in row) for row in rows] == [(True, True), (True, False), (False, True)]
    assert "22222222" in rows[0]
    assert "run-7" in rows[0]
    assert "1 earlier line not shown" in text
