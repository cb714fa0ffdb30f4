import io
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.base.console import Console
from ortrim.parity.measurements import Verdict
from ortrim.report.terminal import terminal_report
from ortrim.verify.reports import VerifyReport
from sample_reports import on_device

DATA = Path(__file__).parent / "data"


def rendered(report: VerifyReport, width: int) -> str:
    """Return a report as a log of that width shows it, without trailing spaces."""
    stream = io.StringIO()
    console = Console(stdout=stream, stderr=io.StringIO(), environment={}, width=width)
    console.render(terminal_report(report))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("width", [80, 120])
def test_the_demo_report_looks_like_this(report: VerifyReport, width: int) -> None:
    """The table on the terminal is the recorded one, in plain text and within the width."""
    text = rendered(report, width)
    assert text == (DATA / f"terminal-{width}.txt").read_text()
    assert max(map(len, text.splitlines())) <= width


def test_each_model_has_its_block_when_there_are_several(report: VerifyReport) -> None:
    own = report.devices[0].comparisons
    other = tuple(replace(line, model="magika") for line in own)
    lines = rendered(on_device(report, comparisons=other + own), 80).splitlines()
    assert lines.index("magika") < lines.index("silero_vad")
    assert next(n for n, line in enumerate(lines) if line.startswith("library")) < lines.index("magika")


def test_hostile_and_long_names_do_no_harm(ugly_reports: tuple[VerifyReport, ...]) -> None:
    """Names are cut, control characters replaced, markup shown as it is, and no line is too wide."""
    alone, beside_others = (rendered(report, 80) for report in ugly_reports)
    for text in (alone, beside_others):
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80
    assert "nan" in alone
    assert len(alone.splitlines()) < 70


def test_the_last_lines_name_what_failed(ugly_report: VerifyReport) -> None:
    verdict = " ".join(rendered(ugly_report, 400).splitlines()[-1].split())
    assert verdict.startswith("FAIL: peak RSS of encoder_very")
    assert " on adb" not in verdict
    assert "budget ≤ 40 %" in verdict
    assert "2 outputs out of parity" in verdict
    assert "<b>RWE</b>" in verdict


def test_a_failure_without_a_cause_in_the_tables_is_still_a_failure(report: VerifyReport) -> None:
    assert rendered(replace(report, verdict=Verdict.FAIL), 80).splitlines()[-1] == "FAIL: see the tables"


def test_a_report_of_nothing_is_shown(empty_report: VerifyReport) -> None:
    """Without cases, baseline, components or gates the report says so and does not fail."""
    text = rendered(empty_report, 80)
    assert "no outputs were compared" in text
    assert text.splitlines()[-1].startswith("NOT JUDGED: within every budget")


def test_an_inconclusive_report_says_why(report: VerifyReport) -> None:
    """A comparison of nothing names the model and the first reason; what the buildspec expects is not named."""
    outputs = tuple(
        replace(output, verdict=Verdict.NOT_JUDGED, reason="every element is 0") for output in report.devices[0].parity
    )
    unproved = replace(on_device(report, parity=outputs), verdict=Verdict.INCONCLUSIVE)
    last = rendered(unproved, 120).splitlines()[-1]
    assert last == "INCONCLUSIVE: no output of silero_vad can be judged (output: every element is 0)"
    expected = tuple(replace(model, expect="empty") for model in report.models)
    assert "silero_vad" not in rendered(replace(unproved, models=expected), 120).splitlines()[-1]


def test_four_devices_look_like_this(side_report: VerifyReport) -> None:
    """The library once, the devices beside each other, then each by itself, all within 80 columns."""
    text = rendered(side_report, 80)
    assert text == (DATA / "devices-80.txt").read_text()
    assert max(map(len, text.splitlines())) <= 80


def test_more_devices_than_fit_are_further_blocks(side_report: VerifyReport) -> None:
    again = tuple(replace(device, device=f"{device.device}@{n}") for n in range(3) for device in side_report.devices)
    text = rendered(replace(side_report, devices=again), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert sum(line.startswith("devices ") for line in text.splitlines()) == 3


def test_a_device_that_failed_alone_says_why(report: VerifyReport, side_report: VerifyReport) -> None:
    text = rendered(replace(report, devices=side_report.devices[3:]), 80)
    assert "failed  error: device-lost\n        ssh:pi@board: the connection broke\n" in text
    assert "no outputs were compared" not in text


def test_a_baseline_that_is_missing_on_one_device_is_explained(side_report: VerifyReport) -> None:
    """Where ratios are missing, the reason stands below; a single device's baseline stands in the head already."""
    user, machine, *others = side_report.devices
    other = replace(machine, baseline="none: it does not run there")
    text = rendered(replace(side_report, devices=(user, other, *others)), 80)
    assert text.count("baseline      none: it does not run there\n") == 1
    alone = rendered(replace(side_report, devices=(other,)), 80)
    assert "baseline      none" not in alone
    assert "beside none: it does not run there" in " ".join(alone.split())


def test_a_report_without_devices_is_shown(report: VerifyReport) -> None:
    """As of an Android build for which none was named: nothing is claimed."""
    text = rendered(replace(report, devices=()), 80)
    assert "not run: no device was given" in text
    assert "measured" not in text
