from dataclasses import replace
from typing import get_args

import pytest

from ortrim.buildspec.tolerances import (
    DEFAULT_TOLERANCES,
    EXACT,
    LEVELS,
    QUANTIZED,
    QUANTIZED_ELSEWHERE,
    SAME_GRAPH,
    Bounds,
    ElementType,
    Tolerance,
    bounds_of,
)


def test_a_key_that_is_left_out_has_the_default_of_its_type() -> None:
    bounds = bounds_of("float16", {"float16": Tolerance(absolute=0.1)})
    assert bounds == replace(DEFAULT_TOLERANCES["float16"], absolute=0.1)
    assert bounds.relative > DEFAULT_TOLERANCES["float32"].relative


def test_zero_is_a_tolerance() -> None:
    """A bound of nothing at all is not taken for one that was left out."""
    assert bounds_of("float32", {"float32": Tolerance(absolute=0.0)}).absolute == 0.0


def test_tolerances_of_other_types_change_nothing() -> None:
    """Each type stands by itself."""
    assert bounds_of("float32", {"float64": Tolerance(absolute=9.0)}) == DEFAULT_TOLERANCES["float32"]


@pytest.mark.parametrize("kind", sorted({*get_args(ElementType), "absent", "unsupported"} - set(DEFAULT_TOLERANCES)))
def test_what_is_not_a_float_is_exact(kind: str) -> None:
    """Only a buildspec makes integers, booleans and strings differ."""
    assert bounds_of(kind, {}) == EXACT
    assert bounds_of(kind, {kind: Tolerance(absolute=1.0)}) == Bounds(absolute=1.0)


def test_few_values_of_a_quantized_model_have_a_bound_that_binds() -> None:
    """A tenth of the output's largest magnitude in any case, for each value; many may jump by the whole range."""
    assert bounds_of("float32", {}, QUANTIZED, 0.97) == Bounds(absolute=0.1 * 0.97, cosine=0.98)
    assert bounds_of("float32", {}, QUANTIZED) == LEVELS
    for others in (DEFAULT_TOLERANCES, SAME_GRAPH, QUANTIZED_ELSEWHERE):
        assert bounds_of("float32", {}, others, 0.97) == others["float32"]


@pytest.mark.parametrize("few", [None, 0.97])
@pytest.mark.parametrize("key", ["absolute", "relative", "ulps"])
def test_what_a_buildspec_says_of_elements_binds(key: str, few: float | None) -> None:
    """It is not added to a default that allows everything; a scale that the buildspec itself gives is."""
    bounds = bounds_of("float32", {"float32": Tolerance(**{key: 0.01})}, QUANTIZED, few)
    assert (getattr(bounds, key), bounds.scale) == (0.01, 0.0)
    both = bounds_of("float32", {"float32": Tolerance(**{key: 0.01}, scale=0.5)}, QUANTIZED, few)
    assert (getattr(both, key), both.scale) == (0.01, 0.5)
    assert bounds_of("float32", {"float32": Tolerance(rms=0.5)}, QUANTIZED).scale == LEVELS.scale
