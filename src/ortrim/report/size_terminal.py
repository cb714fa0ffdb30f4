"""Where a library's bytes are, and what differs between two, as compact tables for the terminal and plain logs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.binaries.growth import Change
from ortrim.binaries.leaves import NO_OPERATOR
from ortrim.console import counted, printable
from ortrim.report.figures import share_text, shortened
from ortrim.report.size_content import (
    Row,
    Sized,
    change_lines,
    difference_headline,
    headline,
    rows,
    shown_name,
    signed,
)

NAME_CELLS: Final = 44
BAR_CELLS: Final = 16
PARTS: Final = 2
"""How many object files are named in a component."""
IN_SHORT: Final = ("component", "operator", "symbol")
"""Groupings of a comparison that was asked for without one."""
TOP: Final = 12
FEW: Final = 5
"""How many lines a table has alone, and among others."""
KINDS: Final = {"new": "yellow", "grown": "yellow", "gone": "green", "shrunk": "green"}


def size_table(sized: Sized, by: str, top: int | None) -> RenderableType:
    """Return the `top` largest groups, with what is left of the file in one line; it fits 80 columns."""
    found, top = rows(sized.accounting, by, parts=PARTS if by == "component" else 0), top or TOP
    grid = _grid()
    grid.add_row(Text(f"by {by}", "bold"), Text("bytes", "bold"), Text("share", "bold"), Text())
    most = max((row.share for row in found), default=0.0)
    for row in found[:top]:
        grid.add_row(*_row(row, most))
        for part in row.parts:
            grid.add_row(Text(f"    {shortened(part.name, NAME_CELLS)}", "dim"), Text(f"{part.size_bytes:,}", "dim"))
    rest = sum(row.size_bytes for row in found[top:])
    if rest:
        share = rest / sized.accounting.file_bytes
        grid.add_row(
            Text(f"  {counted(len(found[top:]), 'smaller one')}", "dim"), Text(f"{rest:,}"), Text(share_text(share))
        )
    return Stack(Text(headline(sized)), *_notes(sized.accounting.notes), Text(), grid)


def difference_tables(before: Sized, after: Sized, by: str, top: int | None) -> RenderableType:
    """Return what grew and shrank, by one grouping or, without one, by the three that say most; it fits 80 columns."""
    said = [by] if by else [each for each in IN_SHORT if _says_something(before, after, each)]
    most = top or (TOP if by else FEW)
    notes = dict.fromkeys((*before.accounting.notes, *after.accounting.notes))
    tables = (_changes(change_lines(before, after, name), name, most) for name in said)
    spaced = (part for table in tables for part in (Text(), table))
    return Stack(Text(difference_headline(before, after), "bold"), *_notes(notes), *spaced)


def _says_something(before: Sized, after: Sized, by: str) -> bool:
    return by != "operator" or (before.accounting.mapped and after.accounting.mapped)


def _changes(found: Sequence[Change], by: str, most: int) -> Table:
    if by == "operator":
        found = [change for change in found if change.name[0] != NO_OPERATOR]
    grid = _grid()
    grid.add_row(Text(f"by {by}", "bold"), Text("bytes", "bold"), Text("became", "bold"), Text())
    for change in found[:most]:
        now = "" if change.kind in {"new", "gone"} else f"{change.before:,} to {change.after:,}"
        grid.add_row(
            Text(f"  {shortened(shown_name(change.name), NAME_CELLS)}"),
            Text(signed(change.difference)),
            Text(change.kind, KINDS[change.kind]),
            Text(now, "dim"),
        )
    rest = found[most:]
    if rest:
        together = signed(sum(change.difference for change in rest))
        grid.add_row(Text(f"  {counted(len(rest), 'smaller change')}", "dim"), Text(together))
    if not found:
        grid.add_row(Text("  nothing changed", "dim"))
    return grid


def _row(row: Row, most: float) -> Iterable[RenderableType]:
    bar = ProgressBar(total=most or 1.0, completed=row.share, width=BAR_CELLS, complete_style="cyan")
    yield Text(f"  {shortened(row.name, NAME_CELLS)}")
    yield Text(f"{row.size_bytes:,}")
    yield Text(share_text(row.share))
    yield bar


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    return grid


def _notes(notes: Iterable[str]) -> Iterator[Text]:
    for note in notes:
        yield Text(f"note: {printable(note)}", "yellow")
