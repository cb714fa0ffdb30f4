"""What each build option brings, as a table: for a terminal, and as Markdown. Pure."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from build_options.record import Outcome
from ortrim.base.console import printable
from ortrim.report.figures import NONE, escaped
from ortrim.report.figures import table as markdown_table

HEADINGS = ("build option", "on alone, bytes", "off alone, bytes")
Found = Mapping[tuple[str, str], Outcome]


def rows(outcomes: Sequence[Outcome], bottom: str, top: str) -> tuple[tuple[str, str, str], ...]:
    """Return the whole profiles' bytes, and for each build option what it saves on alone, and costs off alone."""
    found = {(each.profile, each.option): each for each in outcomes}
    names = dict.fromkeys(each.option for each in outcomes if each.option)
    return (
        ("all", _whole(found, bottom), _whole(found, top)),
        *((name, _change(found, bottom, name), _change(found, top, name)) for name in names),
    )


def _whole(found: Found, profile: str) -> str:
    outcome = found.get((profile, ""))
    return NONE if outcome is None else outcome.failure or f"{outcome.file_bytes:,}"


def _change(found: Found, profile: str, option: str) -> str:
    outcome, whole = found.get((profile, option)), found.get((profile, ""))
    if outcome is None or outcome.failure:
        return outcome.failure if outcome else NONE
    return NONE if whole is None or whole.failure else f"{outcome.file_bytes - whole.file_bytes:+,}"


def table(outcomes: Sequence[Outcome], bottom: str, top: str) -> Table:
    shown = Table(*HEADINGS)
    for row in rows(outcomes, bottom, top):
        shown.add_row(*map(printable, row))
    return shown


def markdown(outcomes: Sequence[Outcome], bottom: str, top: str) -> str:
    return markdown_table(HEADINGS, [[escaped(cell) for cell in row] for row in rows(outcomes, bottom, top)]) + "\n"
