"""The page of a model: one HTML file, written beside a target's reports, that asks the network for nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from markupsafe import Markup

from ortrim.analysis.cost.counting import operator_name
from ortrim.analysis.cost.memory import ModelCost
from ortrim.analysis.cost.report import amount_text, sizes_text
from ortrim.analysis.cost.run import costs_of_cases
from ortrim.analysis.lint.rules import BY_CODE, LintFinding, placed
from ortrim.analysis.lint.run import Library, findings_of
from ortrim.analysis.size import size_of
from ortrim.base.console import Console, Step, counted, printable
from ortrim.base.files import write_atomically
from ortrim.compiling.plan import JobResult, PlannedTarget
from ortrim.compiling.size.accounting import NO_OPERATOR, Leaf, by_operator, shares
from ortrim.errors import Diagnostic, VerifyError
from ortrim.models.graph_facts import GraphFacts
from ortrim.models.models import OrtModel, TensorInfo
from ortrim.models.operators import RequiredOperators, parse_config
from ortrim.parity.measurements import Verdict
from ortrim.pipeline.executors import built_before
from ortrim.planning.planned import Planned, planned_for, target_folder
from ortrim.planning.request import Request, require_known
from ortrim.report import charts
from ortrim.report.content import gravest, measures_time, verdict_text
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, name_text, share_text
from ortrim.report.html import device_parts, rendered
from ortrim.report.write import report_of
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
class SharePart:
    """A part of what is shipped."""

    name: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class KernelShare:
    """One operator of the model: the bytes of its kernels, and which other models need them."""

    operator: str
    size_bytes: int
    others: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SizeShare:
    """All bytes that are shipped, in parts, and the kernels of one model, largest first."""

    parts: tuple[SharePart, ...]
    kernels: tuple[KernelShare, ...]


@dataclass(frozen=True, kw_only=True)
class ShippedModel:
    """A model that is shipped with the library: its name, the size of its file, and what it requires."""

    name: str
    size_bytes: int
    operators: RequiredOperators


def size_share(leaves: Iterable[Leaf], model: ShippedModel, others: tuple[ShippedModel, ...]) -> SizeShare:
    """Part a library's bytes and the models' files by what needs them.

    Code that serves several operators counts as the runtime's, as does what no operator's kernel is.
    """
    own = _names(model)
    needed = {other.name: _names(other) for other in others}
    foreign = frozenset().union(*needed.values())
    sums = dict.fromkeys((OWN, COMMON, OTHERS, RUNTIME), 0)
    kernels = []
    for share in shares(leaves, by_operator):
        name = share.name[0]
        sums[_part(name, own, foreign)] += share.size_bytes
        if name in own:
            users = tuple(other for other, names in needed.items() if name in names)
            kernels.append(KernelShare(operator=name, size_bytes=share.size_bytes, others=users))
    sums[MODEL] = model.size_bytes
    sums[MODELS] = sum(other.size_bytes for other in others)
    parts = tuple(SharePart(name=name, size_bytes=size) for name, size in sums.items() if size)
    return SizeShare(parts=parts, kernels=tuple(kernels))


def _part(name: str, own: frozenset[str], foreign: frozenset[str]) -> str:
    if name in own:
        return COMMON if name in foreign else OWN
    return OTHERS if name in foreign else RUNTIME


def _names(model: ShippedModel) -> frozenset[str]:
    return frozenset(operator_name(each.domain, each.name) for each in model.operators.operators)


@dataclass(frozen=True, kw_only=True)
class LintGroup:
    """What one rule found in a model: how grave it is, in which places, why it matters, and what mends it."""

    level: Literal["error", "advice"]
    code: str
    title: str
    why: str
    fix: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OperatorTimes:
    """Microseconds that the kernels of each operator took on a device in one profiled run of each case."""

    device: str
    times: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class ModelSubject:
    """One model of a product, with all that is known of it.

    `report` is that of the whole target; None before it was verified. `steps` is None for a model that no step
    prepares, `share` where the library's bytes are not known by operator.
    """

    name: str
    product: str
    target: str
    graph: GraphFacts
    converted: OrtModel
    costs: tuple[ModelCost, ...]
    lint: tuple[LintGroup, ...]
    not_checked: tuple[str, ...]
    steps: PreparationReport | None = None
    share: SizeShare | None = None
    times: tuple[OperatorTimes, ...] = ()
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


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """One state of the model on its way to what is shipped; `notes` are what else is to be said of how it came."""

    name: str
    outcome: str = ""
    size: str
    nodes: str = NONE
    parameters: str = NONE
    difference: str = NONE
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()


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


def heaviest(costs: tuple[ModelCost, ...]) -> ModelCost | None:
    """Return the case with the most arithmetic."""
    return max(costs, key=lambda each: (each.macs, each.operations), default=None)


def graph_facts(subject: ModelSubject) -> Pairs:
    """Return what the model says of itself, as pairs of a label and a value."""
    graph, converted = subject.graph, subject.converted
    facts = graph.model
    weights = sum(each.size_bytes for each in graph.weights)
    external = f", and {bytes_text(graph.external_bytes)} in other files" if graph.external_bytes else ""
    pairs = (
        ("file", f"{bytes_text(facts.size_bytes)}{external}"),
        ("SHA-256", facts.sha256),
        ("made by", graph.producer or "an unknown exporter"),
        ("opsets", ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in facts.opsets)),
        ("IR version", str(facts.ir_version)),
        ("nodes", f"{len(graph.nodes):,}, of {counted(len(_operators(graph)), 'operator')}"),
        ("weights", f"{counted(len(graph.weights), 'tensor')}, {bytes_text(weights)}"),
        ("largest weights", _largest_weights(graph) or "none"),
        ("converted", f"{bytes_text(converted.size_bytes)} as ORT format, style {converted.style}, {converted.level}"),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def tensors(values: tuple[TensorInfo, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return the name, type and shape of inputs or outputs."""
    return tuple((name_text(value.name), printable(value.element_type), _shape_text(value)) for value in values)


def operator_counts(graph: GraphFacts) -> tuple[tuple[str, int], ...]:
    """Return how many nodes there are of each operator, most first."""
    ordered = sorted(_operators(graph).items(), key=lambda each: (-each[1], each[0]))
    return tuple((name_text(name), count) for name, count in ordered[:MOST_OPERATORS])


def cost_lines(cost: ModelCost) -> tuple[tuple[str, ...], ...]:
    """Return a line for each operator: nodes, arithmetic, its share, operations, parameters, bytes of outputs."""
    return tuple(
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
    )


def case_text(cost: ModelCost) -> str:
    """Say for which inputs a cost is: `case short: x 1x512, state 2x1x128`."""
    inputs = ", ".join(f"{name} {sizes_text(shape)}" for name, shape in cost.inputs)
    return printable(f"case {cost.case}: {inputs}" if cost.case else inputs) or "no inputs"


def cost_notes(cost: ModelCost) -> tuple[str, ...]:
    """Return what could not be counted, of the model and of its nodes."""
    nodes = (f"{node.name}: {'; '.join(node.unknown)}" for node in cost.nodes if node.unknown)
    return tuple(map(printable, (*cost.unknown, *nodes)))


def memory_text(cost: ModelCost) -> str:
    """Say both figures of memory, and that the one is drawn which is nearer to what is measured."""
    least = "at least " if cost.at_least else ""
    run, alive = (least + bytes_text(peak.size_bytes) for peak in (cost.memory, cost.peak))
    drawn = f"A run of ONNX Runtime takes {run} by its own plan of buffers, kernels' working memory included"
    return f"{drawn}: this is drawn. By the lifetimes of activations alone the peak is {alive}. Weights come on top."


def peak_lines(cost: ModelCost) -> tuple[tuple[str, str], ...]:
    """Return what is in memory at the peak of a run, largest first."""
    return tuple((name_text(each.name), bytes_text(each.size_bytes)) for each in cost.memory.tensors[:MOST_OPERATORS])


def memory_lines(device: DeviceReport) -> tuple[tuple[str, str, str, str], ...]:
    """Return resident memory as measured: once loaded, at most while running, and at most in all; ours and baseline."""
    return tuple(
        (
            run.library,
            bytes_text(run.loaded_rss_bytes.p50 if run.loaded_rss_bytes else None),
            bytes_text(run.inference_peak_rss_bytes.p50 if run.inference_peak_rss_bytes else None),
            bytes_text(run.peak_rss_bytes.p50),
        )
        for run in device.runs
    )


def share_lines(share: SizeShare) -> tuple[tuple[str, str, str], ...]:
    """Return each part of what is shipped: its name, bytes, and share of all."""
    total = sum(part.size_bytes for part in share.parts)
    return tuple((part.name, bytes_text(part.size_bytes), share_text(part.size_bytes / total)) for part in share.parts)


def kernel_lines(share: SizeShare) -> tuple[tuple[str, str, str], ...]:
    """Return each operator's bytes of kernels, and which other models need them."""
    return tuple(
        (name_text(each.operator), bytes_text(each.size_bytes), name_text(", ".join(each.others)) or "no other model")
        for each in share.kernels
    )


def step_lines(subject: ModelSubject) -> tuple[StepLine, ...]:
    """Return the model as given, after each step, and as it is shipped."""
    steps, graph, converted = subject.steps, subject.graph, subject.converted
    size, nodes = bytes_text(graph.model.size_bytes + graph.external_bytes), f"{len(graph.nodes):,}"
    given = _state("as given", "", steps.original) if steps else StepLine(name="as given", size=size, nodes=nodes)
    shipped = StepLine(
        name="converted to ORT format",
        outcome=f"style {converted.style}, {converted.level}",
        size=bytes_text(converted.size_bytes),
    )
    return (given, *map(_step, steps.steps if steps else ()), shipped)


def _state(name: str, outcome: str, counts: ModelCounts) -> StepLine:
    return StepLine(
        name=name,
        outcome=outcome,
        size=bytes_text(counts.size_bytes),
        nodes=f"{counts.nodes:,}",
        parameters=amount_text(counts.parameters),
    )


def _step(step: StepReport) -> StepLine:
    verdict = gravest(output.verdict for output in step.parity)
    left = tuple(f"case {each.case} cannot be checked any more: {each.reason}" for each in step.cases_left)
    notes = (step.options, step.reason, *step.notes, *left, *_operator_changes(step))
    return replace(
        _state(printable(f"{step.number}. {step.use}"), step.outcome, step.after),
        difference=NONE if step.largest_difference is None else difference_text(step.largest_difference),
        verdict=None if verdict is Verdict.NOT_JUDGED else verdict,
        notes=tuple(printable(note) for note in notes if note),
    )


def _operator_changes(step: StepReport) -> Iterator[str]:
    before, after = dict(step.before.operators), dict(step.after.operators)
    changed = {name: after.get(name, 0) - before.get(name, 0) for name in sorted({*before, *after})}
    words = [f"{difference:+,} {name}" for name, difference in changed.items() if difference]
    if words:
        yield f"nodes: {', '.join(words)}"


def _latency(subject: ModelSubject) -> str:
    """Write the median of the slowest case on the first device where time means anything; empty without one."""
    for device in subject.report.devices if subject.report else ():
        runs = [run for run in device.runs if run.model == subject.name and run.library == "ours"]
        times = [case.total_ms.p50 for run in runs for case in run.cases] if measures_time(device) else []
        if times:
            return ms_text(max(times))
    return ""


def _operators(graph: GraphFacts) -> Counter[str]:
    return Counter(operator_name(node.domain, node.operator) for node in graph.nodes)


def _largest_weights(graph: GraphFacts) -> str:
    largest = sorted(graph.weights, key=lambda each: -each.size_bytes)[:LARGEST_WEIGHTS]
    return ", ".join(f"{name_text(each.name)} {bytes_text(each.size_bytes)}" for each in largest if each.size_bytes)


def _shape_text(value: TensorInfo) -> str:
    if value.shape is None:
        return "of any shape"
    return printable(" x ".join("?" if size is None else str(size) for size in value.shape)) or "scalar"


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

Timeline = Sequence[tuple[str, int]]


def arithmetic_chart(cost: ModelCost) -> Markup:
    """Draw each operator's multiply-accumulates; other operations where there are none."""
    values = [(each.operator, each.macs) for each in cost.operators if each.macs]
    values = values or [(each.operator, each.operations) for each in cost.operators if each.operations]
    return _operator_bars("arithmetic by operator", values, amount_text)


def time_chart(times: OperatorTimes) -> Markup:
    """Draw each operator's time as a share of that of all."""
    ordered = sorted(((name, round(1000 * time)) for name, time in times.times), key=lambda each: -each[1])
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
    shown = _columns(timeline)
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
    total = sum(part.size_bytes for part in share.parts)
    if not total:
        return Markup("")
    canvas = charts.Canvas(charts.FULL_WIDTH, SHARE_HEIGHT, "the bytes of the library and model, by use")
    x = 0.0
    for part in share.parts:
        width = charts.FULL_WIDTH * part.size_bytes / total
        tip = f"{part.name}\n{bytes_text(part.size_bytes)}, {share_text(part.size_bytes / total)}"
        canvas.rectangle(x, 2, max(0.0, width - 1.5), SHARE_HEIGHT - 4, PART_STYLES[part.name], tip=tip)
        x += width
    return canvas.markup()


def _columns(timeline: Timeline) -> list[tuple[str, int]]:
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


UNMEASURED = "Not verified yet: the page is made from the model's file and has no measurements."


def model_page(subject: ModelSubject) -> str:
    """Return the page of one model; every name in it is escaped."""
    report = report_of_model(subject.report, subject.name) if subject.report else None
    graph = subject.graph
    return rendered(
        "model.html.j2",
        title=name_text(subject.name),
        subtitle=(
            f"a model of {name_text(subject.product)} for {name_text(subject.target)}, ONNX Runtime "
            + printable(subject.converted.ort_version)
        ),
        verdict=report.verdict if report else Verdict.NOT_JUDGED,
        verdict_text=verdict_text(report) if report else UNMEASURED,
        tiles=tiles(subject),
        facts=graph_facts(subject),
        inputs=tensors(graph.model.inputs),
        outputs=tensors(graph.model.outputs),
        operators=operator_counts(graph),
        lint=[_lint(group) for group in subject.lint],
        lint_text=_lint_text(subject.lint),
        not_checked=tuple(map(printable, subject.not_checked)),
        steps=step_lines(subject),
        prepared=subject.steps is not None,
        cost=_cost(heaviest(subject.costs)),
        cases=[(case_text(each), cost_lines(each)) for each in subject.costs],
        times=[(name_text(each.device), time_chart(each)) for each in subject.times],
        share=_share(subject.share),
        devices=[
            {**device_parts(device, number, report.baseline), "memory": memory_lines(device)}
            for number, device in enumerate(report.devices, 1)
        ]
        if report
        else (),
    )


def _lint(group: LintGroup) -> dict[str, Any]:
    return {
        "verdict": Verdict.FAIL if group.level == "error" else Verdict.INCONCLUSIVE,
        "level": group.level,
        "code": group.code,
        "title": printable(group.title),
        "why": printable(group.why),
        "fix": printable(group.fix),
        "places": tuple(map(printable, group.places)),
    }


def _lint_text(groups: tuple[LintGroup, ...]) -> str:
    errors = sum(group.level == "error" for group in groups)
    if not groups:
        return "Nothing was found."
    advice = len(groups) - errors
    found = [counted(errors, "error")] if errors else []
    return ", ".join(
        [*found, *([f"{advice} pieces of advice" if advice > 1 else "one piece of advice"] if advice else [])]
    )


def _cost(cost: ModelCost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "case": case_text(cost),
        "chart": arithmetic_chart(cost),
        "of": "multiply-accumulates" if cost.macs else "operations",
        "notes": cost_notes(cost),
        "timeline": memory_timeline(cost),
        "memory": memory_text(cost),
        "peak": peak_lines(cost),
    }


def _share(share: SizeShare | None) -> dict[str, Any] | None:
    if share is None:
        return None
    lines = [(PART_STYLES[name], name, size, part) for name, size, part in share_lines(share)]
    return {"bar": share_bar(share), "lines": lines, "kernels": kernel_lines(share)}


NAME: Final = "model-{}.html"
MISSING: Final = frozenset({"report-missing", "not-built", "report-outdated"})
"""What a page of a model can do without."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """Which pages to write, and how closely to look at the models: `run` is as `findings_of` has it."""

    planned: Planned
    names: tuple[str, ...]
    request: Request
    run: bool
    console: Console


@dataclass(frozen=True, kw_only=True)
class _Target:
    """One target with what there is of it: its finished build and its report."""

    planned: PlannedTarget
    folder: Path
    result: JobResult | None
    report: VerifyReport | None


def make_model_pages(request: Request, only: tuple[str, ...], console: Console, *, run: bool) -> tuple[Path, ...]:
    """Write the page of each model, or `only` of those named, for each target.

    What was built and verified before is on it, if anything was.
    """
    planned = planned_for(request, console)
    known = _model_names(planned)
    require_known("no-such-model", "--only", only, known)
    names = tuple(name for name in known if not only or name in only)
    wanted = _Wanted(planned=planned, names=names, request=request, run=run, console=console)
    written: list[Path] = []
    for target in planned.plan.targets:
        subject = _target(planned, target)
        if subject.report is None:
            console.note(f"{target.job.target.identifier}: not verified yet, so that the pages have no measurements")
        with console.step(f"pages for {target.job.target.identifier}") as step:
            written += _write(wanted, subject, step)
    return tuple(written)


def _model_names(planned: Planned) -> tuple[str, ...]:
    return tuple(spec.name for spec in planned.models.loaded.spec.models)


def _target(planned: Planned, target: PlannedTarget) -> _Target:
    folder = target_folder(planned, target)
    result = _if_there(lambda: built_before(target.job))
    report = _if_there(lambda: report_of(folder))
    return _Target(planned=target, folder=folder, result=result, report=report)


def _if_there(read: Callable[[], T]) -> T | None:
    """Return what is read; None for what a page can do without."""
    try:
        return read()
    except VerifyError as error:
        if error.code not in MISSING:
            raise
    return None


def _write(wanted: _Wanted, target: _Target, step: Step) -> list[Path]:
    leaves = _leaves(wanted, target)
    written = []
    for number, name in enumerate(wanted.names):
        step.progress(number, len(wanted.names), name)
        path = target.folder / NAME.format(name)
        write_atomically(path, model_page(_subject(wanted, target, name, leaves)))
        written.append(path)
    step.note(f"{target.folder}: {', '.join(path.name for path in written)}")
    return written


def _leaves(wanted: _Wanted, target: _Target) -> tuple[Leaf, ...]:
    """Return the library's bytes by operator; none when they cannot be told."""
    result = target.result
    if result is None:
        return ()
    try:
        return size_of(str(result.library), wanted.request, result.link_map, wanted.console).accounting.leaves
    except Diagnostic as error:
        wanted.console.warn(f"the size is not known by operator: {error.what} ({error.code})")
        return ()


def _subject(wanted: _Wanted, target: _Target, name: str, leaves: tuple[Leaf, ...]) -> ModelSubject:
    from ortrim.models.graph_facts import read_graph  # noqa: PLC0415 - it imports onnx

    number = _model_names(wanted.planned).index(name)
    models = wanted.planned.models.for_target(target.planned.job.target)
    prepared, converted = models.prepared[number], models.converted
    graph, preparation = read_graph(prepared.path), models.preparations[number]
    library = _library(converted, number, leaves)
    found = findings_of(name, prepared.path, graph, models.runtime.version, library, run=wanted.run)
    return ModelSubject(
        name=name,
        product=wanted.planned.plan.spec_name,
        target=target.planned.job.target.identifier,
        graph=graph,
        converted=converted[number],
        costs=tuple(costs_of_cases(prepared, wanted.planned.cases[number])),
        lint=tuple(_groups(found.findings)),
        not_checked=found.not_checked,
        steps=preparation.report if preparation else None,
        share=_size_share(converted, number, leaves),
        times=tuple(_times(target, name)),
        report=target.report,
    )


def _groups(findings: tuple[LintFinding, ...]) -> Iterator[LintGroup]:
    for code, group in groupby(findings, key=lambda finding: finding.code):
        rule = BY_CODE[code]
        yield LintGroup(
            level=rule.level, code=code, title=rule.title, why=rule.why, fix=rule.fix, places=tuple(map(placed, group))
        )


def _library(models: tuple[OrtModel, ...], number: int, leaves: tuple[Leaf, ...]) -> Library:
    """Return what operators cost in the library, for the rules of lint."""
    groups = shares(leaves, by_operator)
    sizes = tuple((group.name[0], group.size_bytes) for group in groups if group.name[0] != NO_OPERATOR)
    others = (parse_config(model.config) for model in (*models[:number], *models[number + 1 :]))
    elsewhere = frozenset((each.domain, each.name) for other in others for each in other.operators)
    untold = () if leaves else ("what operators cost: the library's bytes are not known by operator",)
    return Library(sizes=sizes or None, untold=untold, elsewhere=elsewhere)


def _size_share(models: tuple[OrtModel, ...], number: int, leaves: tuple[Leaf, ...]) -> SizeShare | None:
    shipped = [
        ShippedModel(name=model.name, size_bytes=model.size_bytes, operators=parse_config(model.config))
        for model in models
    ]
    own = shipped.pop(number)
    return size_share(leaves, own, tuple(shipped)) if leaves else None


def _times(target: _Target, model: str) -> Iterator[OperatorTimes]:
    """Yield the times of operators on each device whose profile of this model is there."""
    for device in target.report.devices if target.report else ():
        for trace in device.traces:
            path = target.folder / trace
            if path.parent.name == model and path.is_file():
                times = operator_times(path, f"{device.device}, model '{model}'")
                yield OperatorTimes(device=device.device, times=tuple(times.items()))
