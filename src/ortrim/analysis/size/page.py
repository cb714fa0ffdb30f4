"""The page about where a library's bytes are: a treemap, and tables of the same figures.

- The page about what tells two libraries apart: bars of the components, and tables.
"""

from typing import Any, Final

from markupsafe import Markup

from ortrim.analysis.size.content import Sized, change_lines, difference_headline, rows, shown_name, signed, tells
from ortrim.base.console import counted, printable
from ortrim.compiling.size.accounting import NO_OPERATOR
from ortrim.compiling.size.library import SizeChange
from ortrim.report.charts import FULL_WIDTH, ChartBar, bar_chart
from ortrim.report.html import rendered
from ortrim.report.treemap import leaf_tiles

TABLES: Final = (
    ("component", "By component", 60),
    ("operator", "Kernels by operator", 60),
    ("file", "Largest object files", 60),
    ("symbol", "Largest symbols", 120),
    ("section", "By section", 60),
)
"""Grouping, heading, and how many rows of it a page has."""


def size_page(sized: Sized) -> str:
    """Return the page about one library: its treemap, and tables of the same figures."""
    account = sized.accounting
    return rendered(
        "size.html.j2",
        title=f"{printable(sized.name)}: where the bytes are",
        subtitle=_subtitle(sized),
        notes=account.notes,
        name=printable(sized.name),
        families=leaf_tiles(account.leaves),
        file_bytes=max(1, account.file_bytes),
        tables=[_table(sized, *each) for each in TABLES if tells(sized, each[0])],
    )


def _subtitle(sized: Sized) -> str:
    account = sized.accounting
    leaves = counted(len(account.leaves), "part")
    zeros = f", {counted(account.zeroed_bytes, 'byte')} of zeros more in memory" if account.zeroed_bytes else ""
    return f"{counted(account.file_bytes, 'byte')} in {leaves}, each byte in exactly one{zeros}"


def _table(sized: Sized, by: str, heading: str, most: int) -> dict[str, Any]:
    found = [row for row in rows(sized.accounting, by) if row.name != NO_OPERATOR]
    return {
        "by": by,
        "heading": heading,
        "rows": found[:most],
        "left_out": found[most:],
        "left_out_bytes": sum(row.size_bytes for row in found[most:]),
        "placed": any(row.place for row in found[:most]),
    }


CHARTED: Final = 14
"""How many changes are drawn."""


def difference_page(before: Sized, after: Sized) -> str:
    """Return the page about two libraries: what grew and what shrank."""
    notes = dict.fromkeys((*before.accounting.notes, *after.accounting.notes))
    return rendered(
        "size-diff.html.j2",
        title=difference_headline(before, after),
        subtitle=f"{printable(before.name)} and {printable(after.name)}",
        notes=tuple(notes),
        chart=_chart(change_lines(before, after, "component")),
        tables=[
            _changes(change_lines(before, after, by), heading, most)
            for by, heading, most in TABLES
            if tells(before, by) or tells(after, by)
        ],
    )


def _changes(found: tuple[SizeChange, ...], heading: str, most: int) -> dict[str, Any]:
    lines = [
        {
            "name": shown_name(change.name),
            "place": printable(change.name[1]) if len(change.name) > 1 else "",
            "kind": change.kind,
            "before": f"{change.before:,}",
            "after": f"{change.after:,}",
            "difference": signed(change.difference),
        }
        for change in found[:most]
    ]
    return {
        "heading": heading,
        "rows": lines,
        "left_out": len(found) - len(lines),
        "left_out_bytes": signed(sum(change.difference for change in found[most:])),
        "placed": any(line["place"] for line in lines),
    }


def _chart(found: tuple[SizeChange, ...]) -> Markup:
    bars = [
        ChartBar(
            label=shown_name(change.name),
            value=abs(change.difference),
            text=f"{signed(change.difference)} B",
            style="grown" if change.difference > 0 else "shrunk",
        )
        for change in found[:CHARTED]
    ]
    return bar_chart("change by component", bars, FULL_WIDTH)
