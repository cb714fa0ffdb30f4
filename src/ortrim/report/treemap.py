"""A treemap: areas in proportion to bytes, parts within their wholes. Every tile says on demand what it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from markupsafe import Markup

from ortrim.report.figures import ELLIPSIS, bytes_text, share_text, shortened
from ortrim.report.squares import Box, squarified
from ortrim.report.svg import Canvas

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
