"""The history of builds as a compact table for the terminal and plain logs."""

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.console import counted
from ortrim.core.build_history import BuildEntry
from ortrim.report.history_content import Line, history_lines, series
from ortrim.report.names import name_text

STYLES: Final = {"+": "yellow", "-": "green"}
"""Colours of a change by its first letter."""


def history_tables(entries: Sequence[BuildEntry], last: int) -> RenderableType:
    """Return the `last` builds of each spec, target and profile, the newest first; it fits 80 columns."""
    blocks: list[RenderableType] = []
    for name, found in series(entries).items():
        lines = history_lines(found)
        blocks += [Text(" · ".join(map(name_text, name)), "bold"), _table(lines[-last:]), Text()]
        if len(lines) > last:
            blocks.insert(-1, Text(f"{counted(len(lines) - last, 'earlier build')} not shown", "dim"))
    return Stack(*blocks[:-1])


def _table(lines: Sequence[Line]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("recorded (UTC)", no_wrap=True)
    for heading in ("library", "change", "peak", "p50"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for line in reversed(lines):
        change = Text(line.change, STYLES.get(line.change[:1], "dim"))
        plain = (line.when[:16], line.library, change, line.peak, line.p50, line.verdict)
        table.add_row(*(each if isinstance(each, Text) else Text(each) for each in plain))
    return table
