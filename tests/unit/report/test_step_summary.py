"""The summary on a run's page: one table of what was measured, parity beside it."""

from dataclasses import replace

from ortrim.parity.measurements import Verdict
from ortrim.report.write import step_summary
from sample_reports import four_devices, on_device, recorded_report


def test_size_memory_time_and_parity_are_on_one_page() -> None:
    text = step_summary((recorded_report(),))
    assert text.startswith("## ✓ silero-vad for linux-x64\n")
    for cell in ("| ✓ | library |", "| ✓ | peak RSS | silero\\_vad | host |", "| ✓ | latency p50 |"):
        assert cell in text
    assert "✓ Parity on host: 6 outputs of 3 cases agree" in text
    assert text.count("<details><summary>The whole report</summary>") == 1


def test_several_reports_follow_each_other() -> None:
    text = step_summary((recorded_report(), replace(recorded_report(), target="linux-arm64")))
    assert [line for line in text.splitlines() if line.startswith("## ") and " for " in line] == [
        "## ✓ silero-vad for linux-x64",
        "## ✓ silero-vad for linux-arm64",
    ]
    assert step_summary(()) == ""


def test_every_device_has_its_rows_and_its_parity() -> None:
    report = four_devices()
    text = step_summary((report,))
    assert sum("Parity on " in line for line in text.splitlines()) == len(report.devices)


def test_lost_parity_is_marked() -> None:
    report = recorded_report()
    (device,) = report.devices
    failed = tuple(replace(output, verdict=Verdict.FAIL) for output in device.parity)
    text = step_summary((on_device(replace(report, verdict=Verdict.FAIL), parity=failed),))
    assert text.startswith("## ✗ ")
    assert "✗ Parity on host" in text


def test_names_stay_names() -> None:
    """A model or device cannot put markup, a mention or an address on the page."""
    report = on_device(recorded_report(), device="<img src=x>|@everyone https://example.com")
    head = step_summary((replace(report, name="[a](b) `c`"),)).partition("<details>")[0]
    assert "<img" not in head
    assert "@everyone" not in head
    assert "https://" not in head
    assert "[a](b)" not in head
