"""The page of a model: one HTML file, written beside a target's reports, that asks the network for nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from markupsafe import Markup

from ortrim.analysis.cost.counting import operator_name
from ortrim.analysis.cost.memory import ModelCost
from ortrim.analysis.cost.report import amount_text, sizes_text
from ortrim.analysis.cost.run import costs_of_cases
from ortrim.analysis.lint.rules import BY_CODE, ModelFindings, placed
from ortrim.analysis.lint.run import LintSubject, findings_of, operator_sizes
from ortrim.analysis.size import size_of
from ortrim.base.console import Console, counted, printable
from ortrim.base.files import write_atomically
from ortrim.compiling.plan import JobResult, PlannedTarget
from ortrim.errors import Diagnostic, VerifyError
from ortrim.models.graph_facts import GraphFacts
from ortrim.models.models import OrtModel, TensorInfo
from ortrim.models.operators import parse_config
from ortrim.parity.measurements import Verdict
from ortrim.pipeline.building import built_before
from ortrim.planning.planned import Planned, planned_for, target_folder
from ortrim.planning.request import Request, require_known
from ortrim.report import charts
from ortrim.report.content import gravest, measures_time, verdict_text
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, name_text, share_text
from ortrim.report.html import device_parts, rendered
from ortrim.report.table import Cell, Columns, Judged, Table, columns
from ortrim.report.write import report_of
from ortrim.size.accounting import Leaf, by_operator, shares
from ortrim.steps.report import ModelCounts, PreparationReport, StepReport
from ortrim.verify.operator_times import operator_times
from ortrim.verify.reports import DeviceReport, VerifyReport

OWN: Final = "kernels for this model alone"
COMMON: Final = "kernels that other models need, too"
OTHERS: Final = "kernels for other models"
RUNTIME: Final = "the runtime itself"
MODEL: Final = "this model's file"
MODELS: Final = "other models' files"


@dataclass(frozen=True, kw_only=True)
class SizeShare:
    """All bytes that are shipped, in parts; and the kernels of one model, largest first, with who else needs them."""

    parts: Mapping[str, int]
    kernels: tuple[tuple[str, int, tuple[str, ...]], ...]


def size_share(leaves: Iterable[Leaf], model: OrtModel, others: Sequence[OrtModel]) -> SizeShare:
    """Part a library's bytes and the models' files by what needs them.

    Code that serves several operators counts as the runtime's, as does what no operator's kernel is.
    """
    own = _kernel_names(model)
    needed = {other.name: _kernel_names(other) for other in others}
    foreign = frozenset().union(*needed.values())
    parts = dict.fromkeys((OWN, COMMON, OTHERS, RUNTIME), 0)
    kernels = []
    for share in shares(leaves, by_operator):
        name = share.name[0]
        used, elsewhere = name in own, name in foreign
        part = (COMMON if elsewhere else OWN) if used else OTHERS if elsewhere else RUNTIME
        parts[part] += share.size_bytes
        if used:
            users = tuple(other for other, names in needed.items() if name in names)
            kernels.append((name, share.size_bytes, users))
    parts |= {MODEL: model.size_bytes, MODELS: sum(other.size_bytes for other in others)}
    return SizeShare(parts={name: size for name, size in parts.items() if size}, kernels=tuple(kernels))


def _kernel_names(model: OrtModel) -> frozenset[str]:
    return frozenset(operator_name(each.domain, each.name) for each in parse_config(model.config).operators)


@dataclass(frozen=True, kw_only=True)
class ModelSubject:
    """One model of a product, with all that is known of it.

    `report` is that of the whole target; None before it was verified. `steps` is None for a model that no step
    prepares, `share` where the library's bytes are not known by operator. `times` are the microseconds that each
    operator's kernels took on a device in one profiled run of each case.
    """

    name: str
    product: str
    target: str
    graph: GraphFacts
    converted: OrtModel
    costs: tuple[ModelCost, ...]
    lint: ModelFindings
    steps: PreparationReport | None = None
    share: SizeShare | None = None
    times: tuple[tuple[str, Mapping[str, float]], ...] = ()
    report: VerifyReport | None = None


def report_of_model(report: VerifyReport, name: str) -> VerifyReport:
    """Return what a target's report says of one model; the library's own lines and gates are left out."""
    devices = tuple(_device(device, name) for device in report.devices)
    found = {verdict for device in devices for verdict in _verdicts(device)}
    models = tuple(model for model in report.models if model.name == name)
    return replace(report, comparisons=(), gates=(), models=models, devices=devices, verdict=gravest(found))


def _device(device: DeviceReport, name: str) -> DeviceReport:
    return replace(
        device,
        comparisons=tuple(line for line in device.comparisons if line.model == name),
        parity=tuple(output for output in device.parity if output.model == name),
        runs=tuple(run for run in device.runs if run.model == name),
        least_memory=tuple(least for least in device.least_memory if least.model == name),
        traces=tuple(trace for trace in device.traces if f"/{name}/" in trace),
        failed_models=tuple(failure for failure in device.failed_models if failure.model == name),
    )


def _verdicts(device: DeviceReport) -> tuple[Verdict, ...]:
    failed = (device.verdict,) if device.failure else (Verdict.FAIL,) * len(device.failed_models)
    return (*failed, *(line.verdict for line in device.comparisons), *(output.verdict for output in device.parity))


LARGEST_WEIGHTS: Final = 3
MOST_OPERATORS: Final = 200
Pairs = tuple[tuple[str, str], ...]


def tiles(subject: ModelSubject) -> Pairs:
    """Return the figures for the head of the page: a label and a value each, of the case with most arithmetic."""
    cost = heaviest(subject.costs)
    found = [("the model's file", bytes_text(subject.converted.size_bytes))]
    if cost:
        least = "≥ " if cost.at_least else ""
        found += [
            ("multiply-accumulates", least + amount_text(cost.macs)),
            ("parameters", least + amount_text(cost.parameters)),
            ("memory of a run", least + bytes_text(cost.memory.size_bytes)),
        ]
    latency = _latency(subject)
    return (*found, *([("one run, median", latency)] if latency else []))


def _latency(subject: ModelSubject) -> str:
    """Write the median of the slowest case on the first device where time means anything; empty without one."""
    for device in subject.report.devices if subject.report else ():
        runs = [run for run in device.runs if run.model == subject.name and run.library == "ours"]
        times = [case.total_ms.p50 for run in runs for case in run.cases] if measures_time(device) else []
        if times:
            return ms_text(max(times))
    return ""


def heaviest(costs: tuple[ModelCost, ...]) -> ModelCost | None:
    """Return the case with the most arithmetic."""
    return max(costs, key=lambda each: (each.macs, each.operations), default=None)


def graph_facts(subject: ModelSubject) -> Pairs:
    """Return what the model says of itself, as pairs of a label and a value."""
    graph, converted = subject.graph, subject.converted
    facts = graph.model
    weights = sum(each.size_bytes for each in graph.weights)
    largest = sorted(graph.weights, key=lambda each: -each.size_bytes)[:LARGEST_WEIGHTS]
    named = ", ".join(f"{name_text(each.name)} {bytes_text(each.size_bytes)}" for each in largest if each.size_bytes)
    external = f", and {bytes_text(graph.external_bytes)} in other files" if graph.external_bytes else ""
    pairs = (
        ("file", f"{bytes_text(facts.size_bytes)}{external}"),
        ("SHA-256", facts.sha256),
        ("made by", graph.producer or "an unknown exporter"),
        ("opsets", ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in facts.opsets)),
        ("IR version", str(facts.ir_version)),
        ("nodes", f"{len(graph.nodes):,}, of {counted(len(_operators(graph)), 'operator')}"),
        ("weights", f"{counted(len(graph.weights), 'tensor')}, {bytes_text(weights)}"),
        ("largest weights", named or "none"),
        ("converted", f"{bytes_text(converted.size_bytes)} as ORT format, style {converted.style}, {converted.level}"),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def _operators(graph: GraphFacts) -> Counter[str]:
    return Counter(operator_name(node.domain, node.operator) for node in graph.nodes)


def _tensor_table(values: tuple[TensorInfo, ...]) -> Table:
    rows = [(name_text(value.name), printable(value.element_type), _shape_text(value)) for value in values]
    return Table(columns=(("name", "code"), *columns("text", "type", "shape")), rows=rows)


def _shape_text(value: TensorInfo) -> str:
    if value.shape is None:
        return "of any shape"
    return printable(" x ".join("?" if size is None else str(size) for size in value.shape)) or "scalar"


def _operator_table(graph: GraphFacts) -> Table:
    ordered = sorted(_operators(graph).items(), key=lambda each: (-each[1], each[0]))
    rows = [(name_text(name), f"{count:,}") for name, count in ordered[:MOST_OPERATORS]]
    return Table(columns=(("operator", "text"), ("nodes", "number")), rows=rows)


def _cost_table(cost: ModelCost) -> Table:
    rows = [
        (
            name_text(each.operator),
            f"{each.nodes:,}",
            amount_text(each.macs),
            share_text(each.macs / cost.macs) if each.macs and cost.macs else NONE,
            amount_text(each.operations),
            amount_text(each.parameters),
            bytes_text(each.output_bytes),
        )
        for each in cost.operators[:MOST_OPERATORS]
    ]
    numbers = columns("number", "nodes", "MACs", "share", "operations", "parameters", "outputs")
    return Table(columns=(("operator", "text"), *numbers), rows=rows)


def case_text(cost: ModelCost) -> str:
    """Say for which inputs a cost is: `case short: x 1x512, state 2x1x128`."""
    inputs = ", ".join(f"{name} {sizes_text(shape)}" for name, shape in cost.inputs)
    return printable(f"case {cost.case}: {inputs}" if cost.case else inputs) or "no inputs"


def memory_text(cost: ModelCost) -> str:
    """Say both figures of memory, and that the one is drawn which is nearer to what is measured."""
    least = "at least " if cost.at_least else ""
    run, alive = (least + bytes_text(peak.size_bytes) for peak in (cost.memory, cost.peak))
    drawn = f"A run of ONNX Runtime takes {run} by its own plan of buffers, kernels' working memory included"
    return f"{drawn}: this is drawn. By the lifetimes of activations alone the peak is {alive}. Weights come on top."


def _memory_table(device: DeviceReport) -> Table:
    """Return resident memory as measured: once loaded, at most while running, and at most in all; ours and baseline."""
    rows = []
    for run in device.runs:
        phases = (run.loaded_rss_bytes, run.inference_peak_rss_bytes, run.peak_rss_bytes)
        rows.append((run.library, *(bytes_text(each.p50 if each else None) for each in phases)))
    numbers = columns("number", "model loaded", "at most while running", "at most")
    return Table(columns=(("library", "text"), *numbers), rows=rows)


def _step_table(subject: ModelSubject) -> Table:
    steps, graph, converted = subject.steps, subject.graph, subject.converted
    size, nodes = bytes_text(graph.model.size_bytes + graph.external_bytes), f"{len(graph.nodes):,}"
    given = _counts(steps.original) if steps else (size, nodes, NONE)
    ended = f"style {converted.style}, {converted.level}"
    shipped = ("converted to ORT format", ended, bytes_text(converted.size_bytes), *(NONE,) * 4)
    rows = (("as given", "", *given, NONE, NONE), *map(_step, steps.steps if steps else ()), shipped)
    numbers = columns("number", "file", "nodes", "parameters", "largest difference")
    headings: Columns = (*columns("text", "step", "outcome"), *numbers, ("parity", "verdict"))
    return Table(columns=headings, rows=rows)


def _counts(counts: ModelCounts) -> tuple[str, str, str]:
    return bytes_text(counts.size_bytes), f"{counts.nodes:,}", amount_text(counts.parameters)


def _step(step: StepReport) -> tuple[Cell, ...]:
    verdict = gravest(output.verdict for output in step.parity)
    left = tuple(f"case {each.case} cannot be checked any more: {each.reason}" for each in step.cases_left)
    notes = (step.options, step.reason, *step.notes, *left, *_operator_changes(step))
    lines = Markup("").join(Markup("<li>{}</li>").format(printable(note)) for note in notes if note)
    name = printable(f"{step.number}. {step.use}")
    return (
        Markup('{}<ul class="notes">{}</ul>').format(name, lines) if lines else name,
        step.outcome,
        *_counts(step.after),
        NONE if step.largest_difference is None else difference_text(step.largest_difference),
        NONE if verdict is Verdict.NOT_JUDGED else Judged(verdict),
    )


def _operator_changes(step: StepReport) -> Iterator[str]:
    before, after = dict(step.before.operators), dict(step.after.operators)
    changed = {name: after.get(name, 0) - before.get(name, 0) for name in sorted({*before, *after})}
    words = [f"{difference:+,} {name}" for name, difference in changed.items() if difference]
    if words:
        yield f"nodes: {', '.join(words)}"


BARS: Final = 10
"""How many operators are drawn; the others are one bar."""
COLUMNS: Final = 400
"""How many columns a run is drawn in; of more nodes, each column has the one with most alive."""
HEIGHT: Final = 230.0
LEFT: Final = 70.0
TOP: Final = 26.0
BOTTOM: Final = 30.0
SHARE_HEIGHT: Final = 44.0
LARGEST: Final = 2**63
"""Only a damaged model needs more bytes than this, and a float may not hold them."""
PART_STYLES: Final = {
    OWN: "family-kernels", COMMON: "family-language", OTHERS: "family-linker", RUNTIME: "family-runtime",
    MODEL: "family-libraries", MODELS: "family-untold",
}  # fmt: skip
"""The classes of the style sheet, one for each part."""


def arithmetic_chart(cost: ModelCost) -> Markup:
    """Draw each operator's multiply-accumulates; other operations where there are none."""
    values = [(each.operator, each.macs) for each in cost.operators if each.macs]
    values = values or [(each.operator, each.operations) for each in cost.operators if each.operations]
    return _operator_bars("arithmetic by operator", values, amount_text)


def time_chart(times: Mapping[str, float]) -> Markup:
    """Draw each operator's time as a share of that of all."""
    ordered = sorted(((name, round(1000 * time)) for name, time in times.items()), key=lambda each: -each[1])
    return _operator_bars("time by operator", ordered, lambda nanoseconds: f"{nanoseconds / 1e6:.3g} ms")


def memory_timeline(cost: ModelCost) -> Markup:
    """Draw the bytes that a run takes while each node runs, in ONNX Runtime's order, with the peak marked."""
    timeline = cost.memory.timeline
    top = max((size for _, size in timeline), default=0)
    if not 0 < top <= LARGEST:
        return Markup("")
    canvas = charts.Canvas(charts.FULL_WIDTH, HEIGHT, f"bytes in memory while each of {len(timeline)} nodes runs")
    scale, bottom = (HEIGHT - TOP - BOTTOM) / top, HEIGHT - BOTTOM
    for value in charts.ticks(0, top, 4):
        canvas.line(LEFT, bottom - value * scale, charts.FULL_WIDTH, bottom - value * scale, "grid")
        canvas.text(LEFT - 8, bottom - value * scale + 4, bytes_text(value), "figure end")
    shown = _timeline_columns(timeline)
    width = (charts.FULL_WIDTH - LEFT) / len(shown)
    for number, (node, size) in enumerate(shown):
        style = "peak" if size == top else "ours"
        tip = f"{name_text(node)}\n{bytes_text(size)}"
        canvas.rectangle(LEFT + number * width, bottom - size * scale, width + 0.05, size * scale, style, tip=tip)
    canvas.text(LEFT, 14, f"peak {bytes_text(top)} in {name_text(cost.memory.node)}", "figure strong")
    canvas.text(LEFT, HEIGHT - 9, "first node", "figure")
    canvas.text(charts.FULL_WIDTH, HEIGHT - 9, f"last of {len(timeline):,} nodes", "figure end")
    return canvas.markup()


def share_bar(share: SizeShare) -> Markup:
    """Draw all that is shipped as one bar of parts."""
    total = sum(share.parts.values())
    if not total:
        return Markup("")
    canvas = charts.Canvas(charts.FULL_WIDTH, SHARE_HEIGHT, "the bytes of the library and model, by use")
    x = 0.0
    for name, size in share.parts.items():
        width = charts.FULL_WIDTH * size / total
        tip = f"{name}\n{bytes_text(size)}, {share_text(size / total)}"
        canvas.rectangle(x, 2, max(0.0, width - 1.5), SHARE_HEIGHT - 4, PART_STYLES[name], tip=tip)
        x += width
    return canvas.markup()


def _timeline_columns(timeline: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return at most `COLUMNS` of a run's nodes, of those that share a column the one with most alive."""
    if len(timeline) <= COLUMNS:
        return list(timeline)
    edges = [number * len(timeline) // COLUMNS for number in range(COLUMNS + 1)]
    return [max(timeline[first:last], key=lambda each: each[1]) for first, last in pairwise(edges)]


def _operator_bars(label: str, values: Sequence[tuple[str, int]], text: Callable[[int], str]) -> Markup:
    """Draw the first few operators, and the others together; `values` are in order."""
    total = sum(value for _, value in values)
    rest = sum(value for _, value in values[BARS:])
    shown = [*values[:BARS], *([(f"{len(values) - BARS} others", rest)] if rest else [])]
    bars = [
        charts.ChartBar(
            label=printable(name.rpartition(":")[2]),
            value=value / total,
            text=f"{text(value)}, {share_text(value / total)}",
            style="ours",
        )
        for name, value in shown
        if total
    ]
    return charts.bar_chart(label, bars, charts.HALF_WIDTH)


UNMEASURED: Final = "Not verified yet: the page is made from the model's file and has no measurements."


def model_page(subject: ModelSubject) -> str:
    """Return the page of one model; every name in it is escaped."""
    report = report_of_model(subject.report, subject.name) if subject.report else None
    graph, product = subject.graph, f"a model of {name_text(subject.product)} for {name_text(subject.target)}"
    return rendered(
        "model.html.j2",
        title=name_text(subject.name),
        subtitle=f"{product}, ONNX Runtime {printable(subject.converted.ort_version)}",
        verdict=report.verdict if report else Verdict.NOT_JUDGED,
        verdict_text=verdict_text(report) if report else UNMEASURED,
        tiles=tiles(subject),
        facts=graph_facts(subject),
        inputs=_tensor_table(graph.model.inputs),
        outputs=_tensor_table(graph.model.outputs),
        operators=_operator_table(graph),
        lint=[
            (BY_CODE[code], tuple(printable(placed(finding)) for finding in group))
            for code, group in groupby(subject.lint.findings, key=lambda finding: finding.code)
        ],
        lint_text=_lint_text(subject.lint),
        not_checked=tuple(map(printable, subject.lint.not_checked)),
        steps=_step_table(subject),
        prepared=subject.steps is not None,
        cost=_cost(heaviest(subject.costs)),
        cases=[(case_text(each), _cost_table(each)) for each in subject.costs],
        times=[(name_text(device), time_chart(times)) for device, times in subject.times],
        share=_share(subject.share),
        devices=[
            {**device_parts(device, number, report.baseline), "memory": _memory_table(device)}
            for number, device in enumerate(report.devices, 1)
        ]
        if report
        else (),
    )


def _lint_text(lint: ModelFindings) -> str:
    rules = {finding.code: finding.level for finding in lint.findings}
    errors = sum(level == "error" for level in rules.values())
    advice = len(rules) - errors
    found = [counted(errors, "error")] if errors else []
    found += [f"{advice} pieces of advice" if advice > 1 else "one piece of advice"] if advice else []
    return ", ".join(found) or "Nothing was found."


def _cost(cost: ModelCost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    nodes = (f"{node.name}: {'; '.join(node.unknown)}" for node in cost.nodes if node.unknown)
    peak = [(name_text(each.name), bytes_text(each.size_bytes)) for each in cost.memory.tensors[:MOST_OPERATORS]]
    return {
        "case": case_text(cost),
        "chart": arithmetic_chart(cost),
        "of": "multiply-accumulates" if cost.macs else "operations",
        "notes": tuple(map(printable, (*cost.unknown, *nodes))),
        "timeline": memory_timeline(cost),
        "memory": memory_text(cost),
        "peak": Table(columns=(("buffer of", "code"), ("size", "number")), rows=peak),
    }


def _share(share: SizeShare | None) -> dict[str, Any] | None:
    if share is None:
        return None
    total = sum(share.parts.values())
    lines = [
        (PART_STYLES[name], name, bytes_text(size), share_text(size / total)) for name, size in share.parts.items()
    ]
    kernels = [
        (name_text(operator), bytes_text(size), name_text(", ".join(others)) or "no other model")
        for operator, size, others in share.kernels
    ]
    headings: Columns = (("operator", "text"), ("kernels", "number"), ("needed by", "text"))
    return {"bar": share_bar(share), "lines": lines, "kernels": Table(columns=headings, rows=kernels)}


NAME: Final = "model-{}.html"
MISSING: Final = frozenset({"report-missing", "not-built", "report-outdated"})
"""What a page of a model can do without."""
T = TypeVar("T")


def make_model_pages(request: Request, only: tuple[str, ...], console: Console, *, run: bool) -> tuple[Path, ...]:
    """Write the page of each model, or `only` of those named, for each target; `run` is as `findings_of` has it.

    What was built and verified before is on it, if anything was.
    """
    planned = planned_for(request, console)
    known = [spec.name for spec in planned.models.loaded.models]
    require_known("no-such-model", "--only", only, known)
    names = [name for name in known if not only or name in only]
    written: list[Path] = []
    for target in planned.plan.targets:
        identifier, folder = target.identifier, target_folder(planned, target)
        result, report = _if_there(partial(built_before, target.job)), _if_there(partial(report_of, folder))
        if report is None:
            console.note(f"{identifier}: not verified yet, so that the pages have no measurements")
        with console.step(f"pages for {identifier}") as step:
            leaves = _leaves(result, request, console) if result else ()
            pages = [folder / NAME.format(name) for name in names]
            for place, (name, path) in enumerate(zip(names, pages, strict=True)):
                step.progress(place, len(names), name)
                subject = _subject(planned, target, known.index(name), leaves, run=run)
                times = tuple(_times(report, folder, name)) if report else ()
                write_atomically(path, model_page(replace(subject, report=report, times=times)))
            step.note(f"{folder}: {', '.join(path.name for path in pages)}")
        written += pages
    return tuple(written)


def _if_there(read: Callable[[], T]) -> T | None:
    """Return what is read; None for what a page can do without."""
    try:
        return read()
    except VerifyError as error:
        if error.code not in MISSING:
            raise
    return None


def _leaves(result: JobResult, request: Request, console: Console) -> tuple[Leaf, ...]:
    try:
        return size_of(str(result.library), request, result.link_map, console).accounting.leaves
    except Diagnostic as error:
        console.warn(f"the size is not known by operator: {error.what} ({error.code})")
        return ()


def _subject(
    planned: Planned, target: PlannedTarget, number: int, leaves: tuple[Leaf, ...], *, run: bool
) -> ModelSubject:
    from ortrim.models.graph_facts import read_graph  # noqa: PLC0415 - it imports onnx

    models = planned.models.for_target(target.job.target)
    prepared, preparation, converted = models.prepared[number], models.preparations[number], models.converted[number]
    others = [*models.converted[:number], *models.converted[number + 1 :]]
    graph, version = read_graph(prepared.path), models.runtime.version
    shown = LintSubject(name=prepared.name, path=prepared.path, ort_version=version, file=str(prepared.path))
    elsewhere = frozenset((each.domain, each.name) for other in others for each in parse_config(other.config).operators)
    untold = () if leaves else ("what operators cost: the library's bytes are not known by operator",)
    return ModelSubject(
        name=prepared.name,
        product=planned.plan.spec_name,
        target=target.identifier,
        graph=graph,
        converted=converted,
        costs=tuple(costs_of_cases(prepared, planned.cases[number])),
        lint=findings_of(shown, graph, operator_sizes(leaves) or None, elsewhere, untold=untold, run=run),
        steps=preparation.report if preparation else None,
        share=size_share(leaves, converted, others) if leaves else None,
    )


def _times(report: VerifyReport, folder: Path, model: str) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the times of operators on each device whose profile of this model is there."""
    for device in report.devices:
        for trace in device.traces:
            path = folder / trace
            if path.parent.name == model and path.is_file():
                yield device.device, operator_times(path, f"{device.device}, model '{model}'")
