import io
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.console import Console
from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.report.terminal import terminal_report

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
    """Lines of several models stand under the model's name, the library's own lines first."""
    other = tuple(replace(line, model="magika") for line in report.comparisons if line.model)
    lines = rendered(replace(report, comparisons=other + report.comparisons), 80).splitlines()
    assert lines.index("magika") < lines.index("silero_vad")
    assert next(n for n, line in enumerate(lines) if line.startswith("library")) < lines.index("magika")


def test_hostile_and_long_names_do_no_harm(ugly_report: VerifyReport) -> None:
    """Names are cut, control characters replaced, markup shown as it is, and no line is too wide."""
    text = rendered(ugly_report, 80)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "nan" in text
    assert len(text.splitlines()) < 70


def test_the_last_lines_name_what_failed(ugly_report: VerifyReport) -> None:
    """The verdict names the missed budget, the output and the gate."""
    verdict = " ".join(rendered(ugly_report, 400).splitlines()[-1].split())
    assert verdict.startswith("FAIL: peak RSS of encoder_very")
    assert "budget ≤ 40 %" in verdict
    assert "2 outputs out of parity" in verdict
    assert "<b>RWE</b>" in verdict


def test_a_failure_without_a_cause_in_the_tables_is_still_a_failure(report: VerifyReport) -> None:
    """The overall verdict is never contradicted."""
    assert rendered(replace(report, verdict=Verdict.FAIL), 80).splitlines()[-1] == "FAIL: see the tables"


def test_a_report_of_nothing_is_shown(empty_report: VerifyReport) -> None:
    """Without cases, baseline, components or gates the report says so and does not fail."""
    text = rendered(empty_report, 80)
    assert "no outputs were compared" in text
    assert text.endswith("NOT JUDGED\n")


def test_an_inconclusive_report_says_why(report: VerifyReport) -> None:
    """A run too noisy to judge names the measures that were inside its spread."""
    last = rendered(replace(report, verdict=Verdict.INCONCLUSIVE), 120).splitlines()[-1]
    assert last == "INCONCLUSIVE: the differences lie inside the run's own spread (latency p99)"
