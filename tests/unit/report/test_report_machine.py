from dataclasses import replace

import pytest

from ortrim.parity.measurements import HostFacts
from ortrim.report import content
from ortrim.report.charts import latency_pictures, load_chart, memory_chart
from ortrim.report.content import machine_facts, measures_memory, measures_time
from ortrim.report.figures import NONE
from ortrim.report.html import html_report, markdown_report
from ortrim.verify.reports import DeviceReport, VerifyReport
from sample_reports import PHONE, machine, on_device, recorded_report, user_emulation

WHY = "time: what it takes on qemu-system:cortex-a53 says nothing about a real device"


@pytest.fixture
def emulated(report: VerifyReport) -> DeviceReport:
    return machine(report.devices[0])


@pytest.fixture
def host(report: VerifyReport) -> HostFacts:
    (device,) = report.devices
    assert device.host is not None
    return device.host


def test_what_is_not_known_is_not_told(report: VerifyReport) -> None:
    """A machine that says little of itself has few lines, and nothing of it is hidden."""
    (device,) = report.devices
    assert [label for label, _ in content.machine_facts(device)] == ["host", "cores and memory"]
    assert (content.measures_memory(device), content.measures_time(device)) == (True, True)
    assert content.timings(device).rows


def test_memory_that_nobody_tells_is_not_nothing(report: VerifyReport, host: HostFacts) -> None:
    (device,) = on_device(report, host=replace(host, cores=4, memory_bytes=0)).devices
    assert dict(content.machine_facts(device))["cores and memory"] == f"4 cores, {NONE}"


def test_chosen_cores_are_reported(report: VerifyReport, host: HostFacts) -> None:
    """As they are written on the command line; times on others are other times."""
    (device,) = on_device(report, host=replace(host, cores=8, pinned_cores=(4, 5, 6, 7))).devices
    assert dict(content.machine_facts(device))["ran on cores"] == "4-7"


def test_how_the_figures_came_about_is_reported(report: VerifyReport, emulated: DeviceReport) -> None:
    """Where the peak was read and how many runs came before, where that means something."""
    (device,) = report.devices
    told = dict(content.run_facts(device))
    assert (told["peak RSS read from"], told["warm-up"]) == ("VmHWM", "10 runs of each case")
    assert content.run_facts(emulated)[0] == ("peak RSS read from", "VmHWM")
    assert "warm-up" not in dict(content.run_facts(emulated))
    assert [label for label, _ in content.run_facts(user_emulation(device))] == ["verified", "run"]


def test_a_run_at_a_farm_is_found_again(report: VerifyReport) -> None:
    (device,) = on_device(report, provider_url="https://farm.invalid/1", log="farms/firebase_x/log.txt").devices
    told = dict(content.run_facts(device))
    assert (told["seen at"], told["device's log"]) == ("https://farm.invalid/1", "farms/firebase_x/log.txt")
    for page in (markdown_report(replace(report, devices=(device,))), html_report(replace(report, devices=(device,)))):
        assert "farm.invalid/1" in page


def test_digests_are_reported(report: VerifyReport) -> None:
    package, library = report.artifacts
    artifacts = (package, replace(library, build_id="b0" * 20))
    told = content.package_facts(replace(report, artifacts=artifacts))
    files = [value for label, value in told if label == "file"]
    assert files == [
        f"{package.name}: SHA-256 {package.sha256}",
        f"{library.name}: SHA-256 {library.sha256}, build-id {'b0' * 20}",
    ]
    (model,) = [value for label, value in told if label == "model"]
    assert model == f"silero_vad: SHA-256 {report.models[0].sha256}, made of {report.models[0].original_sha256}"
    assert library.sha256 in markdown_report(report)
    assert library.sha256 in html_report(report)
    in_nchwc = replace(report, models=(replace(report.models[0], layout="nchwc8"),))
    assert dict(content.package_facts(in_nchwc))["model"].endswith(", layout nchwc8")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(0, 0, "none → none"), (0, 3, "none → severe"), (None, 1, "\N{EN DASH} → light"), (7, -1, "7 → -1")],
)
def test_heat_is_reported(emulated: DeviceReport, before: int | None, after: int | None, text: str) -> None:
    phone = replace(PHONE, thermal_before=before, thermal_after=after)
    told = dict(content.machine_facts(replace(emulated, host=phone)))
    assert (told["temperature, before and after"], told["battery"]) == (text, "31.2 °C")
    assert told["system"] == "Android 13 · arm64-v8a · API level 33"


def test_figures_that_mean_nothing_are_not_shown(emulated: DeviceReport) -> None:
    """Times have lines with their budgets and no figures; memory has its; no picture is drawn of time."""
    for line, comparison in zip(content.device_lines(emulated), emulated.comparisons, strict=True):
        assert (line.ours == "\N{EN DASH}") is (comparison.unit == "ms")
        assert comparison.unit == "bytes" or line.ratio_value is None
    assert (content.timings(emulated).rows, latency_pictures(emulated), load_chart(emulated)) == ((), (), "")
    assert memory_chart(emulated)
    assert emulated.host is not None
    assert memory_chart(replace(emulated, host=replace(emulated.host, memory_meaningful=False))) == ""


def test_missed_deadlines_are_about_time(emulated: DeviceReport) -> None:
    line = replace(emulated.comparisons[-1], unit="runs", ours=3.0, budget=0.0)
    (shown,) = content.device_lines(replace(emulated, comparisons=(line,)))
    assert (shown.ours, shown.budget) == ("\N{EN DASH}", "≤ 0 runs")


def test_the_verdict_claims_no_budget_that_was_not_judged(report: VerifyReport, host: HostFacts) -> None:
    """What passes there passes without time; elsewhere the sentence is as it was."""
    emulated = on_device(report, host=replace(host, time_meaningful=False))
    assert content.verdict_text(emulated).startswith(
        "PASS: within every budget that can be judged there (time cannot), "
    )
    neither = on_device(report, host=replace(host, time_meaningful=False, memory_meaningful=False))
    assert "(memory and time cannot)" in content.verdict_text(neither)
    assert "judged there" not in content.verdict_text(report)


def test_every_form_says_why(report: VerifyReport, emulated: DeviceReport) -> None:
    assert content.not_judged(emulated) == (WHY,)
    for page in (markdown_report, html_report):
        assert page(replace(report, devices=(emulated,))).count("says nothing about a real device") == 1


SIMULATED = HostFacts(
    system="Darwin",
    machine="arm64",
    cpu="Apple M1 of the Mac (macOS 15.5)",
    cores=8,
    memory_bytes=16 << 30,
    kind="simulator",
    model="iPhone 17, simulated on Macmini9,1",
    os_version="iOS 26.1",
    memory_meaningful=False,
    time_meaningful=False,
)


def test_a_report_says_that_a_simulator_is_a_mac() -> None:
    (device,) = on_device(recorded_report(), device="simctl:iPhone 17", host=SIMULATED).devices
    facts = dict(machine_facts(device))
    assert facts["host"] == "Darwin, arm64, Apple M1 of the Mac (macOS 15.5)"
    assert facts["device"] == "iPhone 17, simulated on Macmini9,1 · simulator"
    assert facts["system"] == "iOS 26.1"
    assert (measures_memory(device), measures_time(device)) == (False, False)
