import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.report.treemap import Box, squarified

BOX = Box(x=10, y=20, width=600, height=400)
VALUES = st.lists(st.floats(min_value=0.01, max_value=1e6), min_size=1, max_size=60).map(
    lambda values: sorted(values, reverse=True)
)


@given(VALUES)
def test_areas_are_in_proportion_and_fill_the_box(values: list[float]) -> None:
    """Each part has its share of the area, lies inside, and together they are the whole."""
    parts = squarified(values, BOX)
    total = sum(values)
    for value, part in zip(values, parts, strict=True):
        assert part.area == pytest.approx(BOX.area * value / total, rel=1e-6, abs=1e-6)
        assert part.x >= BOX.x - 1e-3
        assert part.y >= BOX.y - 1e-3
        assert part.x + part.width <= BOX.x + BOX.width + 1e-3
        assert part.y + part.height <= BOX.y + BOX.height + 1e-3


@given(VALUES)
def test_parts_do_not_overlap(values: list[float]) -> None:
    """No two parts share more than an edge."""
    parts = squarified(values, BOX)
    for number, one in enumerate(parts):
        for other in parts[:number]:
            wide = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            high = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(wide, high) <= 1e-3


def test_equal_areas_are_nearly_square() -> None:
    """Six equal parts of a box of three to two are squares."""
    for part in squarified([1.0] * 6, BOX):
        assert part.width == pytest.approx(part.height)


@pytest.mark.parametrize("box", [Box(x=0, y=0, width=0, height=9), Box(x=0, y=0, width=-4, height=9)])
def test_a_box_without_room_has_parts_without_size(box: Box) -> None:
    """Nothing is drawn where there is no room."""
    assert [part.area for part in squarified([3, 1], box)] == [0, 0]


def test_nothing_has_no_parts() -> None:
    """Without values, and with values of nothing, there is nothing to lay out."""
    assert squarified([], BOX) == ()
    assert [part.area for part in squarified([0.0, 0.0], BOX)] == [0, 0]
