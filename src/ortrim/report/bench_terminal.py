"""A bench as compact tables for the terminal and plain logs."""

from collections.abc import Iterator
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.console import counted, printable
from ortrim.core.bench import BenchReport, BenchRow, ModelBench
from ortrim.report.bench_content import (
    change_text,
    facts_of,
    machine_text,
    median_change,
    megabytes_text,
    number_text,
    parts_of,
    ratios_of,
    recommendation,
    score_of,
    subject_text,
)
from ortrim.report.names import name_text

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
    table = _table("milliseconds", *PERCENTILES)
    for name, times in parts_of(row):
        cells = (number_text(value) for value in (times.p50, times.p90, times.p99, times.maximum))
        table.add_row(Text(name), *map(Text, cells), style="bold" if name == "total" else "")
    yield table
    facts = Table.grid(padding=(0, 2, 0, 0))
    for name, text in facts_of(row, deadline_ms):
        facts.add_row(Text(name), Text(text, "bold red" if name == "missed" and row.missed else ""))
    yield facts


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


def _scores(model: ModelBench) -> Table:
    """Lay out what each point changes, as the geometric mean over the cases."""
    table = _points(*(name for name, _ in ratios_of(model.scores[0])))
    for score in model.scores:
        cells = (change_text(ratio) for _, ratio in ratios_of(score))
        table.add_row(_mark(model, score.point), Text(score.point), *map(Text, cells), style=_style(model, score.point))
    return table


def _sweep(report: BenchReport, model: ModelBench, rows: list[BenchRow]) -> Table:
    missed = ("missed",) if report.plan.deadline_ms else ()
    table = _points("p50 ms", "change", "p99 ms", *missed, "cpu ms", "peak MB", "load ms")
    for row in rows:
        times = (number_text(row.total_ms.p50), median_change(row, rows[0]), number_text(row.total_ms.p99))
        late = (_share(row),) if missed else ()
        rest = (number_text(row.cpu_ms), megabytes_text(row.peak_rss_bytes), number_text(row.load_ms))
        cells = map(Text, (row.point, *times, *late, *rest))
        table.add_row(_mark(model, row.point), *cells, style=_style(model, row.point))
    return table


def _mark(model: ModelBench, point: str) -> Text:
    score = score_of(model, point)
    return Text(CHOSEN if point == model.recommended else FRONT if score and score.in_front else "")


def _style(model: ModelBench, point: str) -> str:
    return "bold" if point == model.recommended else ""


def _share(row: BenchRow) -> str:
    return f"{100 * row.missed / row.total_ms.count:.2g} %" if row.missed else "0"


def _title(row: BenchRow) -> str:
    return f"{name_text(row.model)}, {name_text(row.case)}"


def _points(*numbers: str) -> Table:
    """Return a table with a row for each point: its mark, its name, and numbers."""
    table = _table("", "settings", *numbers)
    table.columns[1].justify, table.columns[1].no_wrap, table.columns[1].overflow = "left", False, "fold"
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
