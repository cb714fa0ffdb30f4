"""What a report tells of a reference model's pace."""

from dataclasses import replace
from pathlib import Path

import pytest

from model_pages import COST, MODEL_NAME
from ortrim.analysis.cost.report import proportion_tables
from ortrim.analysis.cost.run import expectations_on
from ortrim.base.console import Console
from ortrim.verify.reports import DeviceReport
from sample_reports import recorded_report


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
