"""How long models should take beside a reference model, as a compact table for the terminal and plain logs."""

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.core.proportion import Blamed, Expectation, Pace
from ortrim.report.cost_terminal import amount_text
from ortrim.report.figures import NONE, ms_text, share_text
from ortrim.report.names import name_text

STYLES: Final = {"not measured": "dim", "much arithmetic": "", "poor execution efficiency": "yellow"}


def proportion_tables(expectations: Sequence[Expectation]) -> RenderableType:
    """Return a table for each device, and below it what each finding is put down to; it fits 80 columns."""
    blocks: list[RenderableType] = []
    for pace in dict.fromkeys(each.pace for each in expectations):
        own = [each for each in expectations if each.pace == pace]
        blocks += [Text(_headline(pace), "bold"), _table(own), *map(_blame, own), Text()]
    return Group(*blocks[:-1])


def _headline(pace: Pace) -> str:
    known = f"{amount_text(pace.macs)} MACs in {ms_text(pace.milliseconds)}"
    return name_text(f"{pace.device}, by {pace.model}: {known}")


def _table(expectations: Sequence[Expectation]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("model, case", overflow="fold")
    for heading in ("MACs", "expected", "measured", "times"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("finding", overflow="fold")
    for each in expectations:
        times = NONE if each.ratio is None else f"{each.ratio:.3g}"
        cells = (_place(each), amount_text(each.macs), ms_text(each.expected_ms), ms_text(each.measured_ms), times)
        table.add_row(*map(Text, cells), Text(each.finding, STYLES[each.finding]))
    return table


def _blame(each: Expectation) -> Text:
    if not each.blame_known:
        return Text(f"{_place(each)}: which operators it is, a profile tells: invoke verify --trace", "dim")
    words = ", ".join(map(_blamed, each.blamed)) or "no operator stands out"
    return Text(f"{_place(each)}: {words}", "dim")


def _blamed(blamed: Blamed) -> str:
    time = "" if blamed.time is None else f" and {share_text(blamed.time)} of the time"
    return f"{name_text(blamed.operator)} has {share_text(blamed.arithmetic)} of the arithmetic{time}"


def _place(each: Expectation) -> str:
    return name_text(f"{each.model}, {each.case}" if each.case else each.model)
