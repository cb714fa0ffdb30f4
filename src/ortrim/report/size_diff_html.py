"""The page about what tells two libraries apart: bars of the components, and tables."""

from typing import Any, Final

from markupsafe import Markup

from ortrim.binaries.growth import Change
from ortrim.console import printable
from ortrim.report.charts import FULL_WIDTH, Bar, bar_chart
from ortrim.report.pages import rendered
from ortrim.report.size_content import Sized, change_lines, difference_headline, shown_name, signed
from ortrim.report.size_html import TABLES, tells

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


def _changes(found: tuple[Change, ...], heading: str, most: int) -> dict[str, Any]:
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


def _chart(found: tuple[Change, ...]) -> Markup:
    bars = [
        Bar(
            label=shown_name(change.name),
            value=abs(change.difference),
            text=f"{signed(change.difference)} B",
            style="grown" if change.difference > 0 else "shrunk",
        )
        for change in found[:CHARTED]
    ]
    return bar_chart("change by component", bars, FULL_WIDTH)
