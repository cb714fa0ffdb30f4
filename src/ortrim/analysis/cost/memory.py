"""What a model costs by its shapes alone: arithmetic, parameters and the memory of its activations.

The rules of counting are those of `docs/explanation/how-it-measures.md`.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ortrim.analysis.cost.counting import Counting, Uncountable, required
from ortrim.models.shapes import Kinds, Shape


@dataclass(frozen=True, kw_only=True)
class NodeCost:
    """One node's cost.

    `name` is a path when the node lies in a graph inside another node. `operator` is `Conv`, or `com.microsoft:QGemm`
    outside ONNX's own domain. `macs` are multiply-accumulates, `operations` the elements that operators without any
    of these work on; both leave out what `unknown` says, in words. `parameters` are elements of constants, counted at
    their first reader. `output_bytes` is the memory of the outputs.
    """

    name: str
    operator: str
    macs: int
    operations: int
    parameters: int
    parameter_bytes: int
    output_bytes: int
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LiveTensor:
    """A tensor that is in memory at the peak."""

    name: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The most memory that activations take at a time: while which node runs, and for which tensors, largest first.

    `timeline` has each node in the order of running, those of the graphs inside in place of the node around them, with
    the bytes of what is alive while it runs.
    """

    size_bytes: int
    node: str
    tensors: tuple[LiveTensor, ...]
    timeline: tuple[tuple[str, int], ...] = ()


NO_PEAK: Final = Peak(size_bytes=0, node="", tensors=())


@dataclass(frozen=True, kw_only=True)
class OperatorCost:
    """The sum over the nodes of one operator."""

    operator: str
    nodes: int
    macs: int
    operations: int
    parameters: int
    parameter_bytes: int
    output_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModelCost:
    """The cost of one inference of a model with inputs of the given shapes; None for a dimension that is not known.

    `nodes` are those that run, in the order of the file. `constant_nodes` is the number of those that depend on no
    input: they are worked out when the model is loaded. `memory` is what a run of ONNX Runtime takes for activations
    and its kernels, by its own plan of buffers and without an arena. With `at_least`, something could not be counted,
    and every sum is a lower bound; `unknown` says what, for the model as a whole.
    """

    model: str
    sha256: str
    case: str
    inputs: tuple[tuple[str, tuple[int | None, ...] | None], ...]
    macs: int
    operations: int
    parameters: int
    parameter_bytes: int
    peak: Peak
    constant_nodes: int
    at_least: bool
    unknown: tuple[str, ...]
    operators: tuple[OperatorCost, ...]
    nodes: tuple[NodeCost, ...]
    memory: Peak = NO_PEAK


def by_operator(nodes: Iterable[NodeCost]) -> tuple[OperatorCost, ...]:
    """Sum nodes up by operator; the one with the most arithmetic comes first."""
    groups: dict[str, list[NodeCost]] = {}
    for node in nodes:
        groups.setdefault(node.operator, []).append(node)
    sums = (
        OperatorCost(
            operator=operator,
            nodes=len(group),
            macs=sum(node.macs for node in group),
            operations=sum(node.operations for node in group),
            parameters=sum(node.parameters for node in group),
            parameter_bytes=sum(node.parameter_bytes for node in group),
            output_bytes=sum(node.output_bytes for node in group),
        )
        for operator, group in groups.items()
    )
    return tuple(sorted(sums, key=lambda each: (-each.macs, -each.operations, each.operator)))


WORKSPACE: Final = "(the kernel's own)"
"""Stands among tensors for what a kernel takes for itself."""


@dataclass(frozen=True, kw_only=True)
class LivenessInterval:
    """One node's turn: the tensors that it reads and makes, and what it needs besides, as the graphs inside it do.

    `view` says that the first output is the first input under another shape. `in_place` are inputs whose memory the
    first output may take over when nothing reads them any more and both are of one size. `workspace` is the memory in
    bytes that the kernel itself takes while it runs.
    """

    node: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    view: bool = False
    in_place: tuple[str, ...] = ()
    inside: Peak = NO_PEAK
    workspace: int = 0


def peak_of(
    intervals: Sequence[LivenessInterval],
    sizes: Mapping[str, int],
    *,
    inputs: Collection[str],
    outputs: Collection[str],
) -> Peak:
    """Return the peak over all intervals. `sizes` in bytes are those of activations; what is not in it takes nothing.

    `inputs` and `outputs` belong to who runs the model: the ones are there from the first interval to the last, the
    others from when they are made to the last.
    """
    owners = _owners(intervals, sizes, kept={*inputs, *outputs})
    return peak_over([replace(each, workspace=0) for each in intervals], sizes, owners, kept=(inputs, outputs))


def peak_over(
    intervals: Sequence[LivenessInterval],
    sizes: Mapping[str, int],
    owners: Mapping[str, str],
    *,
    kept: tuple[Collection[str], Collection[str]],
) -> Peak:
    """Return the peak over intervals in their order when `owners` says whose memory each tensor lies in.

    `kept` are the inputs and the outputs of the run.
    """
    inputs, outputs = kept
    last = _last_reads(intervals, owners, kept={*inputs, *outputs})
    live = {name: sizes[name] for name in inputs if name in sizes}
    best = Peak(size_bytes=sum(live.values()), node="", tensors=_tensors(live))
    timeline = []
    for number, interval in enumerate(intervals):
        live |= {owners[name]: sizes[owners[name]] for name in interval.makes if name in owners}
        inside, outside = interval.inside, sum(live.values())
        total = outside + inside.size_bytes + interval.workspace
        timeline += [(name, outside + size) for name, size in inside.timeline] or [(interval.node, total)]
        if total > best.size_bytes:
            own = (LiveTensor(name=WORKSPACE, size_bytes=interval.workspace),) if interval.workspace else ()
            tensors = (*_tensors(live), *own, *inside.tensors)
            best = Peak(size_bytes=total, node=inside.node or interval.node, tensors=tensors)
        live = {name: size for name, size in live.items() if last.get(name, -1) > number}
    return replace(best, timeline=tuple(timeline))


def _owners(
    intervals: Sequence[LivenessInterval], sizes: Mapping[str, int], *, kept: Collection[str]
) -> dict[str, str]:
    """Return whose memory each tensor lies in: its own, or that of an earlier one that it views or takes over."""
    owners = {name: name for name in sizes}
    reads = _last_reads(intervals, owners, kept=kept)
    freed = dict(reads)

    def source(interval: LivenessInterval, number: int, made: str) -> str | None:
        """Return the owner of the memory that an interval's first output may lie in, None for one of its own."""
        if interval.view and interval.reads and interval.reads[0] in sizes:
            return owners[interval.reads[0]]
        taken = (owners[name] for name in interval.in_place if name in owners)
        return next((each for each in taken if freed.get(each, number) <= number and sizes[each] == sizes[made]), None)

    for number, interval in enumerate(intervals):
        for made in interval.makes[:1]:
            if made in sizes and (owner := source(interval, number, made)) is not None:
                owners[made] = owner
                freed[owner] = max(freed.get(owner, number), reads.get(made, number))
    return owners


def _last_reads(
    intervals: Sequence[LivenessInterval], owners: Mapping[str, str], *, kept: Collection[str]
) -> dict[str, int]:
    """Return the number of the interval in which each owner's memory is last read; those `kept` outlive the run."""
    last = {}
    for number, interval in enumerate(intervals):
        for name in (*interval.makes, *interval.reads):
            if name in owners:
                last[owners[name]] = number
    return last | {owners[name]: len(intervals) for name in kept if name in owners}


def _tensors(live: Mapping[str, int]) -> tuple[LiveTensor, ...]:
    largest = sorted(live.items(), key=lambda each: (-each[1], each[0]))
    return tuple(LiveTensor(name=name, size_bytes=size) for name, size in largest)


def planned_peak(
    intervals: Sequence[LivenessInterval],
    sizes: Mapping[str, int],
    kinds: Kinds,
    *,
    inputs: Collection[str],
    outputs: Sequence[str],
) -> Peak:
    """Return the most memory that a run takes at a time, kernels' own included, and while which node.

    `sizes` in bytes are those of activations; what is not in it takes nothing. A tensor without a kind gets a buffer
    of its own. `inputs` and `outputs` are counted through the whole run and from when they are made.
    """
    ordered = [intervals[number] for number in running_order(intervals)]
    plan = _Plan(uses=_uses(ordered, inputs, outputs), kinds=kinds, outputs=frozenset(outputs))
    for interval in ordered:
        plan.place(interval)
    owners = {name: name for name in inputs} | plan.owners
    owners = {name: owner for name, owner in owners.items() if owner in sizes}
    return peak_over(ordered, sizes, owners, kept=(inputs, outputs))


def running_order(intervals: Sequence[LivenessInterval]) -> tuple[int, ...]:
    """Return the numbers of the intervals in the order in which ONNX Runtime runs them.

    From the nodes whose results no node reads, backwards and depth first; of several inputs' nodes the one that stands
    last in the file first.
    """
    makers = {name: number for number, interval in enumerate(intervals) for name in interval.makes}
    before = [sorted({makers[name] for name in interval.reads if name in makers}) for interval in intervals]
    read = {number for numbers in before for number in numbers}
    stack = [(number, False) for number in range(len(intervals)) if number not in read]
    seen: set[int] = set()
    order: list[int] = []
    while stack:
        number, left = stack.pop()
        if left:
            order.append(number)
        elif number not in seen:
            seen.add(number)
            stack.append((number, True))
            stack += [(each, False) for each in before[number] if each not in seen]
    return (*order, *(number for number in range(len(intervals)) if number not in seen))


def _uses(intervals: Sequence[LivenessInterval], inputs: Collection[str], outputs: Collection[str]) -> Counter[str]:
    """Count what keeps a tensor: its maker and each reader, and the caller, to whom inputs and outputs belong."""
    uses = Counter((*inputs, *outputs))
    for interval in intervals:
        uses.update((*interval.makes, *interval.reads))
    return uses


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Whose buffer each tensor lies in, how often each buffer is still used, and the buffers that are free."""

    uses: Counter[str]
    kinds: Kinds
    outputs: frozenset[str]
    owners: dict[str, str] = field(default_factory=dict)
    free: deque[str] = field(default_factory=deque)

    def place(self, interval: LivenessInterval) -> None:
        """Give an interval's results their buffers, then set free what is used for the last time."""
        for number, name in enumerate(interval.makes):
            source = None if name in self.outputs else self._source(interval, number, name)
            self.owners[name] = name if source is None else source
            if source is not None:
                self.uses[source] += self.uses[name]
        for name in (*interval.reads, *interval.makes):
            owner = self.owners.get(name, name)
            self.uses[owner] -= 1
            if self.uses[owner] == 0:
                self.free.appendleft(owner)

    def _source(self, interval: LivenessInterval, number: int, name: str) -> str | None:
        if number == 0 and interval.view and interval.reads:
            return self.owners.get(interval.reads[0], interval.reads[0])
        kind = self.kinds.get(name)
        if kind is None:
            return None
        given = interval.in_place if number == 0 else ()
        owners = ((self.owners.get(each, each), each) for each in given)
        own = next((owner for owner, each in owners if self.uses[owner] == 1 and self.kinds.get(each) == kind), None)
        return own if own is not None or self.uses[name] < 2 else self._freed(kind)

    def _freed(self, kind: Hashable) -> str | None:
        found = next((owner for owner in self.free if self.kinds.get(owner) == kind), None)
        if found is not None:
            self.free.remove(found)
        return found


FLOAT_BYTES: Final = 4
LAST_AXIS_OPSET: Final = 13
"""From here on Softmax works along one axis; before, along all from it on, which is a matrix as it lies in memory."""


def workspace_of(node: Counting, opset: int) -> int:
    """Return the bytes that a node's kernel takes for itself; 0 also when its shapes are not known."""
    rule = RULES.get(node.operator)
    try:
        return rule(node, opset) if rule else 0
    except Uncountable:
        return 0


def _convolution(node: Counting, _opset: int) -> int:
    """Return the image laid out for one product: only when there are more filters than places (`convolve.cpp`).

    With fewer filters that is done in strips, whose 64 KiB or so for each thread are left out.
    """
    image, filters = required(node.inputs, 0, "the input"), required(node.inputs, 1, "the weights")
    places = math.prod(required(node.outputs, 0, "the output")[2:])
    row = math.prod(filters[1:])
    plain = set(node.integers("strides")) <= {1} and set(node.integers("pads")) <= {0}
    if len(image) < 3 or len(filters) < 2 or (plain and row == filters[1]):
        return 0
    return places * row * FLOAT_BYTES if filters[0] // max(node.integer("group", 1), 1) > places else 0


def _transposed_convolution(node: Counting, _opset: int) -> int:
    """Return the columns of one image before they are added up (`conv_transpose.cc`: `col_buffer_size`)."""
    image: Shape = required(node.inputs, 0, "the input")
    return math.prod(image[2:]) * math.prod(required(node.inputs, 1, "the weights")[1:]) * FLOAT_BYTES


def _softmax(node: Counting, opset: int) -> int:
    """Return the input turned and the output before it is turned back, along any but the last axis (`softmax.cc`)."""
    shape = required(node.inputs, 0, "the input")
    axis = node.integer("axis", -1)
    last = axis in {-1, len(shape) - 1}
    return 0 if last or opset < LAST_AXIS_OPSET else 2 * math.prod(shape) * FLOAT_BYTES


def _normalisation(node: Counting, _opset: int) -> int:
    """Return the scales, and one image's squares with the channels around it (`lrn.cc`)."""
    shape = required(node.inputs, 0, "the input", rank=4)
    squares = (shape[1] + node.integer("size", 1) - 1) * math.prod(shape[2:])
    return (math.prod(shape) + squares) * FLOAT_BYTES


def _recurrent(gates: int) -> Callable[[Counting, int], int]:
    """Return all steps' gates of each direction, and what runs backwards turned.

    Of `uni_directional_lstm.cc` and `deep_cpu_gru.cc`.
    """

    def size(node: Counting, _opset: int) -> int:
        steps, batch, width = required(node.inputs, 0, "the input", rank=3)
        directions = required(node.inputs, 1, "the weights", rank=3)[0]
        hidden = required(node.inputs, 2, "the recurrent weights", rank=3)[2]
        turned = 0 if node.text("direction") in {"", "forward"} else width + hidden
        return steps * batch * (directions * gates * hidden + turned) * FLOAT_BYTES

    return size


def _integers(node: Counting, _opset: int) -> int:
    """Return the image laid out for one product, in bytes (`conv_integer.cc`)."""
    filters = required(node.inputs, 1, "the weights")
    plain = set(node.integers("strides")) <= {1} and set(node.integers("pads")) <= {0}
    if plain and math.prod(filters[2:]) == 1:
        return 0
    return math.prod(required(node.outputs, 0, "the output")[2:]) * math.prod(filters[1:])


def _attention(node: Counting, _opset: int) -> int:
    """Return queries, keys and values, the weights of all heads, and the result by heads (`attention_cpu_base.h`)."""
    batch, length, _ = required(node.inputs, 0, "the input", rank=3)
    made = required(node.inputs, 1, "the weights", rank=2)[1]
    width = required(node.outputs, 0, "the output", rank=3)[2]
    return batch * length * (made + node.integer("num_heads", 1) * length + width) * FLOAT_BYTES


def _like_output(node: Counting, _opset: int) -> int:
    """Return four bytes for each element of the output (`bias_gelu.cc`, `quantize_linear_matmul.cc`)."""
    return math.prod(required(node.outputs, 0, "the output")) * FLOAT_BYTES


def _quantized_input(node: Counting, _opset: int) -> int:
    """Return a byte for each element of the input (`dynamic_quantize_matmul.cc`)."""
    return math.prod(required(node.inputs, 0, "the input"))


RULES: Final[Mapping[str, Callable[[Counting, int], int]]] = {
    **dict.fromkeys(("Conv", "com.microsoft:FusedConv"), _convolution),
    "ConvTranspose": _transposed_convolution,
    "ConvInteger": _integers,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    "LRN": _normalisation,
    "LSTM": _recurrent(4),
    "GRU": _recurrent(3),
    "com.microsoft:Attention": _attention,
    **dict.fromkeys(("com.microsoft:BiasGelu", "QLinearMatMul"), _like_output),
    "com.microsoft:DynamicQuantizeMatMul": _quantized_input,
}
"""By operator; the integers of `QLinearConv` depend on the processor and are left out."""
