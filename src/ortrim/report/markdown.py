"""The report as GitHub-flavoured Markdown, for `report.md` and for the step summary of a run's page."""

from collections.abc import Iterator, Sequence

from ortrim.parity.measurements import Verdict
from ortrim.report import content
from ortrim.report.content import ReportLine
from ortrim.report.figures import name_text
from ortrim.report.table import SYMBOLS, Columns, Table, columns, escaped, facts_table
from ortrim.report.terminal import side_by_side
from ortrim.verify.reports import DeviceReport, VerifyReport


def markdown_report(report: VerifyReport) -> str:
    """Return the report as Markdown that ends with a newline; no name in it can become markup."""
    head = (f"# {escaped(content.title(report))}", f"**{escaped(content.verdict_text(report))}**")
    body = _one_device(report, report.devices[0]) if len(report.devices) == 1 else _several_devices(report)
    return "\n\n".join(section for section in (*head, escaped(content.subtitle(report)), *body) if section) + "\n"


def _one_device(report: VerifyReport, device: DeviceReport) -> Iterator[str]:
    yield "## Against the budget"
    yield _comparisons((*content.library_lines(report), *content.device_lines(device)))
    yield from _failure(device, "##")
    yield from _parity(device, "##")
    yield from _library(report)
    yield f"## Latency\n\n{content.timings(device).markdown()}"
    found = (*content.device_facts(device), *content.findings(device, device.baseline))
    facts = (*content.package_facts(report), *found, *content.build_facts(report))
    yield f"## Everything else\n\n{facts_table(facts).markdown()}"


def _several_devices(report: VerifyReport) -> Iterator[str]:
    """Yield the library, then the devices beside each other, then each by itself."""
    yield "## The library against the budget"
    yield _comparisons(content.library_lines(report))
    if report.devices:
        groups = side_by_side(report)
        rows = [row for group in groups for row in (((group.title,), *group.rows) if group.title else group.rows)]
        yield f"## Devices\n\n{Table(columns=groups[0].columns, rows=rows).markdown()}"
    yield from _library(report)
    for device in report.devices:
        yield from _device(device)
    facts = (*content.package_facts(report), *content.build_facts(report))
    yield f"## Everything else\n\n{facts_table(facts).markdown()}"


def _device(device: DeviceReport) -> Iterator[str]:
    yield f"## {escaped(name_text(device.device))}"
    yield from _failure(device, "###")
    if device.failure:
        return
    yield _comparisons(content.device_lines(device))
    yield from _parity(device, "###")
    yield f"### Latency\n\n{content.timings(device).markdown()}"
    facts = (*content.device_facts(device), *content.findings(device, device.baseline))
    yield f"### The machine\n\n{facts_table(facts).markdown()}"


def _failure(device: DeviceReport, level: str) -> Iterator[str]:
    if device.failure:
        yield f"{level} {'It could not finish' if device.verdict is Verdict.FAIL else 'It was not run there'}"
        yield "\n".join(f"- {escaped(line)}" for line in content.failure_lines(device.failure))


def _parity(device: DeviceReport, level: str) -> Iterator[str]:
    text = content.parity_text(device)
    yield f"{level} Parity"
    yield escaped(text[:1].upper() + text[1:]) + "."
    yield content.parity_table(device).markdown()


def _library(report: VerifyReport) -> Iterator[str]:
    if report.models:
        yield "## Nodes that the cases execute"
        yield "\n".join(f"- {escaped(text)}" for text in content.coverage_texts(report))
    yield f"## Gates\n\n{content.gate_table(report).markdown()}"
    yield f"## Size by component\n\n{content.component_table(report).markdown()}"
    yield f"<details><summary>Largest symbols</summary>\n\n{content.symbol_table(report).markdown()}\n\n</details>"


def _comparisons(lines: Sequence[ReportLine]) -> str:
    return content.comparison_table(lines, several_models=content.several_models(lines)).markdown()


def step_summary(reports: Sequence[VerifyReport]) -> str:
    """Return reports as Markdown for a step's summary; empty without any. No name in it can become markup."""
    return "".join(f"{section}\n\n" for report in reports for section in _sections(report))


def _sections(report: VerifyReport) -> Iterator[str]:
    yield f"## {SYMBOLS[report.verdict]} {escaped(content.title(report))}"
    yield escaped(content.verdict_text(report))
    names, figures = ("", "measure", "model", "device"), ("ours", "baseline", "ratio", "budget")
    headings: Columns = (*columns("text", *names), *columns("number", *figures))
    rows = [
        (SYMBOLS[each.verdict], *(getattr(each, name) for name in (*names[1:], *figures)))
        for each in content.all_lines(report)
    ]
    yield Table(columns=headings, rows=rows).markdown()
    for device in report.devices:
        symbol = SYMBOLS[content.gravest(output.verdict for output in device.parity)]
        yield f"{symbol} Parity on {escaped(name_text(device.device))}: {escaped(content.parity_text(device))}."
    yield f"<details><summary>The whole report</summary>\n\n{markdown_report(report)}\n</details>"
