"""Which points are worth having: what they cost beside the default, the Pareto set, and the one to take."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ortrim.core.bench import BenchRow, Goal, Score

FEWEST_ROUNDS: Final = 3
"""From fewer, nothing is recommended: what else the machine does would decide."""
LEAST_RESOLUTION: Final = 0.02
"""Two figures nearer than this to one another are the same, however quiet the machine is."""
ORDERS: Final[Mapping[Goal, tuple[str, ...]]] = {
    "latency": ("latency", "cpu", "memory"),
    "cpu": ("cpu", "latency", "memory"),
    "memory": ("memory", "latency", "cpu"),
}


def scores_of(rows: Sequence[BenchRow], default: str) -> tuple[Score, ...]:
    """Hold every point that has all the cases of the default against it, and mark the Pareto set.

    Empty when the default was not measured.
    """
    by_point: dict[str, dict[str, BenchRow]] = {}
    for row in rows:
        by_point.setdefault(row.point, {})[row.case] = row
    base = by_point.get(default, {})
    scores = [_score(point, own, base) for point, own in by_point.items() if base and own.keys() == base.keys()]
    return _marked(scores, resolution(rows))


def resolution(rows: Iterable[BenchRow]) -> float:
    """Return the relative difference below which two times are the same: what the machine's own noise comes to."""
    spreads = sorted(row.spread for row in rows)
    return max(LEAST_RESOLUTION, spreads[len(spreads) // 2] if spreads else 0.0)


def recommended(scores: Sequence[Score], goal: Goal, default: str, noise: float) -> str:
    """Return the point to take: the best by the goal; of those as good, the best by what comes next, then the default.

    Empty with less than two points to choose from.
    """
    if len(scores) < 2:
        return ""
    left = list(scores)
    for objective in ORDERS[goal]:
        best = min(getattr(each, objective) for each in left)
        left = [each for each in left if getattr(each, objective) <= best * (1 + noise)]
    names = [each.point for each in left]
    return default if default in names else names[0]


def _score(point: str, own: Mapping[str, BenchRow], base: Mapping[str, BenchRow]) -> Score:
    pairs = [(own[case], base[case]) for case in base]
    return Score(
        point=point,
        latency=_mean(ours.total_ms.p50 / theirs.total_ms.p50 for ours, theirs in pairs),
        cpu=_mean(_ratio(ours.cpu_ms, theirs.cpu_ms) for ours, theirs in pairs),
        memory=_mean(_ratio(ours.peak_rss_bytes, theirs.peak_rss_bytes) for ours, theirs in pairs),
    )


def _ratio(ours: float | None, theirs: float | None) -> float:
    """Return a ratio, 1 where either side is not known."""
    return ours / theirs if ours and theirs else 1.0


def _mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def _marked(scores: Sequence[Score], noise: float) -> tuple[Score, ...]:
    steps = [_steps(score, noise) for score in scores]
    return tuple(
        replace(score, in_front=not any(_beats(other, own) for other in steps))
        for score, own in zip(scores, steps, strict=True)
    )


def _steps(score: Score, noise: float) -> tuple[int, ...]:
    """Put figures on a scale whose steps are as wide as the noise, so that chance beats nobody."""
    widths = (noise, noise, LEAST_RESOLUTION)
    figures = (score.latency, score.cpu, score.memory)
    return tuple(round(math.log(figure) / math.log1p(width)) for figure, width in zip(figures, widths, strict=True))


def _beats(other: tuple[int, ...], own: tuple[int, ...]) -> bool:
    return other != own and all(theirs <= ours for theirs, ours in zip(other, own, strict=True))
