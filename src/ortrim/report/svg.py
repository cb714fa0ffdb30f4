"""A small canvas for inline SVG. Colours are left to the page's style sheet, so that dark mode reaches the pictures."""

import math
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from markupsafe import Markup

from ortrim.report.figures import shortened


class Canvas:
    """A picture of `width` times `height` units, which are pixels when the page is wide enough.

    Text is escaped by the serialiser. `label` is what a screen reader says.
    """

    def __init__(self, width: float, height: float, label: str) -> None:
        box = f"0 0 {width:g} {height:g}"
        self._root = ET.Element("svg", {"viewBox": box, "role": "img", "aria-label": label, "width": f"{width:g}"})

    def rectangle(self, x: float, y: float, width: float, height: float, style: str, *, tip: str = "") -> None:
        """Draw a filled rectangle; `tip` shows when the pointer rests on it."""
        self._draw("rect", style, tip, x=x, y=y, width=max(0.0, width), height=max(0.0, height))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, *, tip: str = "") -> None:
        """Draw a straight line."""
        self._draw("line", style, tip, x1=x1, y1=y1, x2=x2, y2=y2)

    def dot(self, x: float, y: float, radius: float, style: str, *, tip: str = "") -> None:
        """Draw a circle."""
        self._draw("circle", style, tip, cx=x, cy=y, r=radius)

    def text(self, x: float, y: float, text: str, style: str = "", *, limit: int = 0) -> None:
        """Write text with its baseline at `y`, cut in the middle to `limit` characters; the tip has all of it."""
        shown = shortened(text, limit) if limit else text
        element = self._draw("text", style, text if shown != text else "", x=x, y=y)
        if len(element):
            element[0].tail = shown
        else:
            element.text = shown

    def markup(self) -> Markup:
        """Return the picture, safe to put into a page."""
        return Markup(ET.tostring(self._root, encoding="unicode"))  # noqa: S704 - escaped by the serialiser

    def _draw(self, tag: str, style: str, tip: str, **numbers: float) -> ET.Element:
        attributes = {name: f"{number:.2f}".rstrip("0").rstrip(".") for name, number in numbers.items()}
        element = ET.SubElement(self._root, tag, {"class": style, **attributes} if style else attributes)
        if tip:
            ET.SubElement(element, "title").text = tip
        return element


def ticks(low: float, high: float, count: int) -> Iterator[float]:
    """Yield about `count` round numbers between `low` and `high`."""
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield number * step
