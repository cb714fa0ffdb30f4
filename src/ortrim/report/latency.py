"""Pictures of how latency is spread: ours above the axis, the baseline's below."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ortrim.console import counted
from ortrim.core.measurements import RunnerResult
from ortrim.core.reports import DeviceReport
from ortrim.report.charts import HALF_WIDTH
from ortrim.report.figures import ms_text
from ortrim.report.machine import measures_time
from ortrim.report.names import name_text
from ortrim.report.svg import Canvas, ticks

BINS: Final = 60
DRAWN: Final = 0.95
"""The share of the runs that a picture makes room for; slower ones may fall outside."""
HALF: Final = 62
"""Height of the tallest bar on either side of the axis."""


@dataclass(frozen=True, kw_only=True)
class LatencyPicture:
    """One case's distribution of latency, ours above the axis and the baseline's below."""

    model: str
    case: str
    picture: Markup


def latency_pictures(device: DeviceReport) -> tuple[LatencyPicture, ...]:
    """Draw the latency of each case of each model; nothing where time means nothing."""
    if not measures_time(device):
        return ()
    cases = dict.fromkeys((run.model, case.case) for run in device.runs for case in run.cases)
    return tuple(
        LatencyPicture(
            model=name_text(model),
            case=name_text(case),
            picture=_latency(
                _samples(device.runs, "ours", model, case), _samples(device.runs, "baseline", model, case)
            ),
        )
        for model, case in cases
    )


def _samples(runs: Iterable[RunnerResult], library: str, model: str, case: str) -> list[float]:
    found = (each for run in runs if (run.library, run.model) == (library, model) for each in run.cases)
    return sorted(value for each in found if each.case == case for value in each.samples_ms if math.isfinite(value))


def _latency(ours: Sequence[float], baseline: Sequence[float]) -> Markup:
    """Draw two histograms back to back; what lies far out on the right is counted instead of drawn."""
    if not ours and not baseline:
        return Markup("")
    low = min(*ours[:1], *baseline[:1], math.inf)
    high = max(_quantile(values, DRAWN) for values in (ours, baseline) if values)
    margin = 0.1 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = max(0.0, low - margin), high + margin
    canvas = Canvas(HALF_WIDTH, 2 * HALF + 58, "distribution of latency")
    middle = HALF + 18.0
    tallest = max(max(_counts(values, low, high)) / len(values) for values in (ours, baseline) if values)
    for values, style, direction in ((ours, "ours", -1), (baseline, "baseline", 1)):
        if values:
            _histogram(canvas, values, (low, high), (middle, direction * HALF / (tallest or 1.0)), style)
    _time_axis(canvas, low, high, middle)
    return canvas.markup()


def _histogram(
    canvas: Canvas, values: Sequence[float], span: tuple[float, float], vertical: tuple[float, float], style: str
) -> None:
    """Draw one histogram from the axis at `vertical[0]`; `vertical[1]` units of height stand for all values."""
    (low, high), (axis, scale) = span, vertical
    width = HALF_WIDTH / BINS
    for number, count in enumerate(_counts(values, low, high)):
        height = scale * count / len(values)
        if count:
            canvas.rectangle(number * width + 0.5, min(axis, axis + height), width - 1, abs(height), style)
    median = _quantile(values, 0.5)
    x = HALF_WIDTH * (median - low) / (high - low)
    end = axis + math.copysign(HALF + 4, scale)
    canvas.line(x, axis, x, end, f"median {style}-line", tip=f"median of {style}: {ms_text(median)}")
    label_y = 11 if scale < 0 else 2 * HALF + 36
    beyond = sum(value > high for value in values)
    more = f", {beyond} of {counted(len(values), 'run')} slower than shown" if beyond else ""
    canvas.text(0, label_y, f"{style}: median {ms_text(median)}{more}", f"{style}-text")


def _time_axis(canvas: Canvas, low: float, high: float, middle: float) -> None:
    canvas.line(0, middle, HALF_WIDTH, middle, "axis")
    for tick in ticks(low, high, 5):
        x = HALF_WIDTH * (tick - low) / (high - low)
        canvas.line(x, middle - 3, x, middle + 3, "axis")
        if 28 < x < HALF_WIDTH - 28:
            canvas.text(x, 2 * HALF + 54, f"{tick:.4g} ms", "tick")


def _counts(values: Sequence[float], low: float, high: float) -> list[int]:
    counts = [0] * BINS
    for value in values:
        if low <= value <= high:
            counts[min(BINS - 1, int(BINS * (value - low) / (high - low)))] += 1
    return counts


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
