from dataclasses import replace

import pytest

from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.core.serialization import from_json, to_json
from ortrim.report.charts import load_chart, memory_chart
from ortrim.report.content import facts, lines, timings
from ortrim.report.html import html_report
from ortrim.report.latency import latency_pictures
from ortrim.report.machine import machine_facts, not_judged
from ortrim.report.markdown import markdown_report
from ortrim.report.summary import verdict_text

WHY = "time: what it takes on qemu-system:cortex-a53 says nothing of a real device"


@pytest.fixture
def emulated(report: VerifyReport) -> VerifyReport:
    """Return the report of an emulated machine, on which time means nothing."""
    host = replace(
        report.host,
        kind="vm",
        model="qemu 7.2.22 virt, cortex-a53, 256 MiB",
        os_version="Linux 6.12.107",
        abi="aarch64",
        fingerprint="libc6 2.41-12",
        page_bytes=4096,
        cpu_features=("asimd", "fp"),
        time_meaningful=False,
    )
    comparisons = tuple(
        replace(line, verdict=Verdict.NOT_JUDGED, reason=WHY) if line.unit == "ms" else line
        for line in report.comparisons
    )
    return replace(report, device="qemu-system:cortex-a53", host=host, comparisons=comparisons, verdict=Verdict.PASS)


def test_an_old_report_reads_as_it_did(report: VerifyReport) -> None:
    """A report from before devices were described says nothing of them, and hides nothing."""
    assert machine_facts(report) == ()
    assert report.host.kind is None
    assert (report.host.memory_meaningful, report.host.time_meaningful) == (True, True)
    assert timings(report)
    assert from_json(VerifyReport, to_json(report)) == report


def test_what_is_known_of_a_machine_is_told(emulated: VerifyReport) -> None:
    """Device, system, pages and features each have a line, and so has what was not judged."""
    told = dict(facts(emulated))
    assert told["device"] == "qemu 7.2.22 virt, cortex-a53, 256 MiB · vm"
    assert told["system"] == "Linux 6.12.107 · aarch64"
    assert told["pages"] == "4096 bytes"
    assert told["processor's features"] == "asimd fp"
    assert told["not judged"] == WHY
    assert "battery" not in told


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0, 0, "none → none"),
        (0, 3, "none → severe"),
        (None, 1, "\N{EN DASH} → light"),
        (7, -1, "7 → -1"),
    ],
)
def test_heat_is_told(report: VerifyReport, before: int | None, after: int | None, text: str) -> None:
    """Android's states have names; others are numbers."""
    phone = replace(report.host, thermal_before=before, thermal_after=after, battery_celsius=31.25, api_level=34)
    told = dict(machine_facts(replace(report, host=phone)))
    assert told == {"system": "API level 34", "heat, before and after": text, "battery": "31.2 °C"}


def test_figures_that_mean_nothing_are_not_shown(emulated: VerifyReport) -> None:
    """Times have lines with their budgets and no figures; memory and sizes have theirs; no picture is drawn of time."""
    for line, comparison in zip(lines(emulated), emulated.comparisons, strict=True):
        assert (line.ours == "\N{EN DASH}") is (comparison.unit == "ms")
        assert comparison.unit == "bytes" or line.ratio_value is None
    assert (timings(emulated), latency_pictures(emulated), load_chart(emulated)) == ((), (), "")
    assert memory_chart(emulated)
    nothing = replace(emulated, host=replace(emulated.host, memory_meaningful=False))
    assert memory_chart(nothing) == ""


def test_the_verdict_claims_no_budget_that_was_not_judged(emulated: VerifyReport, report: VerifyReport) -> None:
    """What passes there passes without time; elsewhere the sentence is as it was."""
    assert verdict_text(emulated).startswith("PASS: within every budget that can be judged there (time cannot), ")
    neither = replace(emulated, host=replace(emulated.host, memory_meaningful=False))
    assert "(memory and time cannot)" in verdict_text(neither)
    assert "judged there" not in verdict_text(replace(report, verdict=Verdict.PASS))


def test_every_form_says_why(emulated: VerifyReport) -> None:
    """Markdown and HTML hold the reason, once."""
    assert not_judged(emulated) == (WHY,)
    for page in (markdown_report(emulated), html_report(emulated)):
        assert page.count("says nothing of a real device") == 1
