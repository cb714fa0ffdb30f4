"""Dividing a rectangle into parts of given areas that are as square as can be.

The method is that of Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000): a strip along the shorter side takes
one area after the other as long as that makes its worst part no longer and thinner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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
