"""What the page of a model says, in words and in order; the template only lays it out.

- Which bytes of what is shipped are there for the sake of one model.
- What the page of a model is made from; what is not known yet is left out of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from ortrim.analysis.cost.counting import operator_name
from ortrim.analysis.cost.memory import ModelCost
from ortrim.analysis.cost.report import amount_text, sizes_text
from ortrim.base.console import counted, printable
from ortrim.compiling.size.accounting import Leaf, by_operator, shares
from ortrim.models.graph_facts import GraphFacts
from ortrim.models.models import OrtModel, TensorInfo
from ortrim.models.operators import RequiredOperators
from ortrim.parity.measurements import Verdict
from ortrim.report.content import gravest, measures_time
from ortrim.report.figures import NONE, bytes_text, difference_text, ms_text, name_text, share_text
from ortrim.steps.report import ModelCounts, PreparationReport, StepReport
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
