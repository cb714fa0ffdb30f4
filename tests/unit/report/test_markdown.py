import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.plan import CompiledUnits
from ortrim.parity.measurements import Verdict
from ortrim.report.html import html_report, markdown_report
from ortrim.report.table import escaped
from ortrim.report.write import step_summary
from ortrim.verify.reports import VerifyReport
from sample_reports import four_devices, on_device, recorded_report

DATA = Path(__file__).parent / "data"


def columns(line: str) -> int:
    """Return the number of cells in a table's line; an escaped bar is not a boundary."""
    return len(re.findall(r"(?<!\\)\|", line)) - 1


def test_the_demo_report_looks_like_this(report: VerifyReport) -> None:
    assert markdown_report(report) == (DATA / "report.md").read_text()


def test_what_was_compiled_is_counted(report: VerifyReport) -> None:
    """A pruned build says of how many files; one without an index says that it took all."""
    pruned = replace(report, units=CompiledUnits(compiled=177, total=610))
    assert "| compiled | 177 of 610 files |" in markdown_report(pruned)
    assert "| compiled | every file |" in markdown_report(replace(report, units=None))


def test_what_was_damaged_in_the_cache_is_reported(report: VerifyReport) -> None:
    damaged = replace(report, damaged_cache=("builds/1a2b: a.so has changed; it was removed and is made again",))
    assert "| damaged-cache | builds/1a2b: a.so has changed; it was removed and is made again |" in markdown_report(
        damaged
    )
    assert "builds/1a2b: a.so has changed" in html_report(damaged)


def test_every_table_is_whole_whatever_the_names_are(ugly_reports: tuple[VerifyReport, ...]) -> None:
    """A bar, a line end or a backtick in a name breaks no table: each has rows as wide as its heading."""
    for report in ugly_reports:
        blocks = [block.splitlines() for block in markdown_report(report).split("\n\n") if block.startswith("|")]
        assert len(blocks) >= 6
        for block in blocks:
            assert {columns(line) for line in block} == {columns(block[0])}


def test_names_do_not_become_markup(ugly_reports: tuple[VerifyReport, ...]) -> None:
    for report in ugly_reports:
        text = re.sub("</?(details|summary)>", "", markdown_report(report))
        assert "<" not in text
        assert "](" not in text.replace("\\](", "")
        assert "@you" not in text
        assert "https://" not in text
        assert "\x1b" not in text


def test_a_report_of_nothing_is_written(empty_report: VerifyReport) -> None:
    text = markdown_report(empty_report)
    assert "No outputs were compared." in text
    assert text.count("None.") >= 4


@given(st.text())
def test_escaped_text_is_one_line_without_live_characters(text: str) -> None:
    """What is left of any text holds no HTML, no unescaped Markdown and no line end."""
    shown = escaped(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~]", shown)
    assert not set("<>\n\r@") & set(shown)


def test_four_devices_look_like_this(side_report: VerifyReport) -> None:
    assert markdown_report(side_report) == (DATA / "devices.md").read_text()


def test_a_device_that_failed_alone(report: VerifyReport, side_report: VerifyReport) -> None:
    text = markdown_report(replace(report, devices=side_report.devices[3:]))
    assert "## It could not finish\n\n- error: device-lost\n- ssh:pi&#64;board: the connection broke\n" in text
    assert "## Devices" not in text


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
