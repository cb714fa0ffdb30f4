"""Latency by the rule of proportion, and what a model that takes longer suffers from."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_pages import COST
from ortrim.analysis.cost.memory import ModelCost, by_operator
from ortrim.analysis.cost.run import Pace, expectation, merged_times

PACE = Pace(device="host", model="reference", case="one", macs=10_000_000, milliseconds=4.0)


def test_latency_is_expected_in_proportion_to_arithmetic() -> None:
    """By y = x / x0 * y0: half the arithmetic of the reference, half its time."""
    found = expectation(COST, PACE, 2.1, None)
    assert (found.expected_ms, found.measured_ms, found.ratio) == (2.0, 2.1, 1.05)


@pytest.mark.parametrize(
    ("measured", "finding"),
    [
        (None, "not measured"),
        (0.1, "much arithmetic"),
        (2.0, "much arithmetic"),
        (3.0, "much arithmetic"),
        (3.01, "poor execution efficiency"),
    ],
)
def test_the_finding_follows_from_what_was_measured(measured: float | None, finding: str) -> None:
    assert expectation(COST, PACE, measured, None).finding == finding


def test_much_arithmetic_is_that_of_the_heaviest_operators() -> None:
    (conv,) = expectation(COST, PACE, 2.0, {"Conv": 0.5, "Relu": 0.5}).blamed
    assert (conv.operator, conv.arithmetic, conv.time) == ("Conv", 0.8, 0.5)


def test_poor_efficiency_is_of_operators_that_take_more_than_their_arithmetic() -> None:
    """Those with a profile's time beyond their part of the arithmetic, most of it first; Gemm has earned its time."""
    found = expectation(COST, PACE, 9.0, {"Conv": 0.2, "Gemm": 0.1, "Relu": 0.5, "Transpose": 0.2})
    assert [(each.operator, each.arithmetic, each.time) for each in found.blamed] == [
        ("Relu", 0.0, 0.5),
        ("Transpose", 0.0, 0.2),
    ]
    assert found.blame_known


def test_without_a_profile_nobody_is_blamed_for_inefficiency() -> None:
    assert not expectation(COST, PACE, 9.0, None).blame_known
    assert expectation(COST, PACE, 9.0, None).blamed == ()
    assert expectation(COST, PACE, 2.0, None).blame_known


def test_what_the_runtime_fused_counts_as_what_it_was() -> None:
    """A profile knows no domains, and a model's arithmetic no fused operators."""
    assert merged_times({"FusedConv": 2.0, "Conv": 1.0, "NhwcFusedConv": 1.0, "Relu": 4.0}) == {
        "Conv": 0.5,
        "Relu": 0.5,
    }
    assert merged_times({"Relu": 0.0}) == {"Relu": 0.0}
    quantized = tuple(replace(node, operator=f"com.microsoft:{node.operator}") for node in COST.nodes)
    found = expectation(replace(COST, operators=by_operator(quantized)), PACE, 9.0, {"Conv": 0.8, "Relu": 0.2})
    assert [each.operator for each in found.blamed] == ["Relu"]


def test_a_model_without_arithmetic_is_all_execution() -> None:
    idle = ModelCost(**{**vars(COST), "macs": 0, "operators": by_operator(COST.nodes[2:]), "nodes": COST.nodes[2:]})
    found = expectation(idle, PACE, 1.0, {"Relu": 1.0})
    assert (found.expected_ms, found.ratio, found.finding) == (0.0, None, "poor execution efficiency")
    assert [each.operator for each in found.blamed] == ["Relu"]


@given(
    st.integers(min_value=0, max_value=10**400),
    st.one_of(st.none(), st.floats()),
    st.dictionaries(st.text(max_size=20), st.floats(min_value=0, max_value=1e9), max_size=8),
)
def test_no_figures_break_it(macs: int, measured: float | None, times: dict[str, float]) -> None:
    """A damaged model's sums are larger than any float, and a damaged report's times are anything."""
    node = replace(COST.nodes[0], macs=macs)
    cost = replace(COST, macs=macs, operators=by_operator((node,)), nodes=(node,))
    expectation(cost, PACE, measured, merged_times(times))
