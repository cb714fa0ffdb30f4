"""Plots over builds: the library's size by family, and single measures."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from ortrim.core.build_history import BuildEntry
from ortrim.report.families import FAMILIES, STYLES, family
from ortrim.report.figures import bytes_text, quantity_text
from ortrim.report.history_content import Curve, Series, Stamp, change_text
from ortrim.report.names import name_text
from ortrim.report.svg import Canvas, ticks

WIDTH: Final = 1000.0
HEIGHT: Final = 260.0
LOW_HEIGHT: Final = 150.0
LEFT: Final = 70.0
RIGHT: Final = 24.0
TOP: Final = 12.0
BOTTOM: Final = 28.0
SHOWN: Final = 60
"""How many builds, the last ones, are drawn."""
WIDEST: Final = 44.0
TICKS: Final = 4
DATE_WIDTH: Final = 84.0
LINE_STYLES: Final = ("line-0", "line-1", "line-2", "line-3")
"""As many curves are told apart in one plot."""


def size_columns(entries: Series) -> Markup:
    """Draw a column for each of the last builds: the bytes in memory by family, from zero."""
    shown = entries[-SHOWN:]
    sizes = [_by_family(entry) for entry in shown]
    top = max((sum(each.values()) for each in sizes), default=0)
    if not top:
        return Markup("")
    canvas = Canvas(WIDTH, HEIGHT, f"bytes in memory of the last {len(shown)} builds, by family")
    scale = (HEIGHT - TOP - BOTTOM) / top
    _axis(canvas, HEIGHT, [(value, bytes_text(value)) for value in ticks(0, top, TICKS)], 0.0, scale)
    width = min(WIDEST, 0.76 * _step(len(shown)))
    for number, (entry, parts) in enumerate(zip(shown, sizes, strict=True)):
        before = entries[len(entries) - len(shown) + number - 1] if len(entries) - len(shown) + number else None
        y = HEIGHT - BOTTOM
        for name in FAMILIES:
            height = parts[name] * scale
            library = f"library {entry.file_bytes:,} bytes, {change_text(entry, before)}"
            tip = f"{_when(entry)}\n{name}: {bytes_text(parts[name])}\n{library}"
            canvas.rectangle(_x(number, len(shown)) - width / 2, y - height, width, height, STYLES[name], tip=tip)
            y -= height
    _dates(canvas, build_stamps(shown), HEIGHT)
    return canvas.markup()


def build_stamps(entries: Series) -> tuple[Stamp, ...]:
    """Say of each build when it was, which plan it had, and which training run its models are of."""
    return tuple(Stamp(day=entry.recorded_at[:10], tip=_when(entry)) for entry in entries)


def measure_lines(stamps: Sequence[Stamp], curves: Sequence[Curve], label: str) -> Markup:
    """Draw a line for each of the first few curves over the last builds or benches, from zero."""
    first = max(0, len(stamps) - SHOWN)
    shown = stamps[first:]
    drawn = [each for each in curves[: len(LINE_STYLES)] if any(number >= first for number, _ in each.points)]
    top = max((value for each in drawn for number, value in each.points if number >= first), default=0.0)
    if not (top > 0 and math.isfinite(top)):
        return Markup("")
    canvas = Canvas(WIDTH, LOW_HEIGHT, label)
    scale = (LOW_HEIGHT - TOP - BOTTOM) / top
    unit = drawn[0].unit
    _axis(canvas, LOW_HEIGHT, [(value, quantity_text(value, unit)) for value in ticks(0, top, TICKS)], 0.0, scale)
    for style, curve in zip(LINE_STYLES, drawn, strict=False):
        points = [
            (_x(number - first, len(shown)), LOW_HEIGHT - BOTTOM - value * scale, number, value)
            for number, value in curve.points
            if number >= first
        ]
        for (x1, y1, *_), (x2, y2, *_) in pairwise(points):
            canvas.line(x1, y1, x2, y2, style)
        for x, y, number, value in points:
            tip = f"{stamps[number].tip}\n{curve.label}: {quantity_text(value, unit)}"
            canvas.dot(x, y, 3.2, style, tip=tip)
    _dates(canvas, shown, LOW_HEIGHT)
    return canvas.markup()


def _by_family(entry: BuildEntry) -> dict[str, int]:
    sizes = dict.fromkeys(FAMILIES, 0)
    for part in entry.components:
        sizes[family(part.component)] += max(0, part.size_bytes)
    return sizes


def _axis(canvas: Canvas, height: float, marks: Sequence[tuple[float, str]], low: float, scale: float) -> None:
    for value, text in marks:
        y = height - BOTTOM - (value - low) * scale
        canvas.line(LEFT, y, WIDTH - RIGHT, y, "grid")
        canvas.text(LEFT - 8, y + 4, text, "figure end")


def _dates(canvas: Canvas, shown: Sequence[Stamp], height: float) -> None:
    """Write the day below as many as there is room for."""
    every = max(1, math.ceil(DATE_WIDTH / _step(len(shown))))
    for number in range(0, len(shown), every):
        canvas.text(_x(number, len(shown)), height - 8, shown[number].day, "tick")


def _x(number: int, count: int) -> float:
    return LEFT + _step(count) * (number + 0.5)


def _step(count: int) -> float:
    return min(2 * WIDEST, (WIDTH - LEFT - RIGHT) / max(1, count))


def _when(entry: BuildEntry) -> str:
    run = f"\ntraining run {name_text(entry.training_run)}" if entry.training_run else ""
    return f"{entry.recorded_at[:16].replace('T', ' ')} plan {entry.plan_digest[:12]}{run}"
