"""Pictures of the summaries that stand alone: size against latency, memory against load time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from footprint.contenders import WHEEL, WHEEL_ORT
from footprint.summary import Summary
from ortrim.report.charts import Canvas, ticks
from ortrim.spec.build_options import PROFILE_NAMES
from ortrim.verify.measurements import Interval

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
    """One contender with one model."""

    contender: str
    model: str
    x: float
    y: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What is drawn against what; a `level` line is the wheel's own, which lies at 1."""

    title: str
    x_label: str
    y_label: str
    x: Callable[[Summary], float | None]
    y: Callable[[Summary], float | None]


def _median(ratio: Interval | None) -> float | None:
    return None if ratio is None else ratio.median


PICTURES: Final = {
    "footprint-latency.svg": Picture(
        title="size against latency",
        x_label="library, MB",
        y_label="p50 of the official wheel's at the same optimization level",
        x=lambda one: one.library.file_bytes / 1e6 if one.library else None,
        y=lambda one: _median(one.p50.of_level),
    ),
    "footprint-memory.svg": Picture(
        title="memory against load time",
        x_label="peak RSS of the official wheel's with the original model",
        y_label="load time of the official wheel's with the original model",
        x=lambda one: _median(one.peak_rss.of_default),
        y=lambda one: _median(one.load.of_default),
    ),
}


def pictures(found: Sequence[Summary]) -> dict[str, str]:
    """Return SVG by file name; a picture without a point is left out."""
    drawn = {name: (picture, _points(picture, found)) for name, picture in PICTURES.items()}
    return {name: draw(picture, points) for name, (picture, points) in drawn.items() if points}


def draw(picture: Picture, points: Sequence[Point]) -> str:
    """Return a picture of at least one point as SVG."""
    canvas = Canvas(WIDTH, HEIGHT, picture.title)
    names = sorted({point.contender for point in points}, key=_place)
    styles = {name: f"c{number % len(COLOURS)}" for number, name in enumerate(names)}
    most_x, most_y = (
        1.08 * max(values) or 1.0 for values in ([each.x for each in points], [each.y for each in points])
    )
    most_y = max(most_y, 1.1)
    _axes(canvas, picture, most_x, most_y)
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


def _axes(canvas: Canvas, picture: Picture, most_x: float, most_y: float) -> None:
    canvas.text(LEFT, 18, picture.y_label)
    for value in ticks(0, most_y, 6):
        canvas.line(LEFT, _y(value, most_y), RIGHT, _y(value, most_y), "axis" if value == 1 else "faint")
        canvas.text(LEFT - 34, _y(value, most_y) + 4.5, f"{value:g}")
    for value in ticks(0, most_x, 8):
        canvas.text(_x(value, most_x) - 8, BOTTOM + 20, f"{value:g}")
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis")
    canvas.text(LEFT, BOTTOM + 42, picture.x_label)


def _standing_alone(canvas: Canvas) -> str:
    colours = "".join(f".c{number} {{ fill: {colour}; }}\n" for number, colour in enumerate(COLOURS))
    opened = str(canvas.markup()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace(">", f"><style>\n{STYLE}{colours}</style>", 1) + "\n"


def _points(picture: Picture, found: Sequence[Summary]) -> list[Point]:
    points = []
    for summary in found:
        x, y = picture.x(summary), picture.y(summary)
        if summary.contender not in {WHEEL, WHEEL_ORT} and x is not None and y is not None:
            points.append(Point(contender=summary.contender, model=summary.model, x=x, y=y))
    return points


def _place(contender: str) -> tuple[int, str]:
    known: tuple[str, ...] = PROFILE_NAMES
    return (known.index(contender) if contender in known else len(known), contender)


def _x(value: float, most: float) -> float:
    return LEFT + (RIGHT - LEFT) * value / most


def _y(value: float, most: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / most
