"""Versions beside each other, with the reports of two real builds of the demo; samples were left out of them."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.console import Console
from ortrim.errors import VerifyError
from ortrim.parity.measurements import Verdict
from ortrim.pin_updates.report import Outcome, Refused, compared, versions_markdown, versions_page, versions_tables
from ortrim.report.write import read_report
from ortrim.verify.reports import VerifyReport
from refusing import refused
from sample_reports import four_devices, lost_board, on_device

DATA = Path(__file__).with_name("data")
NAN = math.nan
LOST = Refused(version="1.25.1", reference="build-failed", what="the build stopped", why="no <b>header</b> @you")


@pytest.fixture
def last() -> VerifyReport:
    return read_report(DATA / "against-last.json")


@pytest.fixture
def newest() -> VerifyReport:
    return replace(read_report(DATA / "against-newest.json"), ort_version="1.24.1")


def rows(text: str) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        if line.startswith("| "):
            first, *rest = (cell.strip() for cell in line.split("|")[1:-1])
            found.setdefault(first, []).append(rest)
    return found


def markdown(*outcomes: Outcome) -> str:
    return versions_markdown(compared(outcomes))


def test_sizes_memory_and_times_stand_beside_each_other(last: VerifyReport, newest: VerifyReport) -> None:
    """A row for each version, with how much larger it is; the time is that of the case that took longest at first."""
    table = rows(markdown(last, newest))
    assert table["ONNX Runtime"] == [
        ["library", "library, compressed", "package"],
        ["peak memory", "load", "latency p50, 16k-batch"],
    ]
    assert table["1.21.0"][0][0] == "1.70 MB"
    assert table["1.24.1"][0][0] == "1.70 MB, 0 %"
    assert table["1.24.1"][1][::2] == ["10.6 MB, +0.6 %", "0.460 ms, -1.0 %"]
    assert "### silero-vad on host" in markdown(last, newest)


def test_a_library_that_grew_says_how_much(last: VerifyReport, newest: VerifyReport) -> None:
    size = replace(newest.size, file_bytes=newest.size.file_bytes * 11 // 10)
    again = replace(newest, ort_version="1.30.0")
    table = rows(markdown(last, replace(newest, size=size), again))
    assert [table[version][0][0] for version in ("1.24.1", "1.30.0")] == ["1.87 MB, +10.0 %", "1.70 MB, 0 %"]
    assert table["1.24.1"][0][2].endswith(", 0 %")


def test_a_version_that_was_not_built_has_its_row_and_the_reason(last: VerifyReport, newest: VerifyReport) -> None:
    """Wherever it stands: the figures of the others are against the first that has any."""
    text = markdown(LOST, last, newest)
    assert rows(text)["1.25.1"] == [["\N{EN DASH}"] * 3, ["\N{EN DASH}"] * 3]
    assert rows(text)["1.24.1"][1][0] == "10.6 MB, +0.6 %"
    assert "1.25.1: build-failed: the build stopped: no" in text
    assert "<b>" not in text
    assert "@you" not in text


def test_parity_and_the_verdict_are_reported(last: VerifyReport, newest: VerifyReport) -> None:
    """A newer version that loses parity or misses a budget says so at first sight."""
    assert "✓ 1.24.1: parity on host: 16 outputs of 8 cases agree" in compared((last, newest)).notes[-1]
    assert compared((last, newest)).notes[-2].startswith("✓ 1.24.1: PASS")
    (device,) = newest.devices
    parity = tuple(replace(output, verdict=Verdict.FAIL) for output in device.parity)
    failed = compared((last, replace(on_device(newest, parity=parity), verdict=Verdict.FAIL)))
    assert failed.notes[-1].startswith("✗ 1.24.1: parity on host: 16 of 16 outputs of 8 cases differ")
    assert failed.notes[-2].startswith("✗ 1.24.1: FAIL")


def test_what_means_nothing_on_a_machine_is_left_out() -> None:
    """An emulator's memory and times are no column; a board that went away has none."""
    report = four_devices()
    found = {where: [figure.measure for figure in figures] for where, figures in compared((report, report)).groups}
    assert [where for where, measures in found.items() if "peak memory" in measures] == [
        "silero_vad on qemu-system:cortex-a53",
        "silero_vad on adb:R58M12ABCDE",
    ]
    assert [where for where, measures in found.items() if "load" in measures] == ["silero_vad on adb:R58M12ABCDE"]


def test_a_device_or_a_model_that_is_gone_leaves_a_dash(last: VerifyReport, newest: VerifyReport) -> None:
    elsewhere = replace(newest, devices=(lost_board(),))
    (device,) = newest.devices
    renamed = on_device(newest, runs=tuple(replace(run, model="another") for run in device.runs))
    for other in (elsewhere, renamed):
        sizes, figures = rows(markdown(last, other))["1.24.1"]
        assert sizes[0] == "1.70 MB, 0 %"
        assert set(figures) == {"\N{EN DASH}"}


@pytest.mark.parametrize(("one", "other"), [(NAN, 1.0), (1.0, math.inf), (0.0, 1.0), (-1.0, 1.0), (None, 1.0)])
def test_figures_that_are_none_have_no_change(
    last: VerifyReport, newest: VerifyReport, one: float | None, other: float
) -> None:
    (device,) = last.devices
    run = next(run for run in device.runs if run.library == "ours")
    case = replace(run.cases[0], inference_ms=replace(run.cases[0].inference_ms, p50=one or NAN))
    before = on_device(last, runs=(replace(run, cases=(case,) if one is not None else ()),))
    after = on_device(
        newest, runs=(replace(run, cases=(replace(case, inference_ms=replace(case.inference_ms, p50=other)),)),)
    )
    assert [cell for cell in rows(markdown(before, after))["1.24.1"][1][2:] if "%" in cell] == []


@pytest.mark.parametrize("changed", [{"name": "another"}, {"target": "linux-arm64"}])
def test_unlike_reports_are_refused(last: VerifyReport, newest: VerifyReport, changed: Any) -> None:
    """Another model's library says nothing of a version."""
    caught = refused(VerifyError, compared, (last, replace(newest, **changed)))
    assert caught.code == "reports-unlike"


def test_names_stay_names(last: VerifyReport, newest: VerifyReport) -> None:
    hostile = "<img src=x>|@everyone [a](https://example.com)"
    (device,) = newest.devices
    runs = tuple(replace(run, model=hostile) for run in device.runs)
    forged = [replace(on_device(each, runs=runs, device=hostile), name=hostile) for each in (last, newest)]
    text = markdown(*forged)
    assert "<img" not in text
    assert "@everyone" not in text
    assert "https://" not in text
    assert "<img" not in versions_page(compared(forged))


def test_the_page_has_a_bar_for_each_figure_of_each_version(last: VerifyReport, newest: VerifyReport) -> None:
    page = versions_page(compared((last, LOST, newest)))
    assert page.count("<svg") == 6
    assert page.count("<rect") == 2 * 6
    assert page.count(">1.25.1</text>") == 6
    assert "0.460 ms, -1.0 %" in page


def test_the_terminal_shows_the_same(
    last: VerifyReport, newest: VerifyReport, capsys: pytest.CaptureFixture[str]
) -> None:
    Console(environment={"COLUMNS": "200"}).render(versions_tables(compared((last, newest, LOST))))
    text = capsys.readouterr().out
    assert "10.6 MB, +0.6 %" in text
    assert "✗ 1.25.1: build-failed: the build stopped" in text
