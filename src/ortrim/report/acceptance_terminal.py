"""Builds beside those that were accepted, as compact tables for the terminal and plain logs."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ortrim.console import counted, printable
from ortrim.core.acceptance import Check, Checked
from ortrim.report.figures import NONE, quantity_text
from ortrim.report.names import name_text

STYLES: Final = {"regressed": "red", "within": "green", "not compared": "dim"}


def check_tables(check: Check) -> RenderableType:
    """Return what is compared, and below it what is not and why; it fits 80 columns."""
    latest, accepted = check.latest, check.accepted
    head = Text(f"{name_text(latest.spec)} · {name_text(latest.target)}", "bold")
    words = f" ({name_text(accepted.note)})" if accepted.note else ""
    against = Text(f"plan {_plan(latest.plan_digest)} against {_plan(accepted.entry.plan_digest)}, accepted ", "dim")
    against.append(printable(accepted.accepted_at[:16].replace("T", " ")) + words)
    notes = [Text(f"note: {name_text(note)}", "yellow") for note in check.notes]
    compared = [line for line in check.lines if line.outcome != "not compared"]
    return Group(head, against, *notes, _table(compared), *_left_out(check))


def _plan(digest: str) -> str:
    return printable(digest[:12])


def _table(lines: list[Checked]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("measure", overflow="fold")
    for heading in ("accepted", "now", "change", "allowed"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for line in lines:
        place = ", ".join(filter(None, (line.measure, line.model, line.case, line.device)))
        growth = NONE if line.growth is None else f"{100 * line.growth:+.1f} %"
        cells = (
            name_text(place),
            quantity_text(line.before, line.unit),
            quantity_text(line.after, line.unit),
            growth,
            f"+{100 * line.allowed:g} %",
        )
        table.add_row(*map(Text, cells), Text(line.outcome, STYLES[line.outcome]))
    return table


def _left_out(check: Check) -> list[Text]:
    """Say how many figures are not compared, by reason."""
    reasons: dict[str, int] = {}
    for line in check.lines:
        if line.outcome == "not compared":
            reasons[line.reason] = reasons.get(line.reason, 0) + 1
    return [Text(f"{counted(number, 'figure')} not compared: {reason}", "dim") for reason, number in reasons.items()]
