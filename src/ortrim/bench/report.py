"""What is said of a bench, as Markdown and for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from ortrim.base.console import counted, printable
from ortrim.bench.points import BenchReport, BenchRow, Goal, ModelBench, Score, session_lines
from ortrim.parity.measurements import Distribution
from ortrim.report.figures import NONE, bytes_text, ms_text, name_text, number_text
from ortrim.report.table import Table, columns, escaped

GOALS: Final[Mapping[Goal, str]] = {"latency": "latency", "cpu": "processor time", "memory": "memory"}
SAME: Final = 0.02
"""Times nearer to one another than this are not told apart."""


def subject_text(report: BenchReport) -> str:
    """Say which library was measured."""
    library = report.plan.library
    version = "" if library.kind == "wheel" else f", ONNX Runtime {library.ort_version}"
    return printable(f"{library.name}{version}")


def machine_text(report: BenchReport) -> str:
    """Say where, and how far it went."""
    machine = report.plan.machine
    cores = (
        f"cores {', '.join(map(str, machine.pinned_cores))}" if machine.pinned_cores else counted(machine.cores, "core")
    )
    rounds = f"{counted(report.plan.rounds, 'round')} in turn"
    stopped = "" if report.done == report.total else f", stopped after {report.done} of {report.total} processes"
    return printable(f"{machine.cpu}, {cores}; {rounds}{stopped}")


def megabytes_text(value: float) -> str:
    """Write megabytes without their unit."""
    return number_text(value / 1e6)


def parts_of(row: BenchRow) -> tuple[tuple[str, Distribution], ...]:
    """Return the parts of a run with their times."""
    return ("input", row.input_ms), ("inference", row.inference_ms), ("output", row.output_ms), ("total", row.total_ms)


def facts_of(row: BenchRow, deadline_ms: float | None) -> tuple[tuple[str, str], ...]:
    """Return what is to be said of a row beside its percentiles."""
    return (
        ("runs", f"{row.total_ms.count:,} in {counted(row.rounds, 'round')}"),
        ("jitter", f"{ms_text(row.jitter_ms)} (99th percentile minus median)"),
        *((("missed", missed_words(row, deadline_ms)),) if deadline_ms else ()),
        ("first run", ms_text(row.first_run_ms)),
        ("load", ms_text(row.load_ms)),
        ("peak memory", bytes_text(row.peak_rss_bytes)),
        ("processor", f"{ms_text(row.cpu_ms)} for one inference, all cores together"),
    )


def missed_words(row: BenchRow, deadline_ms: float) -> str:
    """Say how many runs took longer than the period."""
    return f"{row.missed:,} of {row.total_ms.count:,} runs took longer than {deadline_ms:g} ms"


def change_text(ratio: float) -> str:
    """Write how far a ratio is from 1: `+4.1 %`, `-31 %`; a dash for less than a thousandth."""
    percent = 100 * (ratio - 1)
    if abs(percent) < 0.1:
        return NONE
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.1f} %"


def median_change(row: BenchRow, base: BenchRow) -> str:
    """Write how far a median is from the default's; a dash where that is within what either may be off."""
    ratio = row.total_ms.p50 / base.total_ms.p50
    return change_text(ratio) if abs(ratio - 1) > max(row.spread, base.spread, SAME) else NONE


def score_of(model: ModelBench, point: str) -> Score | None:
    """Return a point's score, None where it has none."""
    return next((score for score in model.scores if score.point == point), None)


def recommendation(report: BenchReport, model: ModelBench) -> Iterator[str]:
    """Yield what to take and what it changes; nothing when there was nothing to choose from."""
    score = score_of(model, model.recommended)
    if score is None:
        if len(model.scores) > 1:
            yield "nothing is recommended after so few rounds; give --rounds 3 or more"
        return
    goal = GOALS[report.goal]
    base, point = model.model.points[0], next(each for each in model.model.points if each.name == model.recommended)
    if point is base:
        yield f"recommended for {goal}: the default; nothing was better beyond the noise of this machine"
        return
    said = ", ".join(f"{name} {text}" for name, ratio in ratios_of(score) if (text := change_text(ratio)) != NONE)
    yield f"recommended for {goal}: {point.name} ({said})"
    if lines := session_lines(point, base):
        yield "in the buildspec, below the model:"
        yield from ("  [models.session]", *(f"  {line}" for line in lines))
    if point.level != base.level:
        yield f"optimization level: {point.level}"


def ratios_of(score: Score) -> tuple[tuple[str, float], ...]:
    """Return the figures of a score with their names."""
    return ("latency", score.latency), ("processor", score.cpu), ("memory", score.memory)


HEADINGS = (
    "case", "settings", "p50", "p90", "p99", "max", "jitter", "input", "inference", "output", "missed", "processor",
    "load", "first run", "peak MB", "best",
)  # fmt: skip
NOTE = (
    "Milliseconds; p50 to max are input, inference and output together, those three are medians. Jitter is the 99th "
    "percentile minus the median; processor is the time of all cores for one inference. Best: `pareto` if no other "
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
    rows = [_cells(report, model, row) for case in model.model.cases for row in model.rows if row.case == case.name]
    headings = (*columns("text", *HEADINGS[:2]), *columns("number", *HEADINGS[2:-1]), *columns("text", HEADINGS[-1]))
    yield Table(columns=headings, rows=rows).markdown()
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
    return row.case, row.point, *numbers, _best(model, row.point)


def _best(model: ModelBench, point: str) -> str:
    front = len(model.scores) > 1 and any(score.in_front for score in model.scores if score.point == point)
    return ", ".join((*(("pareto",) if front else ()), *(("recommended",) if point == model.recommended else ())))


FRONT: Final = "◆"
CHOSEN: Final = "★"
LEGEND: Final = f"{CHOSEN} recommended   {FRONT} nothing is as good in latency, processor and memory at once"
MOST_CASES: Final = 2
"""Of more cases the tables by setting are long: they are in Markdown and JSON."""
PERCENTILES: Final = ("p50", "p90", "p99", "max")


def bench_tables(report: BenchReport) -> RenderableType:
    """Return all that was measured; it fits 80 columns."""
    head = (Text(subject_text(report), "bold"), Text(machine_text(report), "dim"))
    blocks = [block for model in report.models for block in _blocks(report, model)]
    return Group(*head, *(part for block in blocks for part in (Text(), block)))


def _blocks(report: BenchReport, model: ModelBench) -> Iterator[RenderableType]:
    if len(model.model.points) == 1:
        yield from (Group(*_one(row, report.plan.deadline_ms)) for row in model.rows)
    else:
        yield from _several(report, model)
    for point, failure in model.failures:
        yield Text(printable(f"{point} cannot run: {failure}"), "yellow")


def _one(row: BenchRow, deadline_ms: float | None) -> Iterator[RenderableType]:
    yield Text(_title(row), "bold")
    rows = [
        (name, *map(number_text, (times.p50, times.p90, times.p99, times.maximum))) for name, times in parts_of(row)
    ]
    styles = ["bold" if name == "total" else "" for name, *_ in rows]
    headings = (*columns("text", "milliseconds"), *columns("number", *PERCENTILES))
    yield Table(columns=headings, rows=rows, styles=styles).terminal()
    late = "bold red" if row.missed else ""
    facts = [(name, Text(text, late if name == "missed" else "")) for name, text in facts_of(row, deadline_ms)]
    yield Table(columns=columns("text", "what", "value"), rows=facts).terminal(rule=False, head=False, padding=2)


def _several(report: BenchReport, model: ModelBench) -> Iterator[RenderableType]:
    if len(model.model.cases) > 1 and model.scores:
        title = f"{name_text(model.model.name)}, {counted(len(model.model.cases), 'case')} together"
        yield Group(Text(title, "bold"), _scores(model))
    for case in model.model.cases if len(model.model.cases) <= MOST_CASES else ():
        rows = [row for row in model.rows if row.case == case.name]
        if rows:
            yield Group(Text(_title(rows[0]), "bold"), _sweep(report, model, rows))
    first, *rest = (*recommendation(report, model), "")
    if first:
        yield Group(Text(LEGEND, "dim"), Text(printable(first), "bold"), *(Text(printable(line)) for line in rest))


def _scores(model: ModelBench) -> RenderableType:
    rows = [(score.point, *(change_text(ratio) for _, ratio in ratios_of(score))) for score in model.scores]
    return _points(model, [name for name, _ in ratios_of(model.scores[0])], rows)


def _sweep(report: BenchReport, model: ModelBench, rows: list[BenchRow]) -> RenderableType:
    missed = ("missed",) if report.plan.deadline_ms else ()
    lines = []
    for row in rows:
        times = (number_text(row.total_ms.p50), median_change(row, rows[0]), number_text(row.total_ms.p99))
        late = (f"{100 * row.missed / row.total_ms.count:.2g} %" if row.missed else "0",) if missed else ()
        rest = (number_text(row.cpu_ms), megabytes_text(row.peak_rss_bytes), number_text(row.load_ms))
        lines.append((row.point, *times, *late, *rest))
    return _points(model, ("p50 ms", "change", "p99 ms", *missed, "cpu ms", "peak MB", "load ms"), lines)


def _mark(model: ModelBench, point: str) -> str:
    score = score_of(model, point)
    return CHOSEN if point == model.recommended else FRONT if score and score.in_front else ""


def _title(row: BenchRow) -> str:
    return f"{name_text(row.model)}, {name_text(row.case)}"


def _points(model: ModelBench, numbers: Sequence[str], rows: Sequence[tuple[str, ...]]) -> RenderableType:
    styles = ["bold" if name == model.recommended else "" for name, *_ in rows]
    marked = [(_mark(model, name), name, *cells) for name, *cells in rows]
    headings = (*columns("text", "", "settings"), *columns("number", *numbers))
    return Table(columns=headings, rows=marked, styles=styles).terminal()
