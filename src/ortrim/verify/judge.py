"""Holding measurements against budgets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ortrim.core.buildspec import Budgets
from ortrim.core.measurements import Comparison, Distribution, LibrarySize, Verdict
from ortrim.verify.devices.base import RunnerOutput
from ortrim.verify.rounds import Rounds
from ortrim.verify.statistics import Interval, distribution, median_interval

Unit = Literal["bytes", "ms"]
Reading = Callable[[RunnerOutput], float]

SEVERITY: Final = (Verdict.NOT_JUDGED, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One quantity of one library against the baseline's: the values, their ratio, and how sure both are."""

    measure: str
    model: str
    case: str = ""
    unit: Unit
    ours: Interval
    baseline: float | None
    ratio: Interval | None
    exact: bool
    """Whether a miss is a miss however the rounds spread: true of bytes, not of times."""


@dataclass(frozen=True, kw_only=True)
class Meaningless:
    """Why memory, or time, of the device says nothing of a real machine; empty when it does."""

    memory: str = ""
    time: str = ""


ALL_MEANINGFUL: Final = Meaningless()
NO_BASELINE: Final = "there is no baseline to be compared with"


def compare_budgets(
    budgets: Budgets,
    size: LibrarySize,
    baseline_size: LibrarySize,
    package_bytes: int,
    models: Sequence[Rounds],
    *,
    meaningless: Meaningless = ALL_MEANINGFUL,
) -> tuple[Comparison, ...]:
    """Return a line for each budget that is given, and one not judged for each measure without any.

    Sizes and memory are exact. Times vary: a miss by no more than the run's own spread (half the width of the
    interval that holds the true median) is inconclusive, a larger one a failure. Latency is judged for the case
    that stands worst. Budgets of models hold for each model. What is meaningless on the device is not judged, and
    its line says why; so does a ratio without a baseline. A baseline of 0 bytes is none.
    """
    lines = [*_library_lines(budgets, size, baseline_size, package_bytes)]
    for rounds in models:
        memory, *times = _model_quantities(budgets, rounds)
        lines += _judged(memory, meaningless.memory)
        lines += [line for quantities in times for line in _judged(quantities, meaningless.time)]
    return tuple(lines)


def _library_lines(
    budgets: Budgets, size: LibrarySize, baseline_size: LibrarySize, package_bytes: int
) -> list[Comparison]:
    library = _sizes("library", size.file_bytes, baseline_size.file_bytes)
    compressed = _sizes("library compressed", size.compressed_bytes, baseline_size.compressed_bytes)
    return [
        *_lines([library], budgets.library_bytes, budgets.library_ratio),
        *_lines([compressed], None, None),
        *_lines([_sizes("package", package_bytes, None)], None, None),
    ]


@dataclass(frozen=True, kw_only=True)
class _Budgeted:
    """Quantities of which the worst is judged, and the budgets that hold for them."""

    quantities: list[Quantity]
    absolute: float | None
    ratio: float | None


def _model_quantities(budgets: Budgets, rounds: Rounds) -> tuple[_Budgeted, ...]:
    """Return memory first, then the times."""
    memory = _measured("peak RSS", rounds, "bytes", lambda output: output.memory.peak_rss_bytes)
    load = _measured("load", rounds, "ms", lambda output: output.load_ms)
    p50 = _latencies("latency p50", rounds, lambda samples: samples.p50)
    p99 = _latencies("latency p99", rounds, lambda samples: samples.p99)
    return (
        _Budgeted(quantities=[memory], absolute=budgets.peak_rss_bytes, ratio=budgets.peak_rss_ratio),
        _Budgeted(quantities=[load], absolute=budgets.load_ms, ratio=budgets.load_ratio),
        _Budgeted(quantities=p50, absolute=budgets.p50_ms, ratio=budgets.p50_ratio),
        _Budgeted(quantities=p99, absolute=budgets.p99_ms, ratio=None),
    )


def _judged(budgeted: _Budgeted, reason: str) -> list[Comparison]:
    lines = _lines(budgeted.quantities, budgeted.absolute, budgeted.ratio)
    return [replace(line, verdict=Verdict.NOT_JUDGED, reason=reason) for line in lines] if reason else lines


def _latencies(measure: str, rounds: Rounds, read: Callable[[Distribution], float]) -> list[Quantity]:
    """Return one quantity for each case."""

    def of_case(index: int) -> Reading:
        return lambda output: read(distribution(output.cases[index].inference_ms))

    measured = (_measured(measure, rounds, "ms", of_case(index)) for index in range(len(rounds.cases)))
    return [replace(quantity, case=case) for quantity, case in zip(measured, rounds.cases, strict=True)]


def _measured(measure: str, rounds: Rounds, unit: Unit, read: Reading) -> Quantity:
    """Return a quantity read from each round; the ratio is taken round by round, since a round's noise is shared."""
    ours = [read(turn.ours) for turn in rounds.rounds]
    pairs = [(read(turn.ours), read(turn.baseline)) for turn in rounds.rounds if turn.baseline is not None]
    ratios = [one / other for one, other in pairs if other > 0]
    return Quantity(
        measure=measure,
        model=rounds.model,
        unit=unit,
        ours=median_interval(ours),
        baseline=median_interval([other for _, other in pairs]).median if pairs else None,
        ratio=median_interval(ratios) if ratios else None,
        exact=unit == "bytes",
    )


def _sizes(measure: str, ours: int, baseline: int | None) -> Quantity:
    return Quantity(
        measure=measure,
        model="",
        unit="bytes",
        ours=median_interval([ours]),
        baseline=baseline or None,
        ratio=median_interval([ours / baseline]) if baseline else None,
        exact=True,
    )


def _lines(quantities: list[Quantity], absolute: float | None, ratio: float | None) -> list[Comparison]:
    """Return one line for each budget; of several cases, the one that stands worst."""
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
        verdict=_verdict(quantity.ratio if is_ratio else quantity.ours, judged, exact=quantity.exact),
        reason=NO_BASELINE if incomparable else "",
    )


def _verdict(interval: Interval | None, budget: float | None, *, exact: bool) -> Verdict:
    """Judge one value; a ratio without a baseline cannot be judged, which must not pass for a pass."""
    if budget is None:
        return Verdict.NOT_JUDGED
    if interval is None:
        return Verdict.INCONCLUSIVE
    if interval.median <= budget:
        return Verdict.PASS
    # The spread as the report shows it, so that the verdict can be followed: 107 % ± 14 is not surely above 105 %.
    within_spread = interval.median * (1 - interval.spread) <= budget
    return Verdict.INCONCLUSIVE if within_spread and not exact else Verdict.FAIL
