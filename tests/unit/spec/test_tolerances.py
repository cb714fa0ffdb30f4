from dataclasses import replace
from typing import get_args

import pytest

from ortrim.spec.tolerances import DEFAULTS, EXACT, Bounds, ElementType, Tolerance, bounds_of


def test_a_key_that_is_left_out_has_the_default_of_its_type() -> None:
    """A tolerance that gives one key of float16 keeps float16's own defaults for the others, not float32's."""
    bounds = bounds_of("float16", {"float16": Tolerance(absolute=0.1)})
    assert bounds == replace(DEFAULTS["float16"], absolute=0.1)
    assert bounds.relative > DEFAULTS["float32"].relative


def test_zero_is_a_tolerance() -> None:
    """A bound of nothing at all is not taken for one that was left out."""
    assert bounds_of("float32", {"float32": Tolerance(absolute=0.0)}).absolute == 0.0


def test_tolerances_of_other_types_change_nothing() -> None:
    """Each type stands by itself."""
    assert bounds_of("float32", {"float64": Tolerance(absolute=9.0)}) == DEFAULTS["float32"]


@pytest.mark.parametrize("kind", sorted({*get_args(ElementType), "absent", "unsupported"} - set(DEFAULTS)))
def test_what_is_not_a_float_is_exact(kind: str) -> None:
    """Only a buildspec makes integers, booleans and strings differ."""
    assert bounds_of(kind, {}) == EXACT
    assert bounds_of(kind, {kind: Tolerance(absolute=1.0)}) == Bounds(absolute=1.0)
