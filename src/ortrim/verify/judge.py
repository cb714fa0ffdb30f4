"""Holding measurements against budgets: which budget is about what."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ortrim.core.library_facts import LibrarySize
from ortrim.core.measurements import Comparison, Verdict
from ortrim.core.target_spec import Budgets
from ortrim.verify.comparisons import in_doubt, lines_of
from ortrim.verify.quantities import (
    LOAD,
    P50,
    P99,
    PEAK,
    Quantity,
    latencies,
    load_time,
    missed_deadlines,
    peak_memory,
    size_of,
)
from ortrim.verify.rounds import Rounds

MAY_MISS: Final = 0.0


@dataclass(frozen=True, kw_only=True)
class Meaningless:
    """Why memory, or time, of the device says nothing of a real machine; empty when it does."""

    memory: str = ""
    time: str = ""


ALL_MEANINGFUL: Final = Meaningless()


def library_comparisons(
    budgets: Budgets, size: LibrarySize, baseline_size: LibrarySize, package_bytes: int
) -> tuple[Comparison, ...]:
    """Return the lines of the library and the package: sizes, which are exact. A baseline of 0 bytes is none."""
    library = size_of("library", size.file_bytes, baseline_size.file_bytes)
    compressed = size_of("library compressed", size.compressed_bytes, baseline_size.compressed_bytes)
    return (
        *lines_of([library], budgets.library_bytes, budgets.library_ratio),
        *lines_of([compressed], None, None),
        *lines_of([size_of("package", package_bytes, None)], None, None),
    )


def model_comparisons(
    budgets: Budgets, measured: tuple[Rounds, ...], meaningless: Meaningless = ALL_MEANINGFUL
) -> tuple[Comparison, ...]:
    """Return a line for each budget that is given, and one not judged for each measure without any, for each model.

    What is measured varies from round to round: it passes when the whole interval that holds the true median is within
    the budget, fails when all of it is beyond, and is inconclusive otherwise. Either is wrong in at most 5 % of the
    runs in which the truth is just on the other side. Latency and deadlines are judged for the case that stands worst.
    A deadline is missed when in most rounds some run takes longer; whether that is so in enough rounds to be sure, the
    interval says too. Without a deadline there is no line for it. What is meaningless on the device is not judged, and
    its line says why; so does a ratio without a baseline.
    """
    return tuple(line for rounds in measured for line in _lines(budgets, rounds, meaningless))


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What further rounds may settle: measures, and the cases whose latency is among them."""

    measures: frozenset[str]
    cases: tuple[str, ...]


def doubt_of(budgets: Budgets, rounds: Rounds, meaningless: Meaningless = ALL_MEANINGFUL) -> Doubt:
    """Return what is inconclusive of one model and need not stay so: not what only long runs tell, as deadlines."""
    asked: tuple[tuple[str, Callable[[], list[Quantity]], float | None, float | None, str], ...] = (
        (PEAK, lambda: [peak_memory(rounds)], budgets.peak_rss_bytes, budgets.peak_rss_ratio, meaningless.memory),
        (LOAD, lambda: [load_time(rounds)], budgets.load_ms, budgets.load_ratio, meaningless.time),
        (P50, lambda: _medians(rounds), budgets.p50_ms, budgets.p50_ratio, meaningless.time),
    )
    found = {
        measure: in_doubt(quantities(), absolute, ratio)
        for measure, quantities, absolute, ratio, reason in asked
        if not reason and (absolute is not None or ratio is not None)
    }
    return Doubt(
        measures=frozenset(measure for measure, quantities in found.items() if quantities),
        cases=tuple(dict.fromkeys(quantity.case for quantity in found.get(P50, ()))),
    )


def _medians(rounds: Rounds) -> list[Quantity]:
    return latencies(P50, rounds, lambda spread: spread.p50)


def _lines(budgets: Budgets, rounds: Rounds, meaningless: Meaningless) -> list[Comparison]:
    memory = lines_of([peak_memory(rounds)], budgets.peak_rss_bytes, budgets.peak_rss_ratio)
    times = [
        *lines_of([load_time(rounds)], budgets.load_ms, budgets.load_ratio),
        *lines_of(_medians(rounds), budgets.p50_ms, budgets.p50_ratio),
        *lines_of(latencies(P99, rounds, lambda spread: spread.p99), budgets.p99_ms, None),
        *_missed(budgets.deadline_ms, rounds),
    ]
    return [*_unless(meaningless.memory, memory), *_unless(meaningless.time, times)]


def _missed(deadline_ms: float | None, rounds: Rounds) -> list[Comparison]:
    return [] if deadline_ms is None else lines_of(missed_deadlines(rounds, deadline_ms), MAY_MISS, None)


def _unless(reason: str, lines: list[Comparison]) -> list[Comparison]:
    """Return the lines, not judged when there is a reason against it."""
    return [replace(line, verdict=Verdict.NOT_JUDGED, reason=reason) for line in lines] if reason else lines
