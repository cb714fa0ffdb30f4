"""A bench as GitHub-flavoured Markdown."""

from collections.abc import Iterator

from ortrim.core.bench import BenchReport, BenchRow, ModelBench
from ortrim.report.bench_content import machine_text, megabytes_text, number_text, recommendation, subject_text
from ortrim.report.markdown_text import escaped, table

HEADINGS = (
    "case", "settings", "p50", "p90", "p99", "max", "jitter", "input", "inference", "output", "missed", "processor",
    "load", "first run", "peak MB", "best",
)  # fmt: skip
NOTE = (
    "Milliseconds; p50 to max are input, inference and output together, those three are medians. Jitter is the 99th "
    "percentile less the median; processor is the time of all cores for one inference. Best: `pareto` when no other "
    "settings are as good in latency, processor time and memory together."
)


def bench_markdown(report: BenchReport) -> str:
    """Return a document with a table for each model."""
    parts = ["# Bench", f"{escaped(subject_text(report))}. {escaped(machine_text(report))}.", NOTE]
    for model in report.models:
        parts += _model(report, model)
    return "\n\n".join(parts) + "\n"


def _model(report: BenchReport, model: ModelBench) -> Iterator[str]:
    yield f"## {escaped(model.model.name)}"
    yield f"SHA-256 `{model.model.sha256}`"
    by_case = [row for case in model.model.cases for row in model.rows if row.case == case.name]
    yield table(HEADINGS, (_cells(report, model, row) for row in by_case), right=range(2, 15))
    for point, failure in model.failures:
        yield f"{escaped(point)} cannot run: {escaped(failure)}"
    lines = tuple(recommendation(report, model))
    if lines:
        yield "\n".join(("```", *lines, "```"))


def _cells(report: BenchReport, model: ModelBench, row: BenchRow) -> tuple[str, ...]:
    total, deadline = row.total_ms, report.plan.deadline_ms
    times = (total.p50, total.p90, total.p99, total.maximum, row.jitter_ms)
    parts = (row.input_ms.p50, row.inference_ms.p50, row.output_ms.p50)
    missed = f"{row.missed:,} of {total.count:,}" if deadline else ""
    rest = (number_text(row.cpu_ms), number_text(row.load_ms), number_text(row.first_run_ms))
    numbers = (*map(number_text, (*times, *parts)), missed, *rest, megabytes_text(row.peak_rss_bytes))
    return escaped(row.case), escaped(row.point), *numbers, _best(model, row.point)


def _best(model: ModelBench, point: str) -> str:
    front = len(model.scores) > 1 and any(score.in_front for score in model.scores if score.point == point)
    return ", ".join((*(("pareto",) if front else ()), *(("recommended",) if point == model.recommended else ())))
