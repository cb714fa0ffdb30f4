"""Bar charts: where the library's bytes are, and ours beside the baseline."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ortrim.core.measurements import Distribution, RunnerResult
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.report.content import components
from ortrim.report.figures import bytes_text, ms_text, share_text
from ortrim.report.machine import measures_memory, measures_time
from ortrim.report.names import name_text
from ortrim.report.svg import Canvas

FULL_WIDTH: Final = 1000
HALF_WIDTH: Final = 480
ROW: Final = 26
BAR: Final = 16
HEADING: Final = 24
GAP: Final = 8
LETTER: Final = 7.2
"""About the width of a letter of a label."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: a `group` heading is written wherever it changes; `low` and `high` draw a whisker."""

    group: str = ""
    label: str
    value: float
    text: str
    style: str
    low: float = math.nan
    high: float = math.nan


def total_chart(report: VerifyReport) -> Markup:
    """Draw the sizes of our library and of the baseline's: as a file, loaded, and compressed."""
    ours, baseline = report.size, report.baseline_size
    sizes = (
        ("file", ours.file_bytes, baseline.file_bytes),
        ("loaded sections", ours.loadable_bytes, baseline.loadable_bytes),
        ("compressed", ours.compressed_bytes, baseline.compressed_bytes),
    )
    bars = [bar for name, our, their in sizes for bar in _pair(name, our, their)]
    return bar_chart("size of our library beside the baseline's", bars, HALF_WIDTH)


def component_chart(report: VerifyReport) -> Markup:
    """Draw the bytes of each component of our library."""
    bars = [
        Bar(label=part.name, value=part.share, text=f"{part.size}, {part.share_text}", style="ours")
        for part in components(report)
    ]
    return bar_chart("size by component", bars, HALF_WIDTH)


def memory_chart(device: DeviceReport) -> Markup:
    """Draw the peak resident memory of each model, median and range over the rounds; nothing where it means nothing."""
    if not measures_memory(device):
        return Markup("")
    return _runs_chart(device, "peak resident memory", lambda run: run.peak_rss_bytes, bytes_text)


def load_chart(device: DeviceReport) -> Markup:
    """Draw the load time of each model, median and range over the rounds; nothing where time means nothing."""
    if not measures_time(device):
        return Markup("")
    return _runs_chart(device, "time to load a model", lambda run: run.load_ms, ms_text)


def bar_chart(label: str, bars: Sequence[Bar], width: float) -> Markup:
    """Draw horizontal bars on one scale from zero; a value that is not a number gets its text and no bar."""
    if not bars:
        return Markup("")
    groups = sum(bar.group != before for bar, before in zip(bars, ["", *(bar.group for bar in bars)], strict=False))
    canvas = Canvas(width, ROW * len(bars) + (HEADING + GAP) * groups + 4, label)
    left, right = min(124.0, 24 + LETTER * max(len(bar.label) for bar in bars)), width - 112.0
    largest = max((finite for bar in bars for finite in (bar.value, bar.high) if math.isfinite(finite)), default=0.0)
    scale = (right - left) / largest if largest > 0 else 0.0
    y, group = 2.0, ""
    for bar in bars:
        if bar.group != group:
            y += GAP if group else 0
            canvas.text(0, y + 17, bar.group, "strong", limit=60)
            y, group = y + HEADING, bar.group
        _draw_bar(canvas, bar, left, y, scale)
        y += ROW
    return canvas.markup()


def _draw_bar(canvas: Canvas, bar: Bar, left: float, y: float, scale: float) -> None:
    middle = y + ROW / 2
    canvas.text(0, middle + 4.5, bar.label, limit=16)
    if not math.isfinite(bar.value):
        canvas.text(left + 6, middle + 4.5, bar.text, "figure")
        return
    end = left + max(1.5, bar.value * scale)
    canvas.rectangle(left, middle - BAR / 2, end - left, BAR, bar.style, tip=f"{bar.label}: {bar.text}")
    if math.isfinite(bar.low) and math.isfinite(bar.high):
        canvas.line(left + bar.low * scale, middle, left + bar.high * scale, middle, "whisker")
        end = max(end, left + bar.high * scale)
    canvas.text(end + 6, middle + 4.5, bar.text, "figure")


def _pair(group: str, ours: float, baseline: float) -> tuple[Bar, ...]:
    """Make our bar and the baseline's; a baseline of nothing was not measured."""
    if not baseline > 0:
        return (Bar(group=group, label="ours", value=ours, text=bytes_text(ours), style="ours"),)
    text = f"{bytes_text(ours)}, {share_text(ours / baseline)}"
    return (
        Bar(group=group, label="ours", value=ours, text=text, style="ours"),
        Bar(group=group, label="baseline", value=baseline, text=bytes_text(baseline), style="baseline"),
    )


def _runs_chart(
    device: DeviceReport,
    label: str,
    measured: Callable[[RunnerResult], Distribution],
    text: Callable[[float], str],
) -> Markup:
    ordered = sorted(device.runs, key=lambda run: (run.model, run.library != "ours"))
    bars = [
        Bar(
            group=name_text(run.model),
            label=run.library,
            value=measured(run).p50,
            text=text(measured(run).p50),
            style=run.library,
            low=measured(run).minimum,
            high=measured(run).maximum,
        )
        for run in ordered
    ]
    return bar_chart(label, bars, HALF_WIDTH)
