"""The report as GitHub-flavoured Markdown, for `report.md` and for the step summary.

- What GitHub shows on a run's page: the table of sizes, memory, times and parity, and the whole reports folded.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ortrim.parity.measurements import Verdict
from ortrim.report.content import (
    SYMBOLS,
    ReportLine,
    agreements,
    all_lines,
    build_facts,
    components,
    device_facts,
    device_lines,
    failure_lines,
    findings,
    gates,
    gravest,
    library_lines,
    package_facts,
    several_models,
    symbols,
    timings,
)
from ortrim.report.figures import escaped, name_text, table
from ortrim.report.summary import coverage_texts, parity_text, subtitle, title, verdict_text
from ortrim.report.terminal import Cell, Group, device_names, side_by_side
from ortrim.verify.reports import DeviceReport, VerifyReport

Facts = Iterable[tuple[str, str]]


def markdown_report(report: VerifyReport) -> str:
    """Return the report as Markdown that ends with a newline; no name in it can become markup."""
    head = (f"# {escaped(title(report))}", f"**{escaped(verdict_text(report))}**", escaped(subtitle(report)))
    body = _one_device(report, report.devices[0]) if len(report.devices) == 1 else _several_devices(report)
    return "\n\n".join(section for section in (*head, *body) if section) + "\n"


def _one_device(report: VerifyReport, device: DeviceReport) -> Iterator[str]:
    yield "## Against the budget"
    yield _comparisons((*library_lines(report), *device_lines(device)))
    yield from _failure(device, "##")
    yield from _parity(device, "##")
    yield from _library(report)
    yield from _latency(device, "##")
    yield "## Everything else"
    yield _facts(
        (*package_facts(report), *device_facts(device), *findings(device, device.baseline), *build_facts(report))
    )


def _several_devices(report: VerifyReport) -> Iterator[str]:
    """Yield the library, then the devices beside each other, then each by itself."""
    yield "## The library against the budget"
    yield _comparisons(library_lines(report))
    if report.devices:
        yield "## Devices"
        yield _beside(report)
    yield from _library(report)
    for device in report.devices:
        yield from _device(device)
    yield "## Everything else"
    yield _facts((*package_facts(report), *build_facts(report)))


def _device(device: DeviceReport) -> Iterator[str]:
    yield f"## {escaped(name_text(device.device))}"
    yield from _failure(device, "###")
    if device.failure:
        return
    yield _comparisons(device_lines(device))
    yield from _parity(device, "###")
    yield from _latency(device, "###")
    yield "### The machine"
    yield _facts((*device_facts(device), *findings(device, device.baseline)))


def _failure(device: DeviceReport, level: str) -> Iterator[str]:
    if device.failure:
        yield f"{level} {'It could not finish' if device.verdict is Verdict.FAIL else 'It was not run there'}"
        yield "\n".join(f"- {escaped(line)}" for line in failure_lines(device.failure))


def _parity(device: DeviceReport, level: str) -> Iterator[str]:
    text = parity_text(device)
    yield f"{level} Parity"
    yield escaped(text[:1].upper() + text[1:]) + "."
    yield _agreements(device)


def _library(report: VerifyReport) -> Iterator[str]:
    if report.models:
        yield "## Nodes that the cases execute"
        yield "\n".join(f"- {escaped(text)}" for text in coverage_texts(report))
    yield "## Gates"
    yield table(("gate", "verdict", "detail"), ((escaped(n), _verdict(v), escaped(d)) for n, v, d in gates(report)))
    yield "## Size by component"
    yield _sizes(report)


def _latency(device: DeviceReport, level: str) -> Iterator[str]:
    yield f"{level} Latency"
    yield _timings(device)


def _facts(facts: Facts) -> str:
    return table(("what", "value"), ((label, escaped(value)) for label, value in facts))


def _comparisons(lines: Sequence[ReportLine]) -> str:
    several = several_models(lines)
    headings = ("measure", *(("model",) if several else ()), "ours", "baseline", "ratio", "budget", "verdict")
    rows = (_cells(line, several=several) for line in lines)
    return table(headings, rows, right=range(len(headings) - 5, len(headings) - 1))


def _cells(line: ReportLine, *, several: bool) -> tuple[str, ...]:
    names = (line.measure, line.model) if several else (line.measure,)
    return (*map(escaped, names), line.ours, line.baseline, line.ratio, line.budget, _verdict(line.verdict))


def _beside(report: VerifyReport) -> str:
    names = device_names(report)
    rows = (row for group in side_by_side(report) for row in _rows(group, len(names)))
    return table(("device", *map(escaped, names)), rows, right=range(1, len(names) + 1))


def _rows(group: Group, columns: int) -> Iterator[tuple[str, ...]]:
    if group.heading:
        yield (f"**{escaped(group.heading)}**", *([""] * columns))
    for row in group.rows:
        yield (escaped(row.label), *map(_cell, row.cells))


def _cell(cell: Cell) -> str:
    symbol = f"{SYMBOLS[cell.verdict]} " if cell.verdict else ""
    return symbol + escaped(cell.text)


def _agreements(device: DeviceReport) -> str:
    headings = (
        "model",
        "case",
        "output",
        "type",
        "difference",
        "RMS",
        "same graph",
        "cosine",
        "top-1 or IoU",
        "verdict",
    )
    rows = (
        (
            *map(escaped, (row.model, row.case, row.output, row.kind)),
            *(row.difference, row.rms, row.same_graph, row.cosine, row.classes),
            " ".join(filter(None, (_verdict(row.verdict), escaped(row.reason)))),
        )
        for row in agreements(device)
    )
    return table(headings, rows, right=range(4, 9))


def _sizes(report: VerifyReport) -> str:
    parts = ((escaped(part.name), part.size, part.share_text) for part in components(report))
    largest = ((escaped(part.name), escaped(part.component), part.size, part.share_text) for part in symbols(report))
    symbol_table = table(("symbol", "component", "size", "share"), largest, right=range(2, 4))
    folded = f"<details><summary>Largest symbols</summary>\n\n{symbol_table}\n\n</details>" if symbol_table else ""
    return "\n\n".join(filter(None, (table(("component", "size", "share"), parts, right=range(1, 3)), folded)))


def _timings(device: DeviceReport) -> str:
    figures = ("runs", "first run", "p50", "p90", "p99", "input + inference + output", "jitter", "missed")
    headings = ("model", "case", "library", *figures)
    rows = (
        (
            *map(escaped, (row.model, row.case, row.library)),
            *(str(row.runs), row.first, row.p50, row.p90, row.p99, row.split, row.jitter, row.missed),
        )
        for row in timings(device)
    )
    return table(headings, rows, right=range(3, len(headings)))


def _verdict(verdict: Verdict) -> str:
    return f"{SYMBOLS[verdict]} {verdict.value}"


HEADINGS: Final = ("", "measure", "model", "device", "ours", "baseline", "ratio", "budget")


def step_summary(reports: Sequence[VerifyReport]) -> str:
    """Return reports as Markdown for a step's summary; empty without any. No name in it can become markup."""
    return "".join(f"{section}\n\n" for report in reports for section in _sections(report))


def _sections(report: VerifyReport) -> Iterator[str]:
    yield f"## {SYMBOLS[report.verdict]} {escaped(title(report))}"
    yield escaped(verdict_text(report))
    yield table(HEADINGS, (_step_summary_cells(line) for line in all_lines(report)), right=range(4, 8))
    for device in report.devices:
        symbol = SYMBOLS[gravest(output.verdict for output in device.parity)]
        yield f"{symbol} Parity on {escaped(name_text(device.device))}: {escaped(parity_text(device))}."
    yield f"<details><summary>The whole report</summary>\n\n{markdown_report(report)}\n</details>"


def _step_summary_cells(line: ReportLine) -> tuple[str, ...]:
    names = (line.measure, line.model, line.device)
    return (SYMBOLS[line.verdict], *map(escaped, names), line.ours, line.baseline, line.ratio, line.budget)
