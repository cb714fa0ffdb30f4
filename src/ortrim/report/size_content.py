"""What is said of where a library's bytes are, in words and in order; the forms only lay it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ortrim.binaries.growth import Change, changes
from ortrim.binaries.leaves import GROUPINGS, Accounting, Share, by_file, shares
from ortrim.binaries.map_inputs import member_name
from ortrim.console import counted, printable
from ortrim.report.symbol_text import symbol_text


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A library as it was named, with all its bytes accounted for."""

    name: str
    library: Path
    link_map: Path | None
    accounting: Accounting


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line: a name, where it belongs, its bytes and its share of the file; and the largest of what is in it."""

    name: str
    place: str
    size_bytes: int
    share: float
    parts: tuple["Row", ...] = ()


def headline(sized: Sized) -> str:
    """Say how large the library is."""
    account = sized.accounting
    more = f", and {counted(account.zeroed_bytes, 'byte')} of zeros in memory" if account.zeroed_bytes else ""
    return f"{printable(sized.name)}: {counted(account.file_bytes, 'byte')}{more}"


def rows(accounting: Accounting, by: str, parts: int = 0) -> tuple[Row, ...]:
    """Return all groups of a library, largest first, each with at most `parts` of its own files."""
    found = shares(accounting.leaves, GROUPINGS[by])
    return tuple(_row(share, accounting.file_bytes, _inner(share, accounting.file_bytes, parts)) for share in found)


def change_lines(before: Sized, after: Sized, by: str) -> tuple[Change, ...]:
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


def _row(share: Share, file_bytes: int, parts: tuple[Row, ...]) -> Row:
    return Row(
        name=shown_name(share.name),
        place=printable(share.name[1]) if len(share.name) > 1 else "",
        size_bytes=share.size_bytes,
        share=share.size_bytes / file_bytes if file_bytes else 0.0,
        parts=parts,
    )


def _inner(share: Share, file_bytes: int, parts: int) -> tuple[Row, ...]:
    """Return the largest object files of a group that has more than one."""
    found = shares((leaf for leaf in share.leaves if leaf.file), by_file) if parts else ()
    return tuple(_row(each, file_bytes, ()) for each in found[:parts]) if len(found) > 1 else ()
