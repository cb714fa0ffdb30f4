"""The tiles of a library's treemap: families, components, object files or sections, symbols. The browser lays them out.

Areas are in proportion to bytes, parts lie within their wholes, and every tile says on demand what it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.base.console import printable
from ortrim.binaries.elf import LibrarySize
from ortrim.binaries.link_map import member_name
from ortrim.compiling.size.accounting import Leaf, Share, by_component, by_file, by_symbol, shares
from ortrim.report.charts import FAMILIES, STYLES, family
from ortrim.report.figures import name_text, shortened, symbol_text

LEAST_FILE: Final = 0.01
LEAST_SYMBOL: Final = 0.02
"""The part of what they lie in below which files and symbols are drawn together as one."""
NAMED: Final = 4
NAME_LETTERS: Final = 40
"""How many of the tiles that are drawn as one are named, and with how many letters."""
TIP_LETTERS: Final = 160


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A part with its parts; `label` is written on it, `tip` shows when the pointer rests on it."""

    label: str
    tip: str
    value: int
    style: str
    parts: tuple["Tile", ...] = ()


def leaf_tiles(leaves: Iterable[Leaf]) -> tuple[Tile, ...]:
    """Return the tiles of a library whose bytes are accounted for."""
    return _families([_component(share) for share in shares(leaves, by_component)])


def report_tiles(size: LibrarySize) -> tuple[Tile, ...]:
    """Return the tiles of what a report knows: components, and in each those files that are among the largest."""
    return _families([_reported(size, part.component, part.size_bytes) for part in size.components])


def merged(tiles: Iterable[Tile], least_share: float) -> tuple[Tile, ...]:
    """Return the tiles, largest first, with those together in one that would be too small to see; none without size."""
    real = [tile for tile in tiles if tile.value > 0]
    least = least_share * sum(tile.value for tile in real)
    small = [tile for tile in real if tile.value < least]
    if len(small) > 1:
        names = ", ".join(shortened(tile.label, NAME_LETTERS) for tile in small[:NAMED])
        label, more = f"{len(small)} smaller", ", ..." if len(small) > NAMED else ""
        value, style = sum(tile.value for tile in small), small[0].style
        rest = Tile(label=label, tip=f"{label}: {names}{more}", value=value, style=style)
        real = [*(tile for tile in real if tile.value >= least), rest]
    return tuple(sorted(real, key=lambda tile: -tile.value))


def _families(components: Sequence[Tile]) -> tuple[Tile, ...]:
    found = []
    for name in FAMILIES:
        parts = merged((tile for tile in components if tile.style == STYLES[name]), 0.0)
        if parts:
            value = sum(part.value for part in parts)
            found.append(Tile(label=name, tip=name, value=value, style=STYLES[name], parts=parts))
    return tuple(found)


def _component(share: Share) -> Tile:
    name = share.name[0]
    style = STYLES[family(name)]
    files = merged((_file(each, style) for each in shares(share.leaves, by_file)), LEAST_FILE)
    return Tile(label=name_text(name), tip=name_text(name), value=share.size_bytes, style=style, parts=files)


def _file(share: Share, style: str) -> Tile:
    symbols = merged((_symbol(each, style) for each in shares(share.leaves, by_symbol)), LEAST_SYMBOL)
    label = symbols[0].label if len(symbols) == 1 else name_text(share.name[0].strip("()"))
    tip = label
    if share.leaves[0].file:
        label, tip = printable(_stem(share.name[0])), _tip(share.name[0])
    return Tile(label=label, tip=tip, value=share.size_bytes, style=style, parts=symbols)


def _symbol(share: Share, style: str) -> Tile:
    return Tile(label=symbol_text(share.name[0]), tip=_tip(share.name[0]), value=share.size_bytes, style=style)


def _stem(file: str) -> str:
    """Return an object's name without what all names end with: `session_state` of `libx.a(session_state.cc.o)`."""
    return member_name(file).removesuffix(".o").removesuffix(".cc").removesuffix(".cpp")


def _reported(size: LibrarySize, component: str, size_bytes: int) -> Tile:
    """Return the tile of a component with the files of it that are among the largest; older reports name none."""
    style = STYLES[family(component)]
    parts = [
        Tile(label=printable(_stem(file.name)), tip=_tip(file.name), value=file.size_bytes, style=style)
        for file in size.largest_files
        if file.component == component and file.size_bytes > 0
    ]
    rest = size_bytes - sum(part.value for part in parts)
    if rest > 0:
        label = "all else" if parts else ""
        parts.append(Tile(label=label, tip=f"{name_text(component)}, all else", value=rest, style=style))
    return Tile(label=name_text(component), tip=name_text(component), value=size_bytes, style=style, parts=tuple(parts))


def _tip(name: str) -> str:
    return shortened(printable(name), TIP_LETTERS)
