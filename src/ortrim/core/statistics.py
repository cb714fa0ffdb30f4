"""The few statistics that measurements need. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.core.measurements import Distribution

ERROR: Final = 0.05
"""How likely the true median may lie below an interval, and how likely above it."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted samples, interpolated linearly between the two nearest."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(samples: Iterable[float]) -> float:
    """Return the median of at least one sample."""
    return quantile(sorted(samples), 0.5)


def distribution(samples: Iterable[float]) -> Distribution:
    """Sum up at least one sample."""
    ordered = sorted(samples)
    return Distribution(
        count=len(ordered),
        minimum=ordered[0],
        p50=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        p99=quantile(ordered, 0.99),
        maximum=ordered[-1],
    )


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median and the interval that holds the true one, as sure as `median_interval` was asked to be."""

    low: float
    median: float
    high: float

    @property
    def spread(self) -> float:
        """Relative half-width."""
        return (self.high - self.low) / 2 / self.median if self.median > 0 else 0.0


def median_interval(samples: Iterable[float], *, below: float = ERROR, above: float = ERROR) -> Interval:
    """Return the order-statistic interval of the median, which assumes nothing about how samples are distributed.

    The true median lies under it with a chance of at most `below`, and over it with one of at most `above`. Samples too
    few to be that sure give all of them as the interval: below five, with the default.
    """
    ordered = sorted(samples)
    low, high = (_left_out(len(ordered), error) for error in (below, above))
    return Interval(low=ordered[low], median=quantile(ordered, 0.5), high=ordered[-1 - high])


def _left_out(count: int, error: float) -> int:
    """Return how many samples at an end the interval can leave out (binomial with one half, one tail)."""
    tail, left_out = 0, 0
    for number in range(count // 2):
        tail += math.comb(count, number)
        if tail / 2**count > error:
            break
        left_out = number
    return left_out
