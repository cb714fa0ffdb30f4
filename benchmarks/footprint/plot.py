"""Size against latency as a picture that stands alone."""

from collections.abc import Sequence

from pictures import COLOURS, LEFT, Picture

from footprint.contenders import WHEEL, WHEEL_ORT
from footprint.summary import Summary
from ortrim.buildspec.build_options import PROFILE_NAMES

LETTER_WIDTH, NAME_HEIGHT = 6.2, 11.0
"""Of a model's name in a picture, in pixels."""


def picture(found: Sequence[Summary]) -> str:
    """Return size against latency as SVG, where the wheel's own latency lies at 1; empty without a point."""
    points = [
        (each.contender, each.model, each.library.file_bytes / 1e6, each.p50.of_level.median)
        for each in found
        if each.contender not in {WHEEL, WHEEL_ORT} and each.library and each.p50.of_level
    ]
    if not points:
        return ""
    most = 1.08 * max(x for *_, x, _ in points), max(1.1, *(1.08 * y for *_, y in points))
    upward = "p50 of the official wheel's at the same optimization level"
    drawn = Picture("size against latency", upward=upward, rightward="library, MB", most=most, marked=1)
    styles = {
        name: f"c{number % len(COLOURS)}"
        for number, name in enumerate(sorted({name for name, *_ in points}, key=_place))
    }
    for number, (name, style) in enumerate(styles.items()):
        drawn.dot(LEFT + 110 * number, 40, 5, style)
        drawn.text(LEFT + 110 * number + 10, 44.5, name, limit=14)
    places = [(drawn.x(x), drawn.y(y)) for *_, x, y in points]
    heights = name_heights(places, [model for _, model, *_ in points])
    for (contender, model, size, ratio), (x, y), height in zip(points, places, heights, strict=True):
        drawn.dot(x, y, 4.5, styles[contender], tip=f"{model}, {contender}: {size:.3g}, {ratio:.3g}")
        drawn.text(x + 8, height + 4, model, "small", limit=18)
    return drawn.svg()


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


def _place(contender: str) -> tuple[int, str]:
    known: tuple[str, ...] = PROFILE_NAMES
    return (known.index(contender) if contender in known else len(known), contender)
