"""What GitHub shows on a run's page: the table of sizes, memory, times and parity, and the whole reports folded."""

from collections.abc import Iterator, Sequence
from typing import Final

from ortrim.core.measurements import Verdict
from ortrim.core.reports import DeviceReport, VerifyReport
from ortrim.report.lines import SYMBOLS, Line, device_lines, library_lines
from ortrim.report.markdown import markdown_report
from ortrim.report.markdown_text import escaped, table
from ortrim.report.names import name_text
from ortrim.report.summary import parity_text, title, verdict_text

HEADINGS: Final = ("", "measure", "model", "device", "ours", "baseline", "ratio", "budget")


def step_summary(reports: Sequence[VerifyReport]) -> str:
    """Return reports as Markdown for a step's summary; empty without any. No name in it can become markup."""
    return "".join(f"{section}\n\n" for report in reports for section in _sections(report))


def _sections(report: VerifyReport) -> Iterator[str]:
    yield f"## {SYMBOLS[report.verdict]} {escaped(title(report))}"
    yield escaped(verdict_text(report))
    yield table(HEADINGS, (_cells(line) for line in _lines(report)), right=range(4, 8))
    for device in report.devices:
        yield f"{_parity_symbol(device)} Parity on {escaped(name_text(device.device))}: {escaped(parity_text(device))}."
    yield f"<details><summary>The whole report</summary>\n\n{markdown_report(report)}\n</details>"


def _lines(report: VerifyReport) -> Iterator[Line]:
    yield from library_lines(report)
    for device in report.devices:
        yield from device_lines(device)


def _cells(line: Line) -> tuple[str, ...]:
    names = (line.measure, line.model, line.device)
    return (SYMBOLS[line.verdict], *map(escaped, names), line.ours, line.baseline, line.ratio, line.budget)


def _parity_symbol(device: DeviceReport) -> str:
    verdicts = {output.verdict for output in device.parity}
    ordered = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)
    return SYMBOLS[next((verdict for verdict in ordered if verdict in verdicts), Verdict.NOT_JUDGED)]
