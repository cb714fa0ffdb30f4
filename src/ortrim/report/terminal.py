"""The report as compact tables for the terminal and for plain logs.

- Several devices beside each other: a row for each quantity, a column for each device.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ortrim.parity.measurements import CaseTiming, RunnerResult, Verdict
from ortrim.report.content import (
    SYMBOLS,
    ReportLine,
    components,
    counts_instructions,
    device_lines,
    failure_lines,
    findings,
    gates,
    library_lines,
    measures_memory,
    measures_time,
    missed_text,
)
from ortrim.report.figures import NONE, bytes_text, instructions_text, ms_text, name_text, plain_table, shortened
from ortrim.report.summary import coverage_texts, parity_text, parity_verdict, subtitle, title, verdict_text
from ortrim.verify.reports import DeviceReport, VerifyReport

LABELS: Final = (
    "peak RSS", "peak after load", "load", "p50", "p99", "jitter", "missed", "instructions", "least memory",
)  # fmt: skip
"""The figures of each model."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a device says of one quantity; with a verdict when it was judged."""

    text: str
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class ReportRow:
    """One quantity on each device."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows that belong together: those of one model under its name, or, without a heading, of the devices as such."""

    heading: str = ""
    rows: tuple[ReportRow, ...]


def device_names(report: VerifyReport) -> tuple[str, ...]:
    """Return the names of the devices, which head the columns."""
    return tuple(name_text(device.device) for device in report.devices)


def side_by_side(report: VerifyReport) -> tuple[Group, ...]:
    """Return the rows; a quantity that no device has is left out, and what means nothing on one is a dash there.

    Times are those of the case that takes longest, the same on every device, so that columns can be compared.
    """
    devices = report.devices
    models = dict.fromkeys(run.model for device in devices for run in device.runs)
    kinds = ReportRow(label="kind", cells=tuple(Cell(text=_kind(device)) for device in devices))
    measures = ReportRow(label="measures", cells=tuple(Cell(text=_measures(device)) for device in devices))
    parity = ReportRow(label="parity", cells=tuple(map(_parity, devices)))
    verdict = ReportRow(label="verdict", cells=tuple(map(_side_by_side_verdict, devices)))
    groups = (_of_model(model, devices) for model in models)
    return (Group(rows=(kinds, measures, parity)), *(group for group in groups if group.rows), Group(rows=(verdict,)))


def _kind(device: DeviceReport) -> str:
    return (device.host.kind or NONE) if device.host else NONE


def _measures(device: DeviceReport) -> str:
    if device.host is None:
        return NONE
    counts = ("instructions", counts_instructions(device))
    named = (("parity", True), ("memory", measures_memory(device)), ("time", measures_time(device)), counts)
    return ", ".join(name for name, measured in named if measured)


def _parity(device: DeviceReport) -> Cell:
    if not device.parity:
        return Cell(text=NONE)
    judged = [output.verdict for output in device.parity if output.verdict is not Verdict.NOT_JUDGED]
    said = f"{judged.count(Verdict.PASS)} of {len(judged)}" if judged else "not judged"
    return Cell(text=said, verdict=parity_verdict(device))


def _side_by_side_verdict(device: DeviceReport) -> Cell:
    return Cell(text=device.failure.code if device.failure else device.verdict.value, verdict=device.verdict)


def _of_model(model: str, devices: tuple[DeviceReport, ...]) -> Group:
    """Return the figures of one model."""
    cases = tuple(dict.fromkeys(case.case for device in devices for case in _cases(device, model)))
    longest = max(cases, key=lambda case: _longest(devices, model, case), default="")
    heading = name_text(model) + (f"; times of {name_text(longest)}" if len(cases) > 1 else "")
    columns = [_figures(device, model, longest) for device in devices]
    rows = tuple(
        ReportRow(label=label, cells=tuple(Cell(text=text) for text in texts))
        for label, texts in zip(LABELS, zip(*columns, strict=True), strict=True)
        if any(text != NONE for text in texts)
    )
    return Group(heading=heading, rows=rows)


def _figures(device: DeviceReport, model: str, case: str) -> tuple[str, ...]:
    """Return what a device measured of one model, in the order of `LABELS`."""
    run = _run(device, model)
    times = (*_time_figures(device, run, case), _instructions(run, case))
    return (*_memory_figures(device, run), *times, _least_memory(device, model))


def _memory_figures(device: DeviceReport, run: RunnerResult | None) -> tuple[str, str]:
    if run is None or not measures_memory(device):
        return NONE, NONE
    after = run.inference_peak_rss_bytes
    return bytes_text(run.peak_rss_bytes.p50), bytes_text(after.p50 if after else None)


def _time_figures(device: DeviceReport, run: RunnerResult | None, name: str) -> tuple[str, str, str, str, str]:
    if run is None or not measures_time(device):
        return NONE, NONE, NONE, NONE, NONE
    load = ms_text(run.load_ms.p50)
    case = next((case for case in run.cases if case.case == name), None)
    if case is None:
        return load, NONE, NONE, NONE, NONE
    latency = case.inference_ms
    return load, ms_text(latency.p50), ms_text(latency.p99), ms_text(case.jitter_ms), missed_text(case)


def _instructions(run: RunnerResult | None, name: str) -> str:
    found = [case for case in run.cases if case.case == name] if run else []
    counted = found[0].instructions if found else None
    return instructions_text(counted.p50) if counted else NONE


def _least_memory(device: DeviceReport, model: str) -> str:
    return next((f"{least.enough_mib} MiB" for least in device.least_memory if least.model == model), NONE)


def _run(device: DeviceReport, model: str) -> RunnerResult | None:
    return next((run for run in device.runs if (run.library, run.model) == ("ours", model)), None)


def _cases(device: DeviceReport, model: str) -> tuple[CaseTiming, ...]:
    run = _run(device, model)
    return run.cases if run and (measures_time(device) or counts_instructions(device)) else ()


def _longest(devices: tuple[DeviceReport, ...], model: str, name: str) -> float:
    """Return the largest median of a case; not a number, which only a forged report holds, counts as nothing."""
    found = (case.inference_ms.p50 for device in devices for case in _cases(device, model) if case.case == name)
    return max((value for value in found if not math.isnan(value)), default=0.0)


STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_JUDGED: "dim",
}
LARGEST: Final = 5
BAR_CELLS: Final = 24
NAME_CELLS: Final = 30
COLUMN_CELLS: Final = 15
BESIDE: Final = 4
"""How many devices stand beside each other in 80 columns; more are further blocks."""


def terminal_report(report: VerifyReport) -> RenderableType:
    """Return a report for `Console.render`; it fits 80 columns."""
    head = (Text(title(report), "bold"), Text(subtitle(report), "dim"))
    blocks = _one_device(report, report.devices[0]) if len(report.devices) == 1 else _several_devices(report)
    spaced = (part for block in blocks for part in (Text(), block))
    return Stack(*head, *spaced, Text(), Text(verdict_text(report), STYLES[report.verdict]))


def _one_device(report: VerifyReport, device: DeviceReport) -> Iterator[RenderableType]:
    yield _comparisons((*library_lines(report), *device_lines(device)))
    yield _statements((*_of_device(device, device.baseline), *_of_library(report)))
    yield _sizes(report)


def _several_devices(report: VerifyReport) -> Iterator[RenderableType]:
    """Lay out the library, then the devices beside each other, then each by itself."""
    yield _comparisons(library_lines(report))
    yield _statements(tuple(_of_library(report)))
    yield _sizes(report)
    for start in range(0, len(report.devices), BESIDE):
        yield _beside(device_names(report), side_by_side(report), slice(start, start + BESIDE))
    for device in report.devices:
        yield _section(device, report.baseline)


def _section(device: DeviceReport, baseline: str) -> RenderableType:
    heading = _verdict(device.verdict, name_text(device.device))
    heading.stylize("bold")
    lines = device_lines(device)
    table = (Text(), _comparisons(lines), Text()) if lines else ()
    return Stack(heading, *table, _statements(tuple(_of_device(device, baseline))))


def _comparisons(shown: Sequence[ReportLine]) -> Table:
    table = plain_table("measure", "ours", "baseline", "ratio", "budget", "verdict", left=("verdict",))
    models = dict.fromkeys(line.model for line in shown)
    for model in models:
        if model and len(models) > 1:
            table.add_section()
            table.add_row(Text(shortened(model, NAME_CELLS), "bold"))
        for line in shown:
            if line.model == model:
                table.add_row(*_cells(line))
    return table


def _cells(line: ReportLine) -> tuple[Text, ...]:
    plain = (line.measure, line.ours, line.baseline, line.ratio, line.budget)
    return (*map(Text, plain), _verdict(line.verdict, line.verdict.value))


def _beside(names: Sequence[str], groups: Sequence[Group], shown: slice) -> RenderableType:
    """Lay out some of the devices, each in a column; the columns of all groups are equally wide."""
    tables: list[RenderableType] = []
    for number, group in enumerate(groups):
        table = _columns(names[shown], group.heading, head=number == 0)
        for row in group.rows:
            table.add_row(Text(row.label), *map(_cell, row.cells[shown]))
        tables += [Text(), table] if group.heading else [table]
    return Stack(*tables)


def _columns(names: Sequence[str], heading: str, *, head: bool) -> Table:
    table = Table(
        title=Text(heading, "bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        show_header=head,
        padding=0,
        header_style="bold",
    )
    table.add_column("devices", no_wrap=True, width=COLUMN_CELLS)
    for name in names:
        # A name breaks after its kind, where else it would break anywhere.
        text = shortened(name, 2 * COLUMN_CELLS).replace(":", ":\n", 1)
        table.add_column(Text(text), overflow="fold", width=COLUMN_CELLS)
    return table


def _cell(cell: Cell) -> Text:
    return _verdict(cell.verdict, cell.text) if cell.verdict else Text(cell.text)


def _statements(rows: Sequence[tuple[str, Text]]) -> Table:
    """Lay out labels, each with text that wraps beside it; a label that repeats is written once."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    before = ""
    for label, text in rows:
        grid.add_row(Text("" if label == before else label, "bold"), text)
        before = label
    return grid


def _of_library(report: VerifyReport) -> Iterator[tuple[str, Text]]:
    yield from (("cases", Text(text)) for text in coverage_texts(report))
    for name, verdict, detail in gates(report):
        yield "gates", _verdict(verdict, f"{name}: {detail}")


def _of_device(device: DeviceReport, baseline: str) -> Iterator[tuple[str, Text]]:
    """Yield parity, or why there is none, and what else there is to say beside the report's `baseline`."""
    if device.failure:
        label = "failed" if device.verdict is Verdict.FAIL else "not run"
        yield label, Text("\n".join(failure_lines(device.failure)), STYLES[device.verdict])
        return
    yield "parity", _verdict(parity_verdict(device), parity_text(device))
    yield from ((label, Text(text)) for label, text in findings(device, baseline))


def _sizes(report: VerifyReport) -> Table:
    """Lay out the largest components, each with a bar."""
    shown = components(report)[:LARGEST]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_row(Text("by part", "bold"), Text(bytes_text(report.size.file_bytes)), Text("100 %"), Text())
    for part in shown:
        bar = ProgressBar(total=shown[0].share or 1.0, completed=part.share, width=BAR_CELLS, complete_style="cyan")
        grid.add_row(Text(f"  {shortened(part.name, NAME_CELLS)}"), Text(part.size), Text(part.share_text), bar)
    return grid


def _verdict(verdict: Verdict, text: str) -> Text:
    return Text.assemble((SYMBOLS[verdict], STYLES[verdict]), " ", text)
