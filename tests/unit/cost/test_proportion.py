"""Latency by the rule of proportion, and what a model that takes longer suffers from."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_pages import COST, MODEL_NAME
from ortrim.analysis.cost.memory import ModelCost, by_operator
from ortrim.analysis.cost.report import proportion_tables
from ortrim.analysis.cost.run import Pace, expectation, expectations_on, merged_times
from ortrim.base.console import Console
from ortrim.verify.reports import DeviceReport
from sample_reports import recorded_report

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


def device(**changes: object) -> DeviceReport:
    (host,) = recorded_report().devices
    ours = next(run for run in host.runs if run.library == "ours")
    slow = tuple(
        replace(case, inference_ms=replace(case.inference_ms, p50=3 * case.inference_ms.p50)) for case in ours.cases
    )
    runs = (replace(ours, model="big"), replace(ours, model="small", cases=slow))
    return replace(host, runs=runs, traces=(), **changes)  # type: ignore[arg-type]


CASE = recorded_report().devices[0].runs[0].cases[0].case
COSTS = (
    replace(COST, model="big", case=CASE),
    replace(COST, model="small", case=CASE),
    replace(COST, model="small", case="never measured"),
    replace(COST, model="big", case="never measured", macs=9 * COST.macs),
)


def test_each_case_of_each_other_model_is_held_against_the_reference(tmp_path: Path) -> None:
    slow, unmeasured = expectations_on(device(), "big", COSTS, tmp_path)
    assert (slow.pace.model, slow.pace.case, slow.pace.macs) == ("big", CASE, COST.macs)
    assert (slow.finding, round(slow.ratio or 0, 6)) == ("poor execution efficiency", 3.0)
    assert (unmeasured.measured_ms, unmeasured.finding) == (None, "not measured")


def test_where_time_means_nothing_nothing_is_expected(tmp_path: Path) -> None:
    host = device().host
    assert host is not None
    emulated = device(host=replace(host, time_meaningful=False))
    assert list(expectations_on(emulated, "big", COSTS, tmp_path)) == []
    assert list(expectations_on(device(), MODEL_NAME, COSTS, tmp_path)) == []


def test_a_profile_says_which_operators_it_is(tmp_path: Path) -> None:
    trace = tmp_path / "outputs" / "host" / "small" / "trace.json"
    trace.parent.mkdir(parents=True)
    trace.write_text(
        '[{"cat": "Node", "name": "r_kernel_time", "ph": "X", "ts": 0, "dur": 90, "pid": 1, "tid": 1, '
        '"args": {"op_name": "Relu"}}]'
    )
    traced = replace(device(), traces=("outputs/host/small/trace.json",))
    slow, _ = expectations_on(traced, "big", COSTS, tmp_path)
    assert [(each.operator, each.time) for each in slow.blamed] == [("Relu", 1.0)]


def test_the_table_fits_and_cannot_be_steered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eighty columns, findings in words, and no control character of a model's."""
    costs = (COSTS[0], replace(COSTS[1], operators=COST.operators), replace(COSTS[1], case="\x1b[2J" + 90 * "x"))
    found = tuple(expectations_on(device(), "big", costs, tmp_path))
    Console(environment={"COLUMNS": "80"}).render(proportion_tables(found))
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "host, by big: 5.00 M MACs in" in printed
    assert "with verify --trace" in " ".join(printed.split())
