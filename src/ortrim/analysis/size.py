"""`size`: where the bytes of a library are, whatever it is named by, and what tells two of them apart."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.base.cache import cache_folder, is_kept
from ortrim.base.console import Console, counted, printable
from ortrim.base.files import sha256_of, storage_errors
from ortrim.binaries.link_map import member_name
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.compiling.size.accounting import GROUPINGS, NO_OPERATOR, Accounting, Leaf, Share, account, by_file, shares
from ortrim.compiling.size.library import SizeChange, changes, comparable
from ortrim.compiling.translation_units import UnitIndex, Variant, shipped_index
from ortrim.compiling.trees import DYLIB, LIBRARY
from ortrim.errors import BinaryError, UsageError
from ortrim.pipeline.executors import built_before
from ortrim.planning.planned import plan_for
from ortrim.planning.request import Request
from ortrim.report.charts import FULL_WIDTH, ChartBar, bar_chart, leaf_tiles
from ortrim.report.figures import share_text, shortened, symbol_text
from ortrim.report.html import rendered


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
            _change_table(change_lines(before, after, by), heading, most)
            for by, heading, most in TABLES
            if tells(before, by) or tells(after, by)
        ],
    )


def _change_table(found: tuple[SizeChange, ...], heading: str, most: int) -> dict[str, Any]:
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


MAP: Final = "link.map"
PLACES: Final = (LIBRARY, f"lib/{LIBRARY}", DYLIB, f"lib/{DYLIB}")
"""Where a library lies in the folder of a finished build and in that of a package."""
ELSEWHERE: Final = (LIBRARY, DYLIB, "onnxruntime.framework/onnxruntime")
"""What a library is called deeper in a folder; a framework for a Mac has a link to it there."""
BUILT: Final = (LIBRARY, DYLIB)
"""What a library is called in a finished build, whatever name it has elsewhere (`libonnxruntime.so.1` in a package)."""
ONE_MAPPED: Final = "only one of the two has a link map, so that both are divided only by section and symbol"


@dataclass(frozen=True, kw_only=True)
class Located:
    """A library, its link map if one was found, and the name by which it is shown."""

    name: str
    library: Path
    link_map: Path | None


def size_of(word: str, request: Request, link_map: Path | None, console: Console) -> Sized:
    """Account for all bytes of the library that `word` names: a file, a folder that holds one, or a buildspec.

    For a buildspec it is the finished build of the request's one target.
    """
    return _sized(_located(word, request, link_map, console))


def sizes_of_two(words: tuple[str, str], request: Request, console: Console) -> tuple[Sized, Sized]:
    """Account for two libraries in the same terms, so that they can be compared."""
    first, second = (_located(word, request, None, console) for word in words)
    mapped = (first.link_map is None) == (second.link_map is None)
    if not mapped:
        console.warn(ONE_MAPPED)
    before, after = _sized(first, mapped=mapped), _sized(second, mapped=mapped)
    old, new = comparable(before.accounting, after.accounting, _units())
    return replace(before, accounting=old), replace(after, accounting=new)


def _sized(located: Located, *, mapped: bool = True) -> Sized:
    accounting: Accounting = account(located.library, located.link_map if mapped else None, _units())
    return Sized(name=located.name, library=located.library, link_map=located.link_map, accounting=accounting)


def _units() -> UnitIndex | None:
    """Return an index that says which files serve which operators; of kernels, those of all targets say the same."""
    variant = Variant(ort_version=RuntimeSpec().version, target="linux-x64", toolchain="zig", exceptions=False)
    return shipped_index(variant)


def _located(word: str, request: Request, link_map: Path | None, console: Console) -> Located:
    path = Path(word)
    if path.suffix == ".toml":
        return _of_buildspec(path, request, console)
    library = _library_in(path) if path.is_dir() else path
    return Located(name=word, library=library, link_map=link_map or _map_of(library))


def _of_buildspec(spec: Path, request: Request, console: Console) -> Located:
    """Return the finished build of a buildspec's one target."""
    targets = plan_for(replace(request, spec=spec), console).targets
    if len(targets) != 1:
        names = ", ".join(target.job.target.identifier for target in targets)
        hint = f"choose one with --target: {names}"
        raise UsageError("one-target", "the size is that of one target", where=str(spec), hint=hint)
    (target,) = targets
    result = built_before(target.job)
    return Located(name=f"{spec.stem} {target.job.target.identifier}", library=result.library, link_map=result.link_map)


def _library_in(folder: Path) -> Path:
    """Return the one library of a folder."""
    with storage_errors(folder):
        for place in PLACES:
            if (folder / place).is_file():
                return folder / place
        found = sorted(path for name in ELSEWHERE for path in folder.rglob(name) if path.is_file())
    if len(found) == 1:
        return found[0]
    what = f"the folder has {len(found)} libraries of ONNX Runtime; one was expected"
    raise BinaryError("no-library", what, where=str(folder), hint="name the library itself")


def _map_of(library: Path) -> Path | None:
    """Return the link map beside a library, or that of the finished build with the same bytes."""
    beside = library.with_name(MAP)
    if beside.is_file():
        return beside
    if not library.is_file():
        return None
    with storage_errors(library):
        size, digest = library.stat().st_size, ""
        for build in sorted(path for name in BUILT for path in cache_folder("builds").glob(f"*/{name}")):
            with suppress(FileNotFoundError):  # Another process may remove a damaged build.
                if build.with_name(MAP).is_file() and build.stat().st_size == size:
                    digest = digest or sha256_of(library)
                    if sha256_of(build) == digest and is_kept(build.parent):
                        return build.with_name(MAP)
    return None
