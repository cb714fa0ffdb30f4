"""Size against latency as a picture that stands alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from footprint.contenders import WHEEL, WHEEL_ORT
from footprint.summary import Summary
from ortrim.buildspec.build_options import PROFILE_NAMES
from ortrim.report.charts import Canvas, ticks

WIDTH, HEIGHT = 760.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 700.0, 60.0, 370.0
LETTER_WIDTH, NAME_HEIGHT = 6.2, 11.0
"""Of a model's name in a picture, in pixels."""
COLOURS: Final = ("#bc4c00", "#0969da", "#1a7f37", "#8250df", "#9a6700", "#57606a")
STYLE: Final = """\
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1f2328; } .faint { stroke: #d8dee4; } .axis { stroke: #57606a; } .small { font-size: 11px; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .faint { stroke: #30363d; } .axis { stroke: #8b949e; }
}
"""


@dataclass(frozen=True, kw_only=True)
class Point:
    contender: str
    model: str
    x: float
    y: float


def picture(found: Sequence[Summary]) -> str:
    """Return size against latency as SVG, where the wheel's own latency lies at 1; empty without a point."""
    points = [
        Point(contender=each.contender, model=each.model, x=each.library.file_bytes / 1e6, y=each.p50.of_level.median)
        for each in found
        if each.contender not in {WHEEL, WHEEL_ORT} and each.library and each.p50.of_level
    ]
    return draw(points) if points else ""


def draw(points: Sequence[Point]) -> str:
    canvas = Canvas(WIDTH, HEIGHT, "size against latency")
    names = sorted({point.contender for point in points}, key=_place)
    styles = {name: f"c{number % len(COLOURS)}" for number, name in enumerate(names)}
    most_x, most_y = (
        1.08 * max(values) or 1.0 for values in ([each.x for each in points], [each.y for each in points])
    )
    most_y = max(most_y, 1.1)
    _axes(canvas, most_x, most_y)
    for number, name in enumerate(names):
        x = LEFT + 110 * number
        canvas.dot(x, 40, 5, styles[name])
        canvas.text(x + 10, 44.5, name, limit=14)
    places = [(_x(point.x, most_x), _y(point.y, most_y)) for point in points]
    for point, (x, y), name_y in zip(
        points, places, name_heights(places, [each.model for each in points]), strict=True
    ):
        tip = f"{point.model}, {point.contender}: {point.x:.3g}, {point.y:.3g}"
        canvas.dot(x, y, 4.5, styles[point.contender], tip=tip)
        canvas.text(x + 8, name_y + 4, point.model, "small", limit=18)
    return _standing_alone(canvas)


def name_heights(places: Sequence[tuple[float, float]], names: Sequence[str]) -> list[float]:
    """Return how far down each place's name stands, in pixels: beside the place, or below names that it would cover."""
    heights = dict[int, float]()
    ends = [x + LETTER_WIDTH * len(name) for (x, _), name in zip(places, names, strict=True)]
    for number in sorted(range(len(places)), key=lambda each: (places[each][1], each)):
        (start, height), end = places[number], ends[number]
        beside = [each for each in heights if places[each][0] < end and start < ends[each]]
        for other in sorted(beside, key=heights.__getitem__):
            if abs(heights[other] - height) < NAME_HEIGHT:
                height = heights[other] + NAME_HEIGHT
        heights[number] = height
    return [heights[number] for number in range(len(places))]


def _axes(canvas: Canvas, most_x: float, most_y: float) -> None:
    canvas.text(LEFT, 18, "p50 of the official wheel's at the same optimization level")
    for value in ticks(0, most_y, 6):
        canvas.line(LEFT, _y(value, most_y), RIGHT, _y(value, most_y), "axis" if value == 1 else "faint")
        canvas.text(LEFT - 34, _y(value, most_y) + 4.5, f"{value:g}")
    for value in ticks(0, most_x, 8):
        canvas.text(_x(value, most_x) - 8, BOTTOM + 20, f"{value:g}")
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis")
    canvas.text(LEFT, BOTTOM + 42, "library, MB")


def _standing_alone(canvas: Canvas) -> str:
    colours = "".join(f".c{number} {{ fill: {colour}; }}\n" for number, colour in enumerate(COLOURS))
    opened = str(canvas.markup()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace(">", f"><style>\n{STYLE}{colours}</style>", 1) + "\n"


def _place(contender: str) -> tuple[int, str]:
    known: tuple[str, ...] = PROFILE_NAMES
    return (known.index(contender) if contender in known else len(known), contender)


def _x(value: float, most: float) -> float:
    return LEFT + (RIGHT - LEFT) * value / most


def _y(value: float, most: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / most
