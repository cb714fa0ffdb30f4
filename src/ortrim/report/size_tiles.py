"""The tiles of a library's treemap: families, components, object files or sections, symbols."""

from collections.abc import Iterable, Sequence
from typing import Final

from ortrim.binaries.leaves import Leaf, Share, by_component, by_file, by_symbol, shares
from ortrim.binaries.map_inputs import member_name
from ortrim.console import printable
from ortrim.core.library_facts import LibrarySize
from ortrim.report.families import FAMILIES, STYLES, family
from ortrim.report.figures import shortened
from ortrim.report.names import name_text
from ortrim.report.symbol_text import symbol_text
from ortrim.report.treemap import Tile

TIP_LETTERS: Final = 160


def leaf_tiles(leaves: Iterable[Leaf]) -> tuple[Tile, ...]:
    """Return the tiles of a library whose bytes are accounted for."""
    return _families([_component(share) for share in shares(leaves, by_component)])


def report_tiles(size: LibrarySize) -> tuple[Tile, ...]:
    """Return the tiles of what a report knows: components, and in each those files that are among the largest."""
    return _families([_reported(size, part.component, part.size_bytes) for part in size.components])


def _families(components: Sequence[Tile]) -> tuple[Tile, ...]:
    found = []
    for name in FAMILIES:
        parts = tuple(tile for tile in components if tile.style == STYLES[name])
        found.append(
            Tile(label=name, tip=name, value=sum(part.value for part in parts), style=STYLES[name], parts=parts)
        )
    return tuple(found)


def _component(share: Share) -> Tile:
    name = share.name[0]
    style = STYLES[family(name)]
    files = tuple(_file(each, style) for each in shares(share.leaves, by_file))
    return Tile(label=name_text(name), tip=name_text(name), value=share.size_bytes, style=style, parts=files)


def _file(share: Share, style: str) -> Tile:
    symbols = tuple(_symbol(each, style) for each in shares(share.leaves, by_symbol))
    if share.leaves[0].file:
        return Tile(
            label=printable(_stem(share.name[0])),
            tip=_tip(share.name[0]),
            value=share.size_bytes,
            style=style,
            parts=symbols,
        )
    whole = symbols[0] if len(symbols) == 1 else None
    label = whole.label if whole else name_text(share.name[0].strip("()"))
    return Tile(label=label, tip=label, value=share.size_bytes, style=style, parts=symbols)


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
