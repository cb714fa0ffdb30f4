"""The report, and what the steps of a preparation did, as tables for the terminal and for plain logs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from ortrim.base.console import printable
from ortrim.parity.measurements import CaseTiming, RunnerResult, Verdict
from ortrim.report import content
from ortrim.report.content import ReportLine, measures_memory, measures_time
from ortrim.report.figures import NONE, bytes_text, difference_text, instructions_text, ms_text, name_text, shortened
from ortrim.report.table import STYLES, Cell, Columns, Judged, Table, columns
from ortrim.steps.report import ModelCounts, PreparationReport, StepReport
from ortrim.verify.reports import DeviceReport, VerifyReport

LABELS: Final = (
    "peak RSS", "peak after load", "load", "p50", "p99", "jitter", "missed", "instructions", "least memory",
)  # fmt: skip
"""The figures of each model."""
LARGEST: Final = 5
BAR_CELLS: Final = 24
NAME_CELLS: Final = 30
COLUMN_CELLS: Final = 15
DEVICES_ABREAST: Final = 4
"""How many devices stand beside each other in 80 columns; more are further blocks."""
MOST_NOTES: Final = 4


def device_names(report: VerifyReport) -> tuple[str, ...]:
    """Return the names of the devices, which head the columns."""
    return tuple(name_text(device.device) for device in report.devices)


def side_by_side(report: VerifyReport) -> tuple[Table, ...]:
    """Return a table for all models, one for each model under its name, and one for the verdict: a column for a device.

    A quantity that no device has is left out, and what means nothing on one is a dash there. Times are those of the
    case that takes longest, the same on every device, so that columns can be compared.
    """
    devices = report.devices
    headings = (*columns("label", "device"), *columns("number", *device_names(report)))

    def table(rows: Sequence[Sequence[Cell]], title: str = "") -> Table:
        return Table(columns=headings, rows=rows, title=title)

    kinds = ("kind", *((device.host.kind or NONE) if device.host else NONE for device in devices))
    about = (kinds, ("measures", *map(_measures, devices)), ("parity", *map(_parity, devices)))
    ends = (Judged(each.verdict, each.failure.code if each.failure else "") for each in devices)
    models = dict.fromkeys(run.model for device in devices for run in device.runs)
    own = (table(rows, heading) for heading, rows in (_of_model(model, devices) for model in models) if rows)
    return (table(about), *own, table([("verdict", *ends)]))


def _measures(device: DeviceReport) -> str:
    if device.host is None:
        return NONE
    counts = ("instructions", content.counts_instructions(device))
    named = (("parity", True), ("memory", measures_memory(device)), ("time", measures_time(device)), counts)
    return ", ".join(name for name, measured in named if measured)


def _parity(device: DeviceReport) -> Cell:
    if not device.parity:
        return NONE
    judged = [output.verdict for output in device.parity if output.verdict is not Verdict.NOT_JUDGED]
    said = f"{judged.count(Verdict.PASS)} of {len(judged)}" if judged else "not judged"
    return Judged(content.parity_verdict(device), said)


def _of_model(model: str, devices: tuple[DeviceReport, ...]) -> tuple[str, list[tuple[str, ...]]]:
    """Return the heading of one model, and the figures that some device has."""
    cases = tuple(dict.fromkeys(case.case for device in devices for case in _cases(device, model)))
    medians = {
        name: [case.inference_ms.p50 for device in devices for case in _cases(device, model) if case.case == name]
        for name in cases
    }
    # Not a number, which only a forged report holds, counts as nothing.
    longest = max(cases, key=lambda name: max(0.0 if math.isnan(each) else each for each in medians[name]), default="")
    heading = name_text(model) + (f"; times of {name_text(longest)}" if len(cases) > 1 else "")
    rows = zip(LABELS, *(_figures(device, model, longest) for device in devices), strict=True)
    return heading, [row for row in rows if set(row[1:]) != {NONE}]


def _figures(device: DeviceReport, model: str, name: str) -> tuple[str, ...]:
    """Return what a device measured of one model and a case, in the order of `LABELS`."""
    run = _run(device, model)
    case = next((case for case in run.cases if case.case == name), None) if run else None
    timed, memory, load, times = run if measures_time(device) else None, (NONE, NONE), NONE, (NONE,) * 4
    if run and measures_memory(device):
        after = run.inference_peak_rss_bytes
        memory = bytes_text(run.peak_rss_bytes.p50), bytes_text(after.p50 if after else None)
    if timed:
        load = ms_text(timed.load_ms.p50)
    if timed and case:
        latency = case.inference_ms
        times = ms_text(latency.p50), ms_text(latency.p99), ms_text(case.jitter_ms), content.missed_text(case)
    counted = instructions_text(case.instructions.p50) if case and case.instructions else NONE
    least = next((f"{least.enough_mib} MiB" for least in device.least_memory if least.model == model), NONE)
    return (*memory, load, *times, counted, least)


def _run(device: DeviceReport, model: str) -> RunnerResult | None:
    return next((run for run in device.runs if (run.library, run.model) == ("ours", model)), None)


def _cases(device: DeviceReport, model: str) -> tuple[CaseTiming, ...]:
    run = _run(device, model)
    return run.cases if run and (measures_time(device) or content.counts_instructions(device)) else ()


def terminal_report(report: VerifyReport) -> RenderableType:
    """Return a report for `Console.render`; it fits 80 columns."""
    head = (Text(content.title(report), "bold"), Text(content.subtitle(report), "dim"))
    blocks = _one_device(report, report.devices[0]) if len(report.devices) == 1 else _several_devices(report)
    spaced = (part for block in blocks for part in (Text(), block))
    return Group(*head, *spaced, Text(), Text(content.verdict_text(report), STYLES[report.verdict]))


def _one_device(report: VerifyReport, device: DeviceReport) -> Iterator[RenderableType]:
    yield _comparisons((*content.library_lines(report), *content.device_lines(device)))
    yield _statements((*_of_device(device, device.baseline), *_of_library(report)))
    yield _sizes(report)


def _several_devices(report: VerifyReport) -> Iterator[RenderableType]:
    yield _comparisons(content.library_lines(report))
    yield _statements(_of_library(report))
    yield _sizes(report)
    for start in range(0, len(report.devices), DEVICES_ABREAST):
        yield _beside(device_names(report), side_by_side(report), slice(start, start + DEVICES_ABREAST))
    for device in report.devices:
        heading = Judged(device.verdict, name_text(device.device)).terminal()
        heading.stylize("bold")
        lines = content.device_lines(device)
        table = (Text(), _comparisons(lines), Text()) if lines else ()
        yield Group(heading, *table, _statements(_of_device(device, report.baseline)))


def _comparisons(lines: Sequence[ReportLine]) -> RenderableType:
    models = dict.fromkeys(line.model for line in lines)
    table = content.comparison_table(lines, several_models=False)
    rows: list[Sequence[Cell]] = []
    for model in models:
        if model and len(models) > 1:
            rows.append((shortened(model, NAME_CELLS),))
        rows += [row for line, row in zip(lines, table.rows, strict=True) if line.model == model]
    return Table(columns=table.columns, rows=rows).terminal()


def _beside(names: Sequence[str], groups: Sequence[Table], shown: slice) -> RenderableType:
    """Lay out some of the devices, each in a column; the columns of all groups are equally wide."""
    # A name breaks after its kind, where else it would break anywhere.
    heads = (shortened(name, 2 * COLUMN_CELLS).replace(":", ":\n", 1) for name in names[shown])
    headings = (("devices", "short"), *columns("text", *heads))
    parts: list[RenderableType] = []
    for number, group in enumerate(groups):
        rows = [(label, *cells[shown]) for label, *cells in group.rows]
        table = Table(columns=headings, rows=rows).terminal(head=number == 0, padding=0)
        table.title, table.title_justify = Text(group.title, "bold") if group.title else None, "left"
        for column in table.columns:
            column.width = COLUMN_CELLS
        parts += [Text(), table] if group.title else [table]
    return Group(*parts)


def _statements(rows: Iterable[tuple[str, Text]]) -> RenderableType:
    """Lay out labels, each with text that wraps beside it; a label that repeats is written once."""
    lines, before = [], ""
    for label, text in rows:
        lines.append((Text("" if label == before else label, "bold"), text))
        before = label
    headings: Columns = (("", "short"), ("", "text"))
    return Table(columns=headings, rows=lines).terminal(rule=False, head=False, padding=2)


def _of_library(report: VerifyReport) -> Iterator[tuple[str, Text]]:
    yield from (("cases", Text(text)) for text in content.coverage_texts(report))
    for gate in report.gates:
        yield "gates", Judged(gate.verdict, printable(f"{gate.name}: {gate.detail}")).terminal()


def _of_device(device: DeviceReport, baseline: str) -> Iterator[tuple[str, Text]]:
    """Yield parity, or why there is none, and what else there is to say beside the report's `baseline`."""
    if device.failure:
        label = "failed" if device.verdict is Verdict.FAIL else "not run"
        yield label, Text("\n".join(content.failure_lines(device.failure)), STYLES[device.verdict])
        return
    yield "parity", Judged(content.parity_verdict(device), content.parity_text(device)).terminal()
    yield from ((label, Text(text)) for label, text in content.findings(device, baseline))


def _sizes(report: VerifyReport) -> RenderableType:
    shown = content.components(report)[:LARGEST]
    rows: list[Sequence[Cell]] = [(Text("by part", "bold"), bytes_text(report.size.file_bytes), "100 %", "")]
    for name, size in shown:
        bar = ProgressBar(total=shown[0][1] or 1.0, completed=size, width=BAR_CELLS, complete_style="cyan")
        rows.append((f"  {shortened(name, NAME_CELLS)}", *content.part_text(report, size), bar))
    headings: Columns = (("", "text"), *columns("number", "", ""), ("", "short"))
    return Table(columns=headings, rows=rows).terminal(rule=False, head=False, padding=2)


def steps_table(report: PreparationReport) -> RenderableType:
    """Return a line for the original and for each step, and below it what they have to say."""
    rows = [("original", *_numbers(report.original), NONE)]
    for step in report.steps:
        ending = "" if step.outcome == "changed" else f" ({step.outcome})"
        difference = NONE if step.largest_difference is None else difference_text(step.largest_difference)
        rows.append((printable(f"{step.number} {step.use}{ending}"), *_numbers(step.after), difference))
    numbers = columns("number", "size", "nodes", "parameters", "opset", "difference")
    table = Table(columns=(("step", "text"), *numbers), rows=rows).terminal(padding=2)
    lines = (Text(printable(line)) for step in report.steps for line in _lines(step))
    return Group(Text(printable(f"steps of {report.model}"), "italic"), table, *lines)


def _numbers(counts: ModelCounts) -> tuple[str, ...]:
    opset = next((str(version) for domain, version in counts.opsets if domain == "ai.onnx"), NONE)
    return bytes_text(counts.size_bytes), f"{counts.nodes:,}", f"{counts.parameters:,}", opset


def _lines(step: StepReport) -> Iterator[str]:
    start = f"step {step.number}"
    if step.reason:
        yield f"{start} was left out: {' '.join(step.reason.split())}"
    yield from (f"{start} leaves out case '{left.case}': {left.reason}" for left in step.cases_left)
    yield from (f"{start}: {note}" for note in step.notes[:MOST_NOTES])
    if len(step.notes) > MOST_NOTES:
        yield f"{start}: and {len(step.notes) - MOST_NOTES:,} more, in the report"
