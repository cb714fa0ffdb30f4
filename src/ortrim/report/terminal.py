"""The report as compact tables for the terminal and for plain logs."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.core.measurements import Verdict
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.report.content import components, gates
from ortrim.report.device_content import failure_lines, findings
from ortrim.report.figures import bytes_text, shortened
from ortrim.report.lines import SYMBOLS, Line, device_lines, library_lines
from ortrim.report.names import name_text
from ortrim.report.side_by_side import Cell, Group, device_names, side_by_side
from ortrim.report.summary import coverage_texts, parity_text, parity_verdict, subtitle, title, verdict_text

STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_JUDGED: "dim",
}
LARGEST: Final = 5
BAR_CELLS: Final = 24
NAME_CELLS: Final = 30
COLUMN_CELLS: Final = 15
BESIDE: Final = 4
"""How many devices stand beside each other in 80 columns; more are further blocks."""


def terminal_report(report: VerifyReport) -> RenderableType:
    """Return a report for `Console.render`; it fits 80 columns."""
    head = (Text(title(report), "bold"), Text(subtitle(report), "dim"))
    blocks = _one_device(report, report.devices[0]) if len(report.devices) == 1 else _several_devices(report)
    spaced = (part for block in blocks for part in (Text(), block))
    return Stack(*head, *spaced, Text(), Text(verdict_text(report), STYLES[report.verdict]))


def _one_device(report: VerifyReport, device: DeviceReport) -> Iterator[RenderableType]:
    yield _comparisons((*library_lines(report), *device_lines(device)))
    yield _statements((*_of_device(device, device.baseline), *_of_library(report)))
    yield _sizes(report)


def _several_devices(report: VerifyReport) -> Iterator[RenderableType]:
    """Lay out the library, then the devices beside each other, then each by itself."""
    yield _comparisons(library_lines(report))
    yield _statements(tuple(_of_library(report)))
    yield _sizes(report)
    for start in range(0, len(report.devices), BESIDE):
        yield _beside(device_names(report), side_by_side(report), slice(start, start + BESIDE))
    for device in report.devices:
        yield _section(device, report.baseline)


def _section(device: DeviceReport, baseline: str) -> RenderableType:
    heading = _verdict(device.verdict, name_text(device.device))
    heading.stylize("bold")
    lines = device_lines(device)
    table = (Text(), _comparisons(lines), Text()) if lines else ()
    return Stack(heading, *table, _statements(tuple(_of_device(device, baseline))))


def _comparisons(shown: Sequence[Line]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("measure", overflow="fold")
    for heading in ("ours", "baseline", "ratio", "budget"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    models = dict.fromkeys(line.model for line in shown)
    for model in models:
        if model and len(models) > 1:
            table.add_section()
            table.add_row(Text(shortened(model, NAME_CELLS), "bold"))
        for line in shown:
            if line.model == model:
                table.add_row(*_cells(line))
    return table


def _cells(line: Line) -> tuple[Text, ...]:
    plain = (line.measure, line.ours, line.baseline, line.ratio, line.budget)
    return (*map(Text, plain), _verdict(line.verdict, line.verdict.value))


def _beside(names: Sequence[str], groups: Sequence[Group], shown: slice) -> RenderableType:
    """Lay out some of the devices, each in a column; the columns of all groups are equally wide."""
    tables: list[RenderableType] = []
    for number, group in enumerate(groups):
        table = _columns(names[shown], group.heading, head=number == 0)
        for row in group.rows:
            table.add_row(Text(row.label), *map(_cell, row.cells[shown]))
        tables += [Text(), table] if group.heading else [table]
    return Stack(*tables)


def _columns(names: Sequence[str], heading: str, *, head: bool) -> Table:
    table = Table(
        title=Text(heading, "bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        show_header=head,
        padding=0,
        header_style="bold",
    )
    table.add_column("devices", no_wrap=True, width=COLUMN_CELLS)
    for name in names:
        # A name breaks after its kind, where else it would break anywhere.
        text = shortened(name, 2 * COLUMN_CELLS).replace(":", ":\n", 1)
        table.add_column(Text(text), overflow="fold", width=COLUMN_CELLS)
    return table


def _cell(cell: Cell) -> Text:
    return _verdict(cell.verdict, cell.text) if cell.verdict else Text(cell.text)


def _statements(rows: Sequence[tuple[str, Text]]) -> Table:
    """Lay out labels, each with text that wraps beside it; a label that repeats is written once."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    before = ""
    for label, text in rows:
        grid.add_row(Text("" if label == before else label, "bold"), text)
        before = label
    return grid


def _of_library(report: VerifyReport) -> Iterator[tuple[str, Text]]:
    yield from (("cases", Text(text)) for text in coverage_texts(report))
    for name, verdict, detail in gates(report):
        yield "gates", _verdict(verdict, f"{name}: {detail}")


def _of_device(device: DeviceReport, baseline: str) -> Iterator[tuple[str, Text]]:
    """Yield parity, or why there is none, and what else there is to say beside the report's `baseline`."""
    if device.failure:
        label = "failed" if device.verdict is Verdict.FAIL else "not run"
        yield label, Text("\n".join(failure_lines(device.failure)), STYLES[device.verdict])
        return
    yield "parity", _verdict(parity_verdict(device), parity_text(device))
    yield from ((label, Text(text)) for label, text in findings(device, baseline))


def _sizes(report: VerifyReport) -> Table:
    """Lay out the largest components, each with a bar."""
    shown = components(report)[:LARGEST]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_row(Text("by part", "bold"), Text(bytes_text(report.size.file_bytes)), Text("100 %"), Text())
    for part in shown:
        bar = ProgressBar(total=shown[0].share or 1.0, completed=part.share, width=BAR_CELLS, complete_style="cyan")
        grid.add_row(Text(f"  {shortened(part.name, NAME_CELLS)}"), Text(part.size), Text(part.share_text), bar)
    return grid


def _verdict(verdict: Verdict, text: str) -> Text:
    return Text.assemble((SYMBOLS[verdict], STYLES[verdict]), " ", text)
