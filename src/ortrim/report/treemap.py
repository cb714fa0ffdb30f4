"""The tiles of a library's treemap: families, components, object files or sections, symbols.

- Dividing a rectangle into parts of given areas that are as square as can be.
- A treemap: areas in proportion to bytes, parts within their wholes. Every tile says on demand what it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from markupsafe import Markup

from ortrim.base.console import printable
from ortrim.binaries.libraries import LibrarySize
from ortrim.binaries.link_map import member_name
from ortrim.report.charts import FAMILIES, STYLES, Canvas, family
from ortrim.report.figures import ELLIPSIS, bytes_text, name_text, share_text, shortened, symbol_text
from ortrim.size.accounting import Leaf, Share, by_component, by_file, by_symbol, shares

TINY: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        """Its area, nothing for one that is turned inside out."""
        return max(0.0, self.width) * max(0.0, self.height)

    def shrunk(self, by: float, *, top: float | None = None) -> "Box":
        """Return what is inside of a margin; the upper one can be another."""
        above = by if top is None else top
        return Box(x=self.x + by, y=self.y + above, width=self.width - 2 * by, height=self.height - by - above)


def squarified(values: Sequence[float], box: Box) -> tuple[Box, ...]:
    """Return a part of the box for each value, with areas in proportion; the values are positive and descend."""
    total = sum(values)
    if total <= 0 or box.area <= TINY:
        return tuple(Box(x=box.x, y=box.y, width=0.0, height=0.0) for _ in values)
    scale = box.area / total
    found: list[Box] = []
    left, rest = box, [value * scale for value in values]
    while rest:
        count = _strip(rest, max(TINY, min(left.width, left.height)))
        parts, left = _laid(rest[:count], left)
        found += parts
        rest = rest[count:]
    return tuple(found)


def _strip(areas: Sequence[float], side: float) -> int:
    """Return how many areas, from the first, make the best strip along a side."""
    together, worst = 0.0, float("inf")
    for count, area in enumerate(areas):
        together += area
        ratio = max(side**2 * areas[0] / together**2, together**2 / (side**2 * max(TINY, area)))
        if ratio > worst:
            return count
        worst = ratio
    return len(areas)


def _laid(areas: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """Lay a strip along the shorter side of a box; return its parts and what is left of the box."""
    upright = box.width >= box.height
    side = max(TINY, box.height if upright else box.width)
    thickness = sum(areas) / side
    position, parts = 0.0, []
    for area in areas:
        length = area / max(TINY, thickness)
        parts.append(
            Box(x=box.x, y=box.y + position, width=thickness, height=length)
            if upright
            else Box(x=box.x + position, y=box.y, width=length, height=thickness)
        )
        position += length
    if upright:
        return parts, Box(x=box.x + thickness, y=box.y, width=box.width - thickness, height=box.height)
    return parts, Box(x=box.x, y=box.y + thickness, width=box.width, height=box.height - thickness)


WIDTH: Final = 1048.0
HEIGHT: Final = 640.0
HEADING: Final = 17.0
"""Height of a whole's heading."""
LETTER: Final = 6.5
BOLD_LETTER: Final = 7.2
"""About the widths of a small letter of a file's label and of a component's heading."""
WIDEST: Final = frozenset("mwMW@%")
NARROWEST: Final = frozenset(" .,:;ijlftr|!'()[]")
"""Letters that are half as wide again, and those that are half as wide; capitals and digits are a quarter wider."""
MARGINS: Final = (1.5, 1.5, 0.75, 0.0)
"""Free space around what lies at each depth: families, components, files, symbols."""
LEAST_AREAS: Final = (0.0, 0.0, 60.0, 130.0)
"""Square pixels below which tiles of a depth are drawn together as one."""
LABEL_HEIGHT: Final = 15.0
FEWEST_LETTERS: Final = 6
"""How much of a name has to fit; less says nothing."""
NAMED: Final = 4
NAME_LETTERS: Final = 40
"""How many of the tiles that are drawn as one are named, and with how many letters."""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A part with its parts; `label` is written on it, `tip` shows when the pointer rests on it."""

    label: str
    tip: str
    value: int
    style: str
    parts: tuple["Tile", ...] = ()


def treemap(label: str, families: Sequence[Tile], height: float = HEIGHT) -> Markup:
    """Draw tiles in four depths: families side by side, components with a heading, their files, the files' symbols."""
    total = sum(tile.value for tile in families if tile.value > 0)
    if not total:
        return Markup("")
    canvas = Canvas(WIDTH, height, label)
    _draw_all(canvas, families, Box(x=0, y=0, width=WIDTH, height=height), 0, total)
    return canvas.markup()


def _draw_all(canvas: Canvas, tiles: Sequence[Tile], box: Box, depth: int, total: int) -> None:
    if box.width < 1 or box.height < 1:
        return
    shown = _merged([tile for tile in tiles if tile.value > 0], LEAST_AREAS[depth] / box.area)
    for tile, place in zip(shown, squarified([tile.value for tile in shown], box), strict=True):
        inside = place.shrunk(MARGINS[depth])
        if inside.width > 0 and inside.height > 0:
            _draw(canvas, tile, inside, depth, total)


def _draw(canvas: Canvas, tile: Tile, box: Box, depth: int, total: int) -> None:
    if depth == 0:
        _draw_all(canvas, tile.parts, box, 1, total)
        return
    tip = f"{tile.tip}\n{bytes_text(tile.value)}, {share_text(tile.value / total)}"
    canvas.rectangle(box.x, box.y, box.width, box.height, f"tile-{depth} {tile.style}", tip=tip)
    if depth == 1:
        _draw_component(canvas, tile, box, total)
    elif depth == 2:
        _draw_file(canvas, tile, box, total)


def _draw_component(canvas: Canvas, tile: Tile, box: Box, total: int) -> None:
    """Write the heading where there is room for it, and draw what is in it below."""
    size = f"{tile.label}  {bytes_text(tile.value)}"
    heading = next((text for text in (size, tile.label) if _fitting(text, box, BOLD_LETTER) == text), "")
    heading = heading or _fitting(tile.label, box, BOLD_LETTER)
    if heading and box.height >= 2.5 * HEADING:
        canvas.text(box.x + 5, box.y + HEADING - 5, heading, "tile-heading")
        box = box.shrunk(2, top=HEADING)
    else:
        box = box.shrunk(2)
    parts = tile.parts if len(tile.parts) > 1 else tuple(replace(part, label="") for part in tile.parts)
    _draw_all(canvas, parts, box, 2, total)


def _draw_file(canvas: Canvas, tile: Tile, box: Box, total: int) -> None:
    """Write the name where there is room for it; the symbols lie below it, or over all when that leaves too little."""
    label = _fitting(tile.label, box, LETTER) if box.height >= LABEL_HEIGHT else ""
    parts = tile.parts if len(tile.parts) > 1 else ()
    top = LABEL_HEIGHT if label else 0.0
    if not label or box.height >= 2 * LABEL_HEIGHT:
        _draw_all(canvas, parts, box.shrunk(0.0, top=top), 3, total)
    if label:
        canvas.text(box.x + 4, box.y + 12, label, "tile-label")


def _fitting(text: str, box: Box, letter: float) -> str:
    """Return as much of a text as fits into a box, its end cut off; nothing where that would say too little."""
    reached = [width * letter for width in accumulate(map(_breadth, text))]
    room = box.width - 8
    if not reached or reached[-1] <= room:
        return text
    kept = sum(width <= room - 2 * letter for width in reached)
    return text[:kept] + ELLIPSIS if kept >= FEWEST_LETTERS - 1 else ""


def _breadth(letter: str) -> float:
    """Return about how wide a letter is, in small letters."""
    if letter in WIDEST:
        return 1.5
    if letter in NARROWEST:
        return 0.5
    return 1.25 if letter.isupper() or letter.isdigit() else 1.0


def _merged(tiles: Sequence[Tile], least_share: float) -> list[Tile]:
    """Return the tiles with those together in one that would be too small to see; the largest come first."""
    least = least_share * sum(tile.value for tile in tiles)
    small = [tile for tile in tiles if tile.value < least]
    if len(small) < 2:
        return sorted(tiles, key=lambda tile: -tile.value)
    names = ", ".join(shortened(tile.label, NAME_LETTERS) for tile in small[:NAMED])
    tip = f"{len(small)} smaller: {names}" + (", ..." if len(small) > NAMED else "")
    rest = Tile(label=f"{len(small)} smaller", tip=tip, value=sum(tile.value for tile in small), style=small[0].style)
    return sorted([*(tile for tile in tiles if tile.value >= least), rest], key=lambda tile: -tile.value)


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
