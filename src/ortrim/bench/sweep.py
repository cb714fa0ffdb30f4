"""Which points a sweep measures, and in which order: pure arithmetic over settings."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from ortrim.bench.axes import CHOICES, EACH, LEVEL, Value, axis_from, name_of, value_of, values_of, with_value
from ortrim.core.bench import BenchModel, BenchPoint
from ortrim.errors import UsageError

DEFAULT: Final = "default"
MOST_POINTS: Final = 100


def sweep_points(base: BenchPoint, words: Sequence[str], *, cores: int, full: bool) -> tuple[BenchPoint, ...]:
    """Return the base and what is to be measured beside it.

    `each` changes every setting alone; all other words (`threads=1,2`) are combined with one another. `each` leaves out
    what means nothing to the library: levels where it is not `full`, and weights in place where it is. Raises
    `UsageError` (`bad-option`, `sweep-too-large`).
    """
    named = dict(axis_from(word, cores) for word in words if word != EACH)
    if LEVEL in named and not full:
        what = "a converted model was optimized when it was converted"
        raise UsageError("bad-option", what, where="--sweep level", hint="measure the official one: --library wheel")
    alone = _one_at_a_time(base, cores, full=full) if EACH in words else ()
    points: dict[str, BenchPoint] = {base.name: base}
    for point in (*alone, *_combined(base, named)):
        points.setdefault(name := name_of(point, base), _named(point, name))
    if len(points) > MOST_POINTS:
        hint = "give fewer values, such as --sweep threads=1,2"
        raise UsageError(
            "sweep-too-large", f"these are {len(points)} combinations; {MOST_POINTS} are the most", hint=hint
        )
    return tuple(points.values())


def turns(model: BenchModel, number: int) -> Iterator[tuple[BenchPoint, str]]:
    """Yield each point with each case in the order of a round; each round begins with the next point.

    A point is loaded once without a case before its cases.
    """
    first = number % len(model.points)
    for point in model.points[first:] + model.points[:first]:
        yield point, ""
        for case in model.cases:
            yield point, case.name


def _one_at_a_time(base: BenchPoint, cores: int, *, full: bool) -> Iterator[BenchPoint]:
    left_out = "in_place" if full else LEVEL
    for name in CHOICES:
        if name != left_out:
            start = _with_threads(base, cores) if name == "spinning" else base
            yield from (
                with_value(start, name, value) for value in values_of(name, cores) if _differs(base, name, value)
            )


def _differs(base: BenchPoint, name: str, value: Value) -> bool:
    return value_of(base, name) != value


def _with_threads(base: BenchPoint, cores: int) -> BenchPoint:
    """Return a point with several threads: one alone has nobody to wait for, so that it never spins."""
    return base if (base.session.threads or 1) > 1 else with_value(base, "threads", max(2, cores))


def _combined(base: BenchPoint, axes: Mapping[str, tuple[Value, ...]]) -> Iterator[BenchPoint]:
    for values in product(*axes.values()):
        point = base
        for name, value in zip(axes, values, strict=True):
            point = with_value(point, name, value)
        yield point


def _named(point: BenchPoint, name: str) -> BenchPoint:
    return BenchPoint(name=name, session=point.session, level=point.level)
