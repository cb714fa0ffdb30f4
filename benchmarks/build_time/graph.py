"""The graph of build time against the number of operator types, as a picture that stands alone."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ortrim.base.console import counted, duration_text
from ortrim.report.charts import Canvas, ticks

WIDTH, HEIGHT = 760.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 740.0, 34.0, 350.0
LABEL: Final = 28.0
STYLE: Final = """\
<style>
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1f2328; } .faint { stroke: #d8dee4; } .axis { stroke: #57606a; }
.ours { stroke: #0969da; stroke-width: 2; fill: #0969da; } .upstream { stroke: #bc4c00; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .faint { stroke: #30363d; } .axis { stroke: #8b949e; }
  .ours { stroke: #4493f8; fill: #4493f8; } .upstream { stroke: #db6d28; }
}
</style>"""


def graph(points: Sequence[tuple[int, float]], upstream_seconds: float | None, caption: str) -> str:
    """Return the picture as SVG: minutes upward, operator types to the right, upstream's time as a level line."""
    canvas = Canvas(WIDTH, HEIGHT, f"build time against the number of operator types: {caption}")
    most = points[-1][0]
    longest = 1.08 * max(*(seconds for _, seconds in points), upstream_seconds or 0.0, 1.0)
    places = [(_x(number, most), _y(seconds, longest)) for number, seconds in points]
    _axes(canvas, most, longest, caption)
    if upstream_seconds:
        level = _y(upstream_seconds, longest)
        canvas.line(LEFT, level, RIGHT, level, "upstream")
        canvas.text(LEFT + 8, level - 7, f"upstream's recipe: {duration_text(upstream_seconds)}")
    _curve(canvas, points, places)
    opened = str(canvas.markup()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace(">", f">{STYLE}", 1) + "\n"


def _curve(canvas: Canvas, points: Sequence[tuple[int, float]], places: Sequence[tuple[float, float]]) -> None:
    for before, after in pairwise(places):
        canvas.line(*before, *after, "ours")
    written = 0.0
    for (number, seconds), (x, y) in zip(points, places, strict=True):
        canvas.dot(x, y, 4, "ours", tip=f"{counted(number, 'operator type')}: {duration_text(seconds)}")
        if x - written >= LABEL:
            canvas.text(x - 10, y + 22, f"{seconds / 60:.1f}")
            written = x


def _axes(canvas: Canvas, most: int, longest: float, caption: str) -> None:
    canvas.text(LEFT, 18, f"minutes of processor time from an empty build folder to the library ({caption})")
    for minutes in ticks(0, longest / 60, 6):
        y = _y(60 * minutes, longest)
        canvas.line(LEFT, y, RIGHT, y, "faint")
        canvas.text(LEFT - 34, y + 4.5, f"{minutes:g}")
    for number in ticks(0, most, 8):
        canvas.text(_x(number, most) - 8, BOTTOM + 20, f"{number:g}")
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis")
    canvas.text(LEFT, BOTTOM + 42, "operator types in the library")


def _x(number: float, most: int) -> float:
    return LEFT + (RIGHT - LEFT) * number / most


def _y(seconds: float, longest: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * seconds / longest
