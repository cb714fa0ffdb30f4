"""`size`: where the bytes of a library are, whatever it is named by, and what tells two of them apart."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from ortrim.base.cache import cache_folder, is_kept
from ortrim.base.console import Console, counted, printable
from ortrim.base.files import sha256_of, storage_errors
from ortrim.binaries.link_map import member_name
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.compiling.translation_units import UnitIndex, Variant, shipped_index
from ortrim.compiling.workspace import DYLIB, LIBRARY
from ortrim.errors import BinaryError, UsageError
from ortrim.pipeline.building import built_before
from ortrim.planning.planned import plan_for
from ortrim.planning.request import Request
from ortrim.report.charts import FULL_WIDTH, ChartBar, bar_chart, leaf_tiles
from ortrim.report.figures import share_text, shortened, symbol_text
from ortrim.report.html import rendered
from ortrim.report.table import Cell, Columns, Table, columns
from ortrim.size.accounting import GROUPINGS, NO_OPERATOR, Accounting, Share, account, shares
from ortrim.size.library import SizeChange, changes, comparable


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A library as it was named, with all its bytes accounted for."""

    name: str
    library: Path
    link_map: Path | None
    accounting: Accounting


def headline(sized: Sized) -> str:
    """Say how large the library is."""
    account = sized.accounting
    more = f", and {counted(account.zeroed_bytes, 'byte')} of zeros in memory" if account.zeroed_bytes else ""
    return f"{printable(sized.name)}: {counted(account.file_bytes, 'byte')}{more}"


def difference_headline(before: Sized, after: Sized) -> str:
    """Say in one line how much larger or smaller the second library is."""
    old, new = before.accounting.file_bytes, after.accounting.file_bytes
    if old == new:
        return f"both have {counted(new, 'byte')}"
    word = "larger" if new > old else "smaller"
    ratio = f" ({100 * (new / old - 1):+.1f} %)" if old else ""
    return f"{counted(abs(new - old), 'byte')} {word}{ratio}: {old:,} to {new:,}"


def _groups(sized: Sized, by: str) -> tuple[Share, ...]:
    return shares(sized.accounting.leaves, GROUPINGS[by])


def _changes(before: Sized, after: Sized, by: str) -> tuple[SizeChange, ...]:
    """Return what differs, the largest effect first."""
    return changes(before.accounting, after.accounting, GROUPINGS[by])


def _share(size_bytes: int, sized: Sized) -> float:
    whole = sized.accounting.file_bytes
    return size_bytes / whole if whole else 0.0


def _shown(name: Sequence[str]) -> str:
    return symbol_text(member_name(name[0]) if name[0].endswith(")") and ".a(" in name[0] else name[0])


def _all_notes(*pair: Sized) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for each in pair for note in each.accounting.notes))


def size_data(sized: Sized, by: str, top: int | None) -> dict[str, Any]:
    """Return where the bytes are as JSON-ready data; all entries, or the `top` largest."""
    account = sized.accounting
    return {
        "library": str(sized.library),
        "link_map": None if sized.link_map is None else str(sized.link_map),
        "file_bytes": account.file_bytes,
        "zeroed_bytes": account.zeroed_bytes,
        "by": by,
        "entries": [_entry(share, sized, by) for share in _groups(sized, by)[:top]],
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
            for change in _changes(before, after, by)[:top]
        ],
    }


def _entry(share: Share, sized: Sized, by: str) -> dict[str, Any]:
    size = {"size_bytes": share.size_bytes, "share": _share(share.size_bytes, sized)}
    entry = {"name": share.name[0], **_file(share.name), **size}
    if by not in {"symbol", "file"}:
        return entry
    folded = sorted({name for leaf in share.leaves for name in leaf.folded})
    components = sorted({leaf.component for leaf in share.leaves})
    operators = sorted({leaf.operator for leaf in share.leaves if leaf.operator})
    return {**entry, "components": components, "operators": operators, "folded": folded}


def _file(name: Sequence[str]) -> dict[str, str]:
    return {"file": name[1]} if len(name) > 1 else {}


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
    found, top = _groups(sized, by), top or TOP
    most = max((each.size_bytes for each in found), default=0)
    rows: list[tuple[Cell, ...]] = []
    for each in found[:top]:
        bar = ProgressBar(total=most or 1.0, completed=each.size_bytes, width=BAR_CELLS, complete_style="cyan")
        name, share = shortened(_shown(each.name), NAME_CELLS), share_text(_share(each.size_bytes, sized))
        rows.append((f"  {name}", f"{each.size_bytes:,}", share, bar))
        files = shares((leaf for leaf in each.leaves if leaf.file), GROUPINGS["file"]) if by == "component" else ()
        for part in files[:PARTS] if len(files) > 1 else ():
            name = shortened(_shown(part.name), NAME_CELLS)
            rows.append((Text(f"    {name}", "dim"), Text(f"{part.size_bytes:,}", "dim"), "", ""))
    if rest := sum(each.size_bytes for each in found[top:]):
        smaller = Text(f"  {counted(len(found[top:]), 'smaller one')}", "dim")
        rows.append((smaller, f"{rest:,}", share_text(_share(rest, sized)), ""))
    table = _table(by, "share", rows)
    return Stack(Text(headline(sized)), *_notes(sized.accounting.notes), Text(), table)


def difference_tables(before: Sized, after: Sized, by: str, top: int | None) -> RenderableType:
    """Return what grew and shrank, by one grouping or, without one, by the three that say most; it fits 80 columns."""
    said = [by] if by else [each for each in IN_SHORT if _tells(before, each) and _tells(after, each)]
    most = top or (TOP if by else FEW)
    tables = (_change_table(_changes(before, after, name), name, most) for name in said)
    spaced = (part for table in tables for part in (Text(), table))
    return Stack(Text(difference_headline(before, after), "bold"), *_notes(_all_notes(before, after)), *spaced)


def _tells(sized: Sized, by: str) -> bool:
    return by not in {"operator", "file"} or sized.accounting.mapped


def _change_table(found: Sequence[SizeChange], by: str, most: int) -> RenderableType:
    if by == "operator":
        found = [change for change in found if change.name[0] != NO_OPERATOR]
    rows: list[tuple[Cell, ...]] = []
    for change in found[:most]:
        name, kind = shortened(_shown(change.name), NAME_CELLS), Text(change.kind, KINDS[change.kind])
        now = "" if change.kind in {"new", "gone"} else f"{change.before:,} to {change.after:,}"
        rows.append((f"  {name}", f"{change.difference:+,}", kind, Text(now, "dim")))
    if rest := found[most:]:
        smaller = Text(f"  {counted(len(rest), 'smaller change')}", "dim")
        rows.append((smaller, f"{sum(change.difference for change in rest):+,}", "", ""))
    return _table(by, "became", rows or [(Text("  nothing changed", "dim"), "", "", "")])


def _table(by: str, third: str, rows: Sequence[Sequence[Cell]]) -> RenderableType:
    headings: Columns = ((f"by {by}", "text"), ("bytes", "number"), (third, "number"), ("", "short"))
    return Table(columns=headings, rows=rows).terminal(rule=False, padding=2)


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
    zeros = f", {counted(account.zeroed_bytes, 'byte')} of zeros more in memory" if account.zeroed_bytes else ""
    leaves = counted(len(account.leaves), "part")
    return rendered(
        "size.html.j2",
        title=f"{printable(sized.name)}: where the bytes are",
        subtitle=f"{counted(account.file_bytes, 'byte')} in {leaves}, each byte in exactly one{zeros}",
        notes=account.notes,
        name=printable(sized.name),
        families=leaf_tiles(account.leaves),
        file_bytes=max(1, account.file_bytes),
        tables=[(heading, _page_table(sized, by, most)) for by, heading, most in TABLES if _tells(sized, by)],
    )


def _page_table(sized: Sized, by: str, most: int) -> Table:
    found = [each for each in _groups(sized, by) if each.name[0] != NO_OPERATOR]
    lines = [(each.name, f"{each.size_bytes:,}", f"{100 * _share(each.size_bytes, sized):.2f} %") for each in found]
    rest = found[most:]
    end = (counted(len(rest), "smaller one"), f"{sum(each.size_bytes for each in rest):,}", "")
    return _placed(by, columns("number", "bytes", "share"), lines[:most], end if rest else None)


def _placed(
    what: str, others: Columns, lines: Sequence[tuple[Sequence[str], *tuple[str, ...]]], end: tuple[str, ...] | None
) -> Table:
    """Return a table of groups with the object files where they lie, if any does, and an `end` for what is left out."""
    placed = any(len(name) > 1 for name, *_ in lines)
    headings = columns("code", what, "object file") if placed else columns("text", what)
    rows = [
        (_shown(name), *((printable(name[1]) if len(name) > 1 else "",) if placed else ()), *cells)
        for name, *cells in lines
    ]
    if end:
        rows.append((end[0], *(("",) if placed else ()), *end[1:]))
    return Table(columns=(*headings, *others), rows=rows)


CHARTED: Final = 14
"""How many changes are drawn."""


def difference_page(before: Sized, after: Sized) -> str:
    """Return the page about two libraries: what grew and what shrank."""
    bars = [
        ChartBar(
            label=_shown(change.name),
            value=abs(change.difference),
            text=f"{change.difference:+,} B",
            style="grown" if change.difference > 0 else "shrunk",
        )
        for change in _changes(before, after, "component")[:CHARTED]
    ]
    return rendered(
        "size-diff.html.j2",
        title=difference_headline(before, after),
        subtitle=f"{printable(before.name)} and {printable(after.name)}",
        notes=_all_notes(before, after),
        chart=bar_chart("change by component", bars, FULL_WIDTH),
        tables=[
            (heading, _page_changes(_changes(before, after, by), most))
            for by, heading, most in TABLES
            if _tells(before, by) or _tells(after, by)
        ],
    )


def _page_changes(found: Sequence[SizeChange], most: int) -> Table:
    lines = [
        (change.name, change.kind, f"{change.before:,}", f"{change.after:,}", f"{change.difference:+,}")
        for change in found[:most]
    ]
    rest = found[most:]
    end = (counted(len(rest), "smaller change"), "", "", "", f"{sum(change.difference for change in rest):+,}")
    others = (*columns("text", "became"), *columns("number", "before", "after", "difference"))
    return _placed("what", others, lines, end if rest else None)


MAP: Final = "link.map"
PLACES: Final = (LIBRARY, f"lib/{LIBRARY}", DYLIB, f"lib/{DYLIB}")
"""Where a library lies in the folder of a finished build and in that of a package."""
ELSEWHERE: Final = (LIBRARY, DYLIB, "onnxruntime.framework/onnxruntime")
"""What a library is called deeper in a folder; a framework for a Mac has a link to it there."""
BUILT: Final = (LIBRARY, DYLIB)
"""What a library is called in a finished build, whatever name it has elsewhere (`libonnxruntime.so.1` in a package)."""
ONE_MAPPED: Final = "only one of the two has a link map, so that both are divided only by section and symbol"


Located = tuple[str, Path, Path | None]
"""The name by which a library is shown, the library, and its link map if one was found."""


def size_of(word: str, request: Request, link_map: Path | None, console: Console) -> Sized:
    """Account for all bytes of the library that `word` names: a file, a folder that holds one, or a buildspec.

    For a buildspec it is the finished build of the request's one target.
    """
    return _sized(_located(word, request, link_map, console))


def sizes_of_two(words: tuple[str, str], request: Request, console: Console) -> tuple[Sized, Sized]:
    """Account for two libraries in the same terms, so that they can be compared."""
    first, second = (_located(word, request, None, console) for word in words)
    mapped = (first[2] is None) == (second[2] is None)
    if not mapped:
        console.warn(ONE_MAPPED)
    before, after = _sized(first, mapped=mapped), _sized(second, mapped=mapped)
    old, new = comparable(before.accounting, after.accounting, _units())
    return replace(before, accounting=old), replace(after, accounting=new)


def _sized(located: Located, *, mapped: bool = True) -> Sized:
    name, library, link_map = located
    accounting: Accounting = account(library, link_map if mapped else None, _units())
    return Sized(name=name, library=library, link_map=link_map, accounting=accounting)


def _units() -> UnitIndex | None:
    """Return an index that says which files serve which operators; of kernels, those of all targets say the same."""
    variant = Variant(ort_version=RuntimeSpec().version, target="linux-x64", toolchain="zig", exceptions=False)
    return shipped_index(variant)


def _located(word: str, request: Request, link_map: Path | None, console: Console) -> Located:
    path = Path(word)
    if path.suffix == ".toml":
        return _of_buildspec(path, request, console)
    library = _library_in(path) if path.is_dir() else path
    return word, library, link_map or _map_of(library)


def _of_buildspec(spec: Path, request: Request, console: Console) -> Located:
    targets = plan_for(replace(request, spec=spec), console).targets
    if len(targets) != 1:
        names = ", ".join(target.identifier for target in targets)
        hint = f"choose one with --target: {names}"
        raise UsageError("one-target", "the size is that of one target", where=str(spec), hint=hint)
    (target,) = targets
    result = built_before(target.job)
    return f"{spec.stem} {target.identifier}", result.library, result.link_map


def _library_in(folder: Path) -> Path:
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
