"""The few statistics that measurements need. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.core.measurements import Distribution

CONFIDENCE: Final = 0.9


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
    """A median and the interval that holds the true one with at least 90 % confidence (all samples below five)."""

    low: float
    median: float
    high: float

    @property
    def spread(self) -> float:
        """Relative half-width."""
        return (self.high - self.low) / 2 / self.median if self.median > 0 else 0.0


def median_interval(samples: Iterable[float]) -> Interval:
    """Return the order-statistic interval of the median, which assumes nothing about how samples are distributed."""
    ordered = sorted(samples)
    left_out = _left_out(len(ordered))
    return Interval(low=ordered[left_out], median=quantile(ordered, 0.5), high=ordered[-1 - left_out])


def _left_out(count: int) -> int:
    """Return how many samples at either end the interval can leave out (binomial with one half, both tails)."""
    below, left_out = 0.0, 0
    for number in range(count // 2):
        below += math.comb(count, number) / 2**count
        if 2 * below > 1 - CONFIDENCE:
            break
        left_out = number
    return left_out
