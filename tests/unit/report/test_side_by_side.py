import math
from dataclasses import replace

import pytest

from ortrim.parity.measurements import RunnerResult, Verdict
from ortrim.report.table import Cell, Judged, Table
from ortrim.report.terminal import side_by_side
from ortrim.verify.reports import DeviceReport, VerifyReport
from sample_reports import on_device

NONE = "\N{EN DASH}"


def words(cell: Cell) -> str:
    """Return what stands in a cell, without the symbol of its verdict."""
    return str(cell).partition(" ")[2] if isinstance(cell, Judged) else str(cell)


def table(report: VerifyReport) -> dict[str, tuple[str, ...]]:
    """Return each row's texts by its label; headings have no texts."""
    rows: dict[str, tuple[str, ...]] = {}
    for group in side_by_side(report):
        rows |= {group.title: ()} if group.title else {}
        rows |= {str(row[0]): tuple(map(words, row[1:])) for row in group.rows}
    return rows


def models(report: VerifyReport) -> list[Table]:
    return [group for group in side_by_side(report) if group.title]


def test_what_no_device_has_is_left_out(report: VerifyReport) -> None:
    """Without a deadline, a ceiling or a mark that can be reset there is no row of dashes."""
    (device,) = report.devices
    plain = tuple(replace(run, inference_peak_rss_bytes=None) for run in device.runs)
    rows = table(on_device(report, runs=plain))
    assert not {"missed", "least memory", "peak after load"} & set(rows)


def test_lost_parity_is_counted(report: VerifyReport) -> None:
    (device,) = report.devices

    def of(*verdicts: Verdict) -> str:
        parity = tuple(replace(device.parity[0], verdict=verdict) for verdict in verdicts)
        return table(on_device(report, parity=parity))["parity"][0]

    assert of(Verdict.PASS, Verdict.FAIL, Verdict.PASS) == "2 of 3"
    assert of(Verdict.PASS, Verdict.PASS) == "2 of 2"
    assert of(Verdict.NOT_JUDGED, Verdict.PASS) == "1 of 1"
    assert of(Verdict.NOT_JUDGED, Verdict.NOT_JUDGED) == "not judged"
    assert of() == NONE


def renamed(device: DeviceReport, model: str) -> tuple[RunnerResult, ...]:
    return tuple(replace(run, model=model) for run in device.runs)


def test_each_model_has_its_rows(report: VerifyReport) -> None:
    (device,) = report.devices
    both = replace(device, runs=(*device.runs, *renamed(device, "magika")))
    groups = models(replace(report, devices=(both, device)))
    assert [group.title.partition(";")[0] for group in groups] == ["silero_vad", "magika"]
    assert [*groups[1].rows[0][1:]] == ["10.0 MB", NONE]


def test_times_are_of_the_case_that_takes_longest_anywhere(report: VerifyReport) -> None:
    (device,) = report.devices
    ours = device.runs[0]
    slow = replace(ours.cases[2], inference_ms=replace(ours.cases[2].inference_ms, p50=9.0))
    other = replace(device, runs=(replace(ours, cases=(*ours.cases[:2], slow)),))
    (group,) = models(replace(report, devices=(device, other)))
    assert group.title == "silero_vad; times of long-frame"
    p50 = next(row for row in group.rows if row[0] == "p50")
    assert [*p50[1:]] == ["0.219 ms", "9.00 ms"]
    single = replace(device, runs=(replace(ours, cases=ours.cases[:1]),))
    assert models(replace(report, devices=(single,)))[0].title == "silero_vad"


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_figures_that_are_none_do_no_harm(report: VerifyReport, value: float) -> None:
    (device,) = report.devices
    ours = device.runs[0]
    case = replace(ours.cases[0], inference_ms=replace(ours.cases[0].inference_ms, p50=value), jitter_ms=value)
    run = replace(ours, cases=(case,), load_ms=replace(ours.load_ms, p50=value))
    rows = table(on_device(report, runs=(run, replace(run, cases=()))))
    assert len(rows["load"]) == 1


def test_a_report_without_devices_has_empty_rows(report: VerifyReport) -> None:
    assert models(replace(report, devices=())) == []
