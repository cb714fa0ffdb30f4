"""The report as a compact table for the terminal and for plain logs."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.report.content import SYMBOLS, Line, components, gates, lines
from ortrim.report.figures import bytes_text, shortened
from ortrim.report.summary import parity_text, subtitle, title, verdict_text

STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_JUDGED: "dim",
}
LARGEST: Final = 5
BAR_CELLS: Final = 24
NAME_CELLS: Final = 30


def terminal_report(report: VerifyReport) -> RenderableType:
    """Return a report for `Console.render`; it fits 80 columns."""
    return Group(
        Text(title(report), "bold"),
        Text(subtitle(report), "dim"),
        Text(),
        _comparisons(report),
        Text(),
        _statements(report),
        Text(),
        _sizes(report),
        Text(),
        Text(verdict_text(report), STYLES[report.verdict]),
    )


def _comparisons(report: VerifyReport) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("measure", overflow="fold")
    for heading in ("ours", "baseline", "ratio", "budget"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    shown = lines(report)
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


def _statements(report: VerifyReport) -> Table:
    """Lay out parity and the gates: a label, then text that wraps beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    failed = any(output.verdict is Verdict.FAIL for output in report.parity)
    compared = Verdict.FAIL if failed else Verdict.PASS if report.parity else Verdict.NOT_JUDGED
    grid.add_row(Text("parity", "bold"), _verdict(compared, parity_text(report)))
    for number, (name, verdict, detail) in enumerate(gates(report)):
        grid.add_row(Text("" if number else "gates", "bold"), _verdict(verdict, f"{name}: {detail}"))
    return grid


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
