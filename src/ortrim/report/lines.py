"""The lines of the report's tables of measures, ready to be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.console import printable
from ortrim.core.measurements import Comparison, Verdict
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.report.figures import NONE, budget_text, quantity_text, share_text, shortened
from ortrim.report.machine import measures_memory, measures_time
from ortrim.report.names import name_text

CASE_LETTERS: Final = 18
SYMBOLS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.INCONCLUSIVE: "≈", Verdict.NOT_JUDGED: "·"}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One comparison, ready to be read; `device` is empty for what is the library's own."""

    device: str
    measure: str
    model: str
    ours: str
    baseline: str
    ratio: str
    ratio_value: float | None
    budget: str
    verdict: Verdict


def all_lines(report: VerifyReport) -> tuple[Line, ...]:
    """Return the library's lines, then each device's."""
    return (*library_lines(report), *(line for device in report.devices for line in device_lines(device)))


def library_lines(report: VerifyReport) -> tuple[Line, ...]:
    """Return the lines of the library and the package."""
    return tuple(_line(comparison) for comparison in report.comparisons)


def device_lines(device: DeviceReport) -> tuple[Line, ...]:
    """Return a device's lines, model by model in the order of the report."""
    models = dict.fromkeys(comparison.model for comparison in device.comparisons)
    ordered = [comparison for model in models for comparison in device.comparisons if comparison.model == model]
    return tuple(_line(comparison, device) for comparison in ordered)


def several_models(lines: Sequence[Line]) -> bool:
    """Whether lines need to say which model they are about."""
    return len({line.model for line in lines if line.model}) > 1


def _line(comparison: Comparison, device: DeviceReport | None = None) -> Line:
    hidden = device is not None and _means_nothing(comparison, device)
    return Line(
        device=name_text(device.device) if device else "",
        measure=_measure_text(comparison),
        model=name_text(comparison.model),
        ours=NONE if hidden else quantity_text(comparison.ours, comparison.unit),
        baseline=NONE if hidden else quantity_text(comparison.baseline, comparison.unit),
        ratio=NONE if hidden else share_text(comparison.ratio, comparison.spread),
        ratio_value=None if hidden else comparison.ratio,
        budget=_budget_text(comparison, device),
        verdict=comparison.verdict,
    )


def _means_nothing(comparison: Comparison, device: DeviceReport) -> bool:
    """Whether a line's figures say nothing of a real device."""
    return not (measures_memory(device) if comparison.unit == "bytes" else measures_time(device))


def _measure_text(comparison: Comparison) -> str:
    case = f", {shortened(printable(comparison.case), CASE_LETTERS)}" if comparison.case else ""
    return name_text(comparison.measure) + case


def _budget_text(comparison: Comparison, device: DeviceReport | None) -> str:
    """Write the budget; the one for runs that miss their deadline is the deadline, since none may."""
    deadline = _deadline(device) if device and comparison.unit == "runs" else None
    if deadline is not None:
        return budget_text(deadline, "ms", is_ratio=False)
    return budget_text(comparison.budget, comparison.unit, is_ratio=comparison.budget_is_ratio)


def _deadline(device: DeviceReport) -> float | None:
    deadlines = (case.deadline_ms for run in device.runs for case in run.cases)
    return next((deadline for deadline in deadlines if deadline is not None), None)
