"""Holding measurements against budgets: which budget is about what."""

from dataclasses import dataclass, replace
from typing import Final

from ortrim.core.library_facts import LibrarySize
from ortrim.core.measurements import Comparison, Verdict
from ortrim.core.target_spec import Budgets
from ortrim.verify.comparisons import lines_of
from ortrim.verify.quantities import P50, P99, latencies, load_time, missed_deadlines, peak_memory, size_of
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

    Memory is exact. Times vary: a miss by no more than the run's own spread (half the width of the interval that holds
    the true median) is inconclusive, a larger one a failure. Latency and deadlines are judged for the case that stands
    worst. A deadline is missed when in most rounds some run takes longer; whether that is so in enough rounds to be
    sure, the interval says too. Without a deadline there is no line for it. What is meaningless on the device is not
    judged, and its line says why; so does a ratio without a baseline.
    """
    return tuple(line for rounds in measured for line in _lines(budgets, rounds, meaningless))


def _lines(budgets: Budgets, rounds: Rounds, meaningless: Meaningless) -> list[Comparison]:
    memory = lines_of([peak_memory(rounds)], budgets.peak_rss_bytes, budgets.peak_rss_ratio)
    times = [
        *lines_of([load_time(rounds)], budgets.load_ms, budgets.load_ratio),
        *lines_of(latencies(P50, rounds, lambda spread: spread.p50), budgets.p50_ms, budgets.p50_ratio),
        *lines_of(latencies(P99, rounds, lambda spread: spread.p99), budgets.p99_ms, None),
        *_missed(budgets.deadline_ms, rounds),
    ]
    return [*_unless(meaningless.memory, memory), *_unless(meaningless.time, times)]


def _missed(deadline_ms: float | None, rounds: Rounds) -> list[Comparison]:
    return [] if deadline_ms is None else lines_of(missed_deadlines(rounds, deadline_ms), MAY_MISS, None)


def _unless(reason: str, lines: list[Comparison]) -> list[Comparison]:
    """Return the lines, not judged when there is a reason against it."""
    return [replace(line, verdict=Verdict.NOT_JUDGED, reason=reason) for line in lines] if reason else lines
