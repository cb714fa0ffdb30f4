"""What is held against budgets: each quantity of our library, beside the baseline's where there is one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ortrim.core.measurements import Distribution, Unit
from ortrim.core.statistics import Interval, distribution, median_interval
from ortrim.verify.devices.base import CaseRun, RunnerOutput
from ortrim.verify.rounds import Rounds, missed_runs

PEAK: Final = "peak RSS"
LOAD: Final = "load"
P50: Final = "latency p50"
P99: Final = "latency p99"
MISSED: Final = "missed deadlines"

Reading = Callable[[RunnerOutput], float]


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
    """Return the time that creating the session took."""
    return _measured(LOAD, rounds, "ms", lambda output: output.load_ms)


def latencies(measure: str, rounds: Rounds, read: Callable[[Distribution], float]) -> list[Quantity]:
    """Return a figure of each case's inferences, one quantity for each case."""
    return _of_cases(measure, rounds, "ms", lambda case: read(distribution(case.inference_ms)))


def missed_deadlines(rounds: Rounds, deadline_ms: float) -> list[Quantity]:
    """Return how many runs of one process missed the deadline, one quantity for each case, without a ratio.

    The baseline's number tells a machine that stalls; a ratio of two numbers of which one is mostly 0 tells nothing.
    """
    missed = _of_cases(MISSED, rounds, "runs", lambda case: missed_runs(case, deadline_ms))
    return [replace(quantity, ratio=None) for quantity in missed]


def _of_cases(measure: str, rounds: Rounds, unit: Unit, read: Callable[[CaseRun], float]) -> list[Quantity]:
    def of_case(index: int) -> Reading:
        return lambda output: read(output.cases[index])

    measured = (_measured(measure, rounds, unit, of_case(index)) for index in range(len(rounds.cases)))
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
    )
