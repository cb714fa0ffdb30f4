"""One quantity against its budgets: the lines of the report's table."""

from collections.abc import Sequence
from typing import Final

from ortrim.core.measurements import Comparison, Unit, Verdict
from ortrim.core.statistics import Interval
from ortrim.verify.quantities import Quantity

SEVERITY: Final = (Verdict.NOT_JUDGED, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)
RESOLUTION: Final = 0.002
"""By how much two copies of one library may differ for good, since the page cache holds them otherwise."""
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


def in_doubt(quantities: Sequence[Quantity], absolute: float | None, ratio: float | None) -> list[Quantity]:
    """Return those whose verdict further rounds may settle, unless another one's has failed the line already."""
    found: list[Quantity] = []
    for budget, is_ratio in ((ratio, True), (absolute, False)):
        lines = [_comparison(quantity, budget, is_ratio=is_ratio) for quantity in quantities]
        if all(line.verdict is not Verdict.FAIL for line in lines):
            judged = zip(quantities, lines, strict=True)
            open_ones = (quantity for quantity, line in judged if line.verdict is Verdict.INCONCLUSIVE)
            found += [quantity for quantity in open_ones if quantity.ratio or not is_ratio]
    return found


def _worst(lines: list[Comparison]) -> Comparison:
    def standing(line: Comparison) -> tuple[int, float]:
        absolute = line.budget is not None and not line.budget_is_ratio
        return SEVERITY.index(line.verdict), line.ours if absolute else line.ratio or 0.0

    return max(lines, key=standing)


def _comparison(quantity: Quantity, budget: float | None, *, is_ratio: bool) -> Comparison:
    incomparable = is_ratio and quantity.baseline is None
    judged = None if incomparable else budget
    interval = quantity.ratio if is_ratio else quantity.ours
    return Comparison(
        measure=quantity.measure,
        model=quantity.model,
        case=quantity.case,
        unit=quantity.unit,
        ours=quantity.ours.median,
        baseline=quantity.baseline,
        ratio=quantity.ratio.median if quantity.ratio else None,
        spread=_spread(quantity.ratio, judged if is_ratio else None) if quantity.ratio and quantity.model else None,
        budget=budget,
        budget_is_ratio=is_ratio,
        verdict=_verdict(interval, quantity.unit, judged, RESOLUTION if quantity.model else 0.0),
        reason=NO_BASELINE if incomparable else "",
    )


def _spread(interval: Interval, budget: float | None) -> float:
    """Return how far the interval reaches towards the budget, so that the verdict can be followed: 107 % ± 3."""
    if budget is None or interval.median <= 0:
        return interval.spread
    return abs((interval.low if interval.median > budget else interval.high) / interval.median - 1)


def _verdict(interval: Interval | None, unit: Unit, budget: float | None, resolution: float) -> Verdict:
    """Judge one value; a ratio without a baseline cannot be judged, which must not pass for a pass.

    What is measured fails when it is over the budget by more than `resolution`, a share of it.
    """
    if budget is None:
        return Verdict.NOT_JUDGED
    if interval is None:
        return Verdict.INCONCLUSIVE
    most = interval.median if unit == "runs" else interval.high  # a stall of the machine is no missed deadline
    if most <= budget:
        return Verdict.PASS
    return Verdict.INCONCLUSIVE if interval.low <= budget * (1 + resolution) else Verdict.FAIL
