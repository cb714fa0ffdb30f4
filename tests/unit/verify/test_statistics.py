import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.parity.measurements import Interval, distribution, median_interval


def test_percentiles_are_interpolated() -> None:
    """The same definition as NumPy's default."""
    found = distribution([4.0, 1.0, 3.0, 2.0])
    assert (found.count, found.minimum, found.p50, found.maximum) == (4, 1.0, 2.5, 4.0)
    assert found.p90 == pytest.approx(3.7)
    assert found.p99 == pytest.approx(3.97)


@pytest.mark.parametrize(("count", "low", "high"), [(1, 0, 0), (4, 0, 3), (5, 0, 4), (7, 0, 6), (8, 1, 6), (9, 1, 7)])
def test_interval_leaves_out_what_it_can_afford(count: int, low: int, high: int) -> None:
    """From eight rounds on, one outlier on either side does not widen the interval."""
    interval = median_interval(float(number) for number in range(count))
    assert (interval.low, interval.high) == (low, high)


def test_interval_is_as_sure_as_it_is_asked_to_be() -> None:
    """Each side by itself; fewer samples than that takes give all of them."""
    samples = [float(number) for number in range(9)]
    one_sided = median_interval(samples, below=0.002, above=0.0196)
    assert (one_sided.low, one_sided.high) == (0, 7)
    assert median_interval(range(144), below=0.005, above=0.005) == Interval(low=56, median=71.5, high=87)


@given(samples=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=60))
def test_interval_holds_the_median(samples: list[float]) -> None:
    interval = median_interval(samples)
    assert interval.low <= interval.median <= interval.high
    assert interval.spread >= 0
