"""One quantity against its budgets: the lines of the report's table."""

from collections.abc import Sequence
from typing import Final

from ortrim.core.measurements import Comparison, Unit, Verdict
from ortrim.core.statistics import Interval
from ortrim.verify.quantities import Quantity

SEVERITY: Final = (Verdict.NOT_JUDGED, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)
NO_BASELINE: Final = "there is no baseline to be compared with"


def lines_of(quantities: Sequence[Quantity], absolute: float | None, ratio: float | None) -> list[Comparison]:
    """Return one line for each budget, one not judged without any; of several cases, the one that stands worst."""
    if not quantities:
        return []
    judged: list[Comparison] = []
    if ratio is not None:
        judged.append(_worst([_comparison(quantity, ratio, is_ratio=True) for quantity in quantities]))
    if absolute is not None:
        judged.append(_worst([_comparison(quantity, absolute, is_ratio=False) for quantity in quantities]))
    return judged or [_worst([_comparison(quantity, None, is_ratio=False) for quantity in quantities])]


def _worst(lines: list[Comparison]) -> Comparison:
    def standing(line: Comparison) -> tuple[int, float]:
        absolute = line.budget is not None and not line.budget_is_ratio
        return SEVERITY.index(line.verdict), line.ours if absolute else line.ratio or 0.0

    return max(lines, key=standing)


def _comparison(quantity: Quantity, budget: float | None, *, is_ratio: bool) -> Comparison:
    incomparable = is_ratio and quantity.baseline is None
    judged = None if incomparable else budget
    return Comparison(
        measure=quantity.measure,
        model=quantity.model,
        case=quantity.case,
        unit=quantity.unit,
        ours=quantity.ours.median,
        baseline=quantity.baseline,
        ratio=quantity.ratio.median if quantity.ratio else None,
        spread=quantity.ratio.spread if quantity.ratio and quantity.model else None,
        budget=budget,
        budget_is_ratio=is_ratio,
        verdict=_verdict(quantity.ratio if is_ratio else quantity.ours, quantity.unit, judged),
        reason=NO_BASELINE if incomparable else "",
    )


def _verdict(interval: Interval | None, unit: Unit, budget: float | None) -> Verdict:
    """Judge one value; a ratio without a baseline cannot be judged, which must not pass for a pass."""
    if budget is None:
        return Verdict.NOT_JUDGED
    if interval is None:
        return Verdict.INCONCLUSIVE
    if interval.median <= budget:
        return Verdict.PASS
    return Verdict.INCONCLUSIVE if _least(interval, unit) <= budget else Verdict.FAIL


def _least(interval: Interval, unit: Unit) -> float:
    """Return the least that the true value may be taken for, given how the rounds spread."""
    match unit:
        case "bytes":  # exact, however the rounds spread
            return interval.median
        case "ms":  # by the spread as the report shows it, so that the verdict can be followed: 107 % ± 14
            return interval.median * (1 - interval.spread)
        case "runs":  # a count is whole: between 0 and 1 there is no half width
            return interval.low
