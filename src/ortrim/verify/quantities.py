"""What is held against budgets: each quantity of our library, beside the baseline's where there is one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ortrim.core.measurements import Distribution, Unit
from ortrim.core.statistics import ERROR, Interval, distribution, median, median_interval
from ortrim.verify.devices.base import CaseRun, RunnerOutput
from ortrim.verify.rounds import Rounds, missed_runs

PEAK: Final = "peak RSS"
LOAD: Final = "load"
P50: Final = "latency p50"
P99: Final = "latency p99"
MISSED: Final = "missed deadlines"
LOOKS: Final = (9, 18, 36, 72, 144, 288, 576)
"""After how many rounds a verdict may be given; each look is another chance to err."""
PASS_ERRORS: Final = (0.0196, 0.005)
FAIL_ERRORS: Final = (0.002, 0.005)
"""How likely the true median is over an interval, or under it, at the first look and at each later one but the last.

The last look, which comes when time is over, has what is left of `ERROR`. Few rounds that are alike are often so for
another reason: only all of the first nine fail a budget.
"""

Reading = Callable[[RunnerOutput], float | None]
MakeInterval = Callable[[Sequence[float]], Interval]


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


def size_of(measure: str, ours: int, baseline: int | None) -> Quantity:
    """Return a size in bytes, of no model. A baseline of 0 bytes is none."""
    return Quantity(
        measure=measure,
        model="",
        unit="bytes",
        ours=median_interval([ours]),
        baseline=baseline or None,
        ratio=median_interval([ours / baseline]) if baseline else None,
    )


def peak_memory(rounds: Rounds) -> Quantity:
    """Return the most memory that the process ever had resident."""
    return _measured(PEAK, rounds, "bytes", lambda output: output.memory.peak_rss_bytes)


def load_time(rounds: Rounds) -> Quantity:
    """Return the time that creating the session took, without what others on the machine took of it."""
    return _measured(LOAD, rounds, "ms", lambda output: output.own_load_ms)


def latencies(measure: str, rounds: Rounds, read: Callable[[Distribution], float]) -> list[Quantity]:
    """Return a figure of each case's inferences, one quantity for each case."""
    return _of_cases(measure, rounds, "ms", lambda case: read(distribution(case.inference_ms)))


def missed_deadlines(rounds: Rounds, deadline_ms: float) -> list[Quantity]:
    """Return how many runs of one process missed the deadline, one quantity for each case, without a ratio.

    The baseline's number tells a machine that stalls; a ratio of two numbers of which one is mostly 0 tells nothing.
    """
    missed = _of_cases(MISSED, rounds, "runs", lambda case: missed_runs(case, deadline_ms), median_interval)
    return [replace(quantity, ratio=None) for quantity in missed]


def _of_cases(
    measure: str, rounds: Rounds, unit: Unit, read: Callable[[CaseRun], float], interval: MakeInterval | None = None
) -> list[Quantity]:
    def of_case(name: str) -> Reading:
        return lambda output: next((read(case) for case in output.cases if case.name == name), None)

    interval = interval or _interval_of(len(rounds.cases))
    return [replace(_measured(measure, rounds, unit, of_case(case), interval), case=case) for case in rounds.cases]


def _measured(
    measure: str, rounds: Rounds, unit: Unit, read: Reading, interval: MakeInterval | None = None
) -> Quantity:
    """Return a quantity read from each round; the ratio is taken round by round, since a round's noise is shared."""
    interval = interval or _interval_of(1)
    turns = [(read(turn.ours), read(turn.baseline) if turn.baseline else None) for turn in rounds.of(measure)]
    pairs = [(one, other) for one, other in turns if one is not None and other is not None]
    ratios = [one / other for one, other in pairs if other > 0]
    return Quantity(
        measure=measure,
        model=rounds.model,
        unit=unit,
        ours=interval([one for one, _ in turns if one is not None]),
        baseline=median(other for _, other in pairs) if pairs else None,
        ratio=interval(ratios) if ratios else None,
    )


def _interval_of(chances: int) -> MakeInterval:
    """Return how to judge one of so many quantities of which one alone fails a budget: each as often less by chance."""

    def interval(samples: Sequence[float]) -> Interval:
        below, above = (_error(len(samples), errors) for errors in (FAIL_ERRORS, PASS_ERRORS))
        return median_interval(samples, below=below / chances, above=above)

    return interval


def _error(count: int, errors: tuple[float, float]) -> float:
    """Return how likely an interval of so many rounds may be wrong, given what earlier looks have left of `ERROR`."""
    first, later = errors
    earlier = [first, *(later,) * len(LOOKS)][: sum(look < count for look in LOOKS)]
    if count in LOOKS[:-1]:
        return later if earlier else first
    return ERROR - sum(earlier)
