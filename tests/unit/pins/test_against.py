"""Two versions beside each other, with the reports of two real builds of the demo; samples were left out of them."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, VerifyError
from ortrim.pins.report import PinChange, against, changes
from ortrim.report.write import read_report
from ortrim.verify.measurements import Verdict
from ortrim.verify.reports import VerifyReport
from sample_reports import four_devices, lost_board, on_device

DATA = Path(__file__).with_name("data")
NAN = math.nan


@pytest.fixture
def last() -> VerifyReport:
    """Return the report of the last version."""
    return read_report(DATA / "against-last.json")


@pytest.fixture
def newest() -> VerifyReport:
    """Return the report of a later build, under the name of another version."""
    return replace(read_report(DATA / "against-newest.json"), ort_version="1.24.1")


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of a table's rows by the first."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return {first: rest for first, *rest in lines}


def test_sizes_memory_and_times_stand_beside_each_other(last: VerifyReport, newest: VerifyReport) -> None:
    """With how much larger the newer ones are; the time is that of the case that took longest before."""
    table = rows(against(last, newest))
    assert table["measure"] == ["of", "ONNX Runtime 1.21.0", "ONNX Runtime 1.24.1", "change"]
    assert list(table)[1:] == [
        "library", "library, compressed", "package", "peak memory", "load", "latency p50, 16k-batch"
    ]  # fmt: skip
    assert table["library"] == ["", "1.70 MB", "1.70 MB", "0 %"]
    assert table["peak memory"] == ["silero-vad on host", "10.6 MB", "10.6 MB", "+0.6 %"]
    assert table["latency p50, 16k-batch"][1:] == ["0.465 ms", "0.460 ms", "-1.0 %"]


def test_a_library_that_grew_says_how_much(last: VerifyReport, newest: VerifyReport) -> None:
    """In its own row, and in no other."""
    size = replace(newest.size, file_bytes=newest.size.file_bytes * 11 // 10)
    table = rows(against(last, replace(newest, size=size)))
    assert table["library"][-1] == "+10.0 %"
    assert table["package"][-1] == "0 %"


def test_parity_and_the_verdict_are_reported(last: VerifyReport, newest: VerifyReport) -> None:
    """A newer version that loses parity or misses a budget says so at first sight."""
    text = against(last, newest)
    assert "✓ Parity on host: 16 outputs of 8 cases agree" in text
    assert "✓ With 1.24.1: PASS" in text
    (device,) = newest.devices
    parity = tuple(replace(output, verdict=Verdict.FAIL) for output in device.parity)
    failed = against(last, replace(on_device(newest, parity=parity), verdict=Verdict.FAIL))
    assert "✗ Parity on host: 16 of 16 outputs of 8 cases differ" in failed
    assert "✗ With 1.24.1: FAIL" in failed


def test_what_means_nothing_on_a_machine_is_left_out() -> None:
    """An emulator's memory and times are no row; a board that went away has none."""
    report = four_devices()
    measured = [(change.measure.partition(",")[0], change.where) for change in changes(report, report)]
    assert [where for measure, where in measured if measure == "peak memory"] == [
        "silero_vad on qemu-system:cortex-a53",
        "silero_vad on adb:R58M12ABCDE",
    ]
    assert [where for measure, where in measured if measure == "load"] == ["silero_vad on adb:R58M12ABCDE"]


def test_only_devices_of_both_are_compared(last: VerifyReport, newest: VerifyReport) -> None:
    """And only models of both; sizes are always there."""
    elsewhere = replace(newest, devices=(lost_board(),))
    assert [change.measure for change in changes(last, elsewhere)] == ["library", "library, compressed", "package"]
    (device,) = newest.devices
    renamed = on_device(newest, runs=tuple(replace(run, model="another") for run in device.runs))
    assert len(changes(last, renamed)) == 3


@pytest.mark.parametrize(("one", "other"), [(NAN, 1.0), (1.0, math.inf), (0.0, 1.0), (-1.0, 1.0), (None, 1.0)])
def test_figures_that_are_none_have_no_change(
    last: VerifyReport, newest: VerifyReport, one: float | None, other: float
) -> None:
    """A forged report is shown, too; a case that is gone is a dash."""
    (device,) = last.devices
    run = next(run for run in device.runs if run.library == "ours")
    case = replace(run.cases[0], inference_ms=replace(run.cases[0].inference_ms, p50=one or NAN))
    before = on_device(last, runs=(replace(run, cases=(case,) if one is not None else ()),))
    after = on_device(
        newest, runs=(replace(run, cases=(replace(case, inference_ms=replace(case.inference_ms, p50=other)),)),)
    )
    row = next(cells for name, cells in rows(against(before, after)).items() if name.startswith("latency"))
    assert row[-1] == "\N{EN DASH}"


@pytest.mark.parametrize("changed", [{"name": "another"}, {"target": "linux-arm64"}])
def test_unlike_reports_are_refused(last: VerifyReport, newest: VerifyReport, changed: dict[str, str]) -> None:
    """Another model's library says nothing of a version."""
    with pytest.raises(VerifyError) as caught:
        against(last, replace(newest, **changed))  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.exit_code) == ("reports-unlike", ExitCode.VERIFY)


def test_names_stay_names(last: VerifyReport, newest: VerifyReport) -> None:
    """No name can put markup, a mention or a link into a pull request."""
    hostile = "<img src=x>|@everyone [a](https://example.com)"
    (device,) = newest.devices
    runs = tuple(replace(run, model=hostile) for run in device.runs)
    forged = [replace(on_device(each, runs=runs, device=hostile), name=hostile) for each in (last, newest)]
    text = against(*forged)
    assert "<img" not in text
    assert "@everyone" not in text
    assert "https://" not in text


def test_changes_are_plain_numbers(last: VerifyReport, newest: VerifyReport) -> None:
    """For whoever wants them without Markdown."""
    first = changes(last, newest)[0]
    assert first == PinChange(measure="library", unit="bytes", last=1702856, newest=newest.size.file_bytes)
