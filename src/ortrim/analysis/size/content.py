"""What is said of where a library's bytes are, in words and in order; the forms only lay it out.

- Where a library's bytes are, and what differs between two, as JSON-ready data: nothing rounded.
- Where a library's bytes are, and what differs between two, as compact tables for the terminal and plain logs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.base.console import counted, printable
from ortrim.binaries.link_map import member_name
from ortrim.compiling.size.accounting import GROUPINGS, NO_OPERATOR, Accounting, Leaf, Share, by_file, shares
from ortrim.compiling.size.library import SizeChange, changes
from ortrim.report.figures import share_text, shortened, symbol_text


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A library as it was named, with all its bytes accounted for."""

    name: str
    library: Path
    link_map: Path | None
    accounting: Accounting


@dataclass(frozen=True, kw_only=True)
class SizeRow:
    """One line: a name, where it belongs, its bytes and its share of the file; and the largest of what is in it."""

    name: str
    place: str
    size_bytes: int
    share: float
    parts: tuple["SizeRow", ...] = ()


def headline(sized: Sized) -> str:
    """Say how large the library is."""
    account = sized.accounting
    more = f", and {counted(account.zeroed_bytes, 'byte')} of zeros in memory" if account.zeroed_bytes else ""
    return f"{printable(sized.name)}: {counted(account.file_bytes, 'byte')}{more}"


def rows(accounting: Accounting, by: str, parts: int = 0) -> tuple[SizeRow, ...]:
    """Return all groups of a library, largest first, each with at most `parts` of its own files."""
    found = shares(accounting.leaves, GROUPINGS[by])
    return tuple(_row(share, accounting.file_bytes, _inner(share, accounting.file_bytes, parts)) for share in found)


def change_lines(before: Sized, after: Sized, by: str) -> tuple[SizeChange, ...]:
    """Return what differs, the largest effect first."""
    return changes(before.accounting, after.accounting, GROUPINGS[by])


def difference_headline(before: Sized, after: Sized) -> str:
    """Say in one line how much larger or smaller the second library is."""
    old, new = before.accounting.file_bytes, after.accounting.file_bytes
    if old == new:
        return f"both have {counted(new, 'byte')}"
    word = "larger" if new > old else "smaller"
    ratio = f" ({signed_percent(new / old - 1)})" if old else ""
    return f"{counted(abs(new - old), 'byte')} {word}{ratio}: {old:,} to {new:,}"


def signed(difference: int) -> str:
    """Write a difference with its sign: `+31,204`, `-12`."""
    return f"{difference:+,}"


def signed_percent(ratio: float) -> str:
    """Write a relative difference: `+1.7 %`."""
    return f"{100 * ratio:+.1f} %"


def shown_name(name: Sequence[str]) -> str:
    """Write a group's name for reading."""
    return symbol_text(member_name(name[0]) if name[0].endswith(")") and ".a(" in name[0] else name[0])


def _row(share: Share, file_bytes: int, parts: tuple[SizeRow, ...]) -> SizeRow:
    return SizeRow(
        name=shown_name(share.name),
        place=printable(share.name[1]) if len(share.name) > 1 else "",
        size_bytes=share.size_bytes,
        share=share.size_bytes / file_bytes if file_bytes else 0.0,
        parts=parts,
    )


def _inner(share: Share, file_bytes: int, parts: int) -> tuple[SizeRow, ...]:
    """Return the largest object files of a group that has more than one."""
    found = shares((leaf for leaf in share.leaves if leaf.file), by_file) if parts else ()
    return tuple(_row(each, file_bytes, ()) for each in found[:parts]) if len(found) > 1 else ()


def size_data(sized: Sized, by: str, top: int | None) -> dict[str, Any]:
    """Return where the bytes are as JSON-ready data; all entries, or the `top` largest."""
    account = sized.accounting
    found = shares(account.leaves, GROUPINGS[by])
    return {
        "library": str(sized.library),
        "link_map": None if sized.link_map is None else str(sized.link_map),
        "file_bytes": account.file_bytes,
        "zeroed_bytes": account.zeroed_bytes,
        "by": by,
        "entries": [_entry(share, account.file_bytes, by) for share in found[:top]],
        "notes": list(account.notes),
    }


def difference_data(before: Sized, after: Sized, by: str, top: int | None) -> dict[str, Any]:
    """Return what differs as JSON-ready data; all entries, or the `top` of the largest effect."""
    old, new = before.accounting, after.accounting
    return {
        "before": {"library": str(before.library), "file_bytes": old.file_bytes, "notes": list(old.notes)},
        "after": {"library": str(after.library), "file_bytes": new.file_bytes, "notes": list(new.notes)},
        "difference_bytes": new.file_bytes - old.file_bytes,
        "by": by,
        "entries": [
            {
                "name": change.name[0],
                **_file(change.name),
                "kind": change.kind,
                "before_bytes": change.before,
                "after_bytes": change.after,
                "difference_bytes": change.difference,
            }
            for change in change_lines(before, after, by)[:top]
        ],
    }


def _entry(share: Share, file_bytes: int, by: str) -> dict[str, Any]:
    entry = {
        "name": share.name[0],
        **_file(share.name),
        "size_bytes": share.size_bytes,
        "share": share.size_bytes / file_bytes if file_bytes else 0.0,
    }
    return {**entry, **_more(share.leaves)} if by in {"symbol", "file"} else entry


def _file(name: Sequence[str]) -> dict[str, str]:
    return {"file": name[1]} if len(name) > 1 else {}


def _more(leaves: Sequence[Leaf]) -> dict[str, Any]:
    """Return what the leaves of one symbol or file have in common."""
    folded = sorted({name for leaf in leaves for name in leaf.folded})
    components = sorted({leaf.component for leaf in leaves})
    operators = sorted({leaf.operator for leaf in leaves if leaf.operator})
    return {"components": components, "operators": operators, "folded": folded}


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
        grid.add_row(*_size_terminal_row(row, most))
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
    said = [by] if by else [each for each in IN_SHORT if tells(before, each) and tells(after, each)]
    most = top or (TOP if by else FEW)
    notes = dict.fromkeys((*before.accounting.notes, *after.accounting.notes))
    tables = (_changes(change_lines(before, after, name), name, most) for name in said)
    spaced = (part for table in tables for part in (Text(), table))
    return Stack(Text(difference_headline(before, after), "bold"), *_notes(notes), *spaced)


def tells(sized: Sized, by: str) -> bool:
    """Whether a grouping says anything of this library."""
    return by not in {"operator", "file"} or sized.accounting.mapped


def _changes(found: Sequence[SizeChange], by: str, most: int) -> Table:
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


def _size_terminal_row(row: SizeRow, most: float) -> Iterable[RenderableType]:
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
