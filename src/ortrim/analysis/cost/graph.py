"""Cost: what one inference of an ONNX model takes, by its shapes alone. Nothing is run and no weight is read."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import onnx

from ortrim.analysis.cost.counting import ONNX_DOMAINS, Counting, count, operator_name
from ortrim.analysis.cost.memory import (
    NO_PEAK,
    LivenessInterval,
    ModelCost,
    NodeCost,
    Peak,
    by_operator,
    peak_of,
    planned_peak,
    workspace_of,
)
from ortrim.base.files import sha256_of
from ortrim.models.onnx_files import facts_of, graphs_of, read_names, read_onnx, require_outputs
from ortrim.models.shapes import (
    ARGUMENTS,
    BITS,
    Kinds,
    Shape,
    Shapes,
    Sizes,
    ValueSize,
    constant_nodes,
    dynamic_dimensions,
    inferred_body,
    inlined,
    known_tensors,
    open_kinds,
    sources_of,
    value_sizes,
    with_shapes,
)

VIEWS: Final = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose output is their input under another shape."""

IN_PLACE: Final = frozenset({
    "Cast", "Celu", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Relu", "Scatter", "ScatterElements",
    "Selu", "Shrink", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "ThresholdedRelu", "Trilu",
})  # fmt: skip
"""Operators that may write over their first input, as their kernels' registrations in ONNX Runtime 1.21.0 say
(`MayInplace(0, 0)` under `core/providers/cpu`); Add, Mul and others of two inputs are not among them."""

MOST_INTEGERS: Final = 64
"""Of a list that is an attribute; none that a rule reads is longer."""


def counting_of(node: onnx.NodeProto, sizes: Mapping[str, ValueSize]) -> Counting:
    """Return a node as the rules of counting take it."""
    return Counting(
        operator=operator_name(node.domain, node.op_type),
        inputs=tuple(_shape(name, sizes) for name in node.input),
        outputs=tuple(_shape(name, sizes) for name in node.output),
        attributes=dict(filter(None, map(_attribute, node.attribute))),
    )


def _shape(name: str, sizes: Mapping[str, ValueSize]) -> Shape | None:
    return sizes[name].shape if name in sizes else None


def _attribute(attribute: onnx.AttributeProto) -> tuple[str, int | str | tuple[int, ...]] | None:
    match attribute.type:
        case onnx.AttributeProto.INT:
            return attribute.name, attribute.i
        case onnx.AttributeProto.STRING:
            return attribute.name, attribute.s.decode(errors="replace")
        case onnx.AttributeProto.INTS:
            return attribute.name, tuple(attribute.ints[:MOST_INTEGERS])
        case onnx.AttributeProto.FLOATS:
            return f"{attribute.name}.length", len(attribute.floats)
        case _:
            return None


LOOPS: Final = ("Loop", "Scan", "SequenceMap")
NO_ORDER: Final = "a node comes before one whose result it reads: the execution order is not known"


@dataclass(frozen=True, kw_only=True)
class GraphCost:
    """A graph's nodes with those of the graphs inside, its peak, and how many of its nodes are constant.

    Of all graphs inside a node, `parameters` are those of branches that are not taken.
    """

    nodes: tuple[NodeCost, ...] = ()
    peak: Peak = NO_PEAK
    memory: Peak = NO_PEAK
    constant_nodes: int = 0
    parameters: int = 0
    parameter_bytes: int = 0
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a graph can see: sizes and constants of its own and from outside, with the node that makes a constant.

    `tensors` are the constants of known value; `no_parameters` those that follow from shapes; `counted` those that
    were counted as parameters so far. `kinds` say which tensors may share a buffer; None for those of equal sizes.
    """

    model: onnx.ModelProto
    counted: set[str]
    sizes: Mapping[str, ValueSize] = field(default_factory=dict)
    constants: Mapping[str, onnx.NodeProto | None] = field(default_factory=dict)
    tensors: Mapping[str, onnx.TensorProto] = field(default_factory=dict)
    no_parameters: frozenset[str] = frozenset()
    kinds: Kinds | None = None
    path: str = ""


def graph_cost(graph: onnx.GraphProto, outer: Scope, *, given: Iterable[str], weights: Iterable[str] = ()) -> GraphCost:
    """Return the cost of a graph whose shapes are inferred.

    `given` are its inputs, `weights` the constants that are neither initializers nor made by a node.
    """
    scope = _inner_scope(graph, outer, weights)
    running = [node for node in graph.node if not any(name in scope.constants for name in node.output if name)]
    wanted = {name for node in running for name in node.input} | {value.name for value in graph.output}
    opset = next((each.version for each in scope.model.opset_import if each.domain in ONNX_DOMAINS), 0)
    costs: list[NodeCost] = []
    intervals: list[LivenessInterval] = []
    planned: list[LivenessInterval] = []
    for number, node in enumerate(running):
        name = f"{outer.path}{node.name or f'{node.op_type} {number}'}"
        inner, counting = _bodies_cost(node, name, scope), counting_of(node, scope.sizes)
        costs += [_node_cost(node, name, scope, inner, counting, wanted=wanted), *inner.nodes]
        own = node.domain in ONNX_DOMAINS
        interval = LivenessInterval(
            node=name,
            reads=tuple(read_names([node])),
            makes=tuple(each for each in node.output if each),
            view=own and node.op_type in VIEWS and any(node.input[:1]),
            in_place=tuple(node.input[:1]) if own and node.op_type in IN_PLACE else (),
            inside=inner.peak,
            workspace=workspace_of(counting, opset),
        )
        intervals.append(interval)
        planned.append(replace(interval, inside=inner.memory))
    made = [name for interval in intervals for name in interval.makes]
    bytes_of = {name: size for name in (*given, *made) if (size := _bytes(name, scope)) is not None}
    inputs, outputs = tuple(given), [value.name for value in graph.output]
    peak = peak_of(intervals, bytes_of, inputs=inputs, outputs=outputs)
    memory = planned_peak(planned, bytes_of, _kinds(scope, bytes_of), inputs=inputs, outputs=outputs)
    unknown = () if _in_order(intervals, set(made)) else (NO_ORDER,)
    constant = len(graph.node) - len(running)
    return GraphCost(nodes=tuple(costs), peak=peak, memory=memory, constant_nodes=constant, unknown=unknown)


def _kinds(scope: Scope, names: Iterable[str]) -> Kinds:
    """Return what makes tensors alike for a plan: what was known before sizes were given, else all that is known."""
    if scope.kinds is not None:
        return scope.kinds
    sizes = {name: scope.sizes[name] for name in names}
    return {name: (BITS[size.element_type], size.shape) for name, size in sizes.items() if size.shape}


def _inner_scope(graph: onnx.GraphProto, outer: Scope, weights: Iterable[str]) -> Scope:
    own: dict[str, onnx.NodeProto | None] = dict.fromkeys((*weights, *(each.name for each in graph.initializer)))
    own |= dict.fromkeys(each.values.name for each in graph.sparse_initializer)
    known = {**outer.constants, **own}
    return replace(
        outer,
        sizes={**outer.sizes, **value_sizes(graph)},
        constants={**known, **constant_nodes(graph, known.keys())},
        tensors={**outer.tensors, **known_tensors(graph)},
    )


def _bodies_cost(node: onnx.NodeProto, name: str, scope: Scope) -> GraphCost:
    """Count each graph inside a node once; of branches, the one with more arithmetic, and the higher peak."""
    costs = []
    for body in graphs_of(node):
        graph, values = inferred_body(scope.model, node, body, scope.sizes, scope.tensors)
        inner = replace(scope, path=f"{name}/", kinds=None, no_parameters=scope.no_parameters | values)
        costs.append(graph_cost(graph, inner, given=[value.name for value in body.input]))
    costs.sort(key=lambda each: (sum(node.macs for node in each.nodes), sum(node.operations for node in each.nodes)))
    taken = costs if node.op_type != "If" else costs[-1:]
    left = [each for cost in costs[: len(costs) - len(taken)] for each in cost.nodes]
    return GraphCost(
        nodes=tuple(each for cost in taken for each in cost.nodes),
        peak=max((cost.peak for cost in costs), key=lambda peak: peak.size_bytes, default=NO_PEAK),
        memory=max((cost.memory for cost in costs), key=lambda memory: memory.size_bytes, default=NO_PEAK),
        parameters=sum(each.parameters for each in left),
        parameter_bytes=sum(each.parameter_bytes for each in left),
        unknown=tuple(dict.fromkeys(words for cost in costs for words in cost.unknown)),
    )


def _node_cost(
    node: onnx.NodeProto, name: str, scope: Scope, inner: GraphCost, counting: Counting, *, wanted: set[str]
) -> NodeCost:
    macs, operations, uncounted = count(counting)
    parameters, parameter_bytes = _parameters(node, scope)
    missing = [each for each in node.output if each in wanted and _bytes(each, scope) is None]
    unknown = (
        *((uncounted,) if uncounted else ()),
        *(f"the size of '{each}' is not known" for each in missing if each),
        *(("its body is counted once",) if node.op_type in LOOPS else ()),
        *inner.unknown,
    )
    return NodeCost(
        name=name,
        operator=counting.operator,
        macs=macs,
        operations=operations,
        parameters=parameters + inner.parameters,
        parameter_bytes=parameter_bytes + inner.parameter_bytes,
        output_bytes=sum(_bytes(each, scope) or 0 for each in node.output),
        unknown=unknown,
    )


def _parameters(node: onnx.NodeProto, scope: Scope) -> tuple[int, int]:
    """Return the elements and bytes of the constants that this node is the first to read."""
    elements = size_bytes = 0
    for name in node.input:
        for source in sources_of(name, scope.constants) if name in scope.constants else ():
            size = scope.sizes.get(source)
            if source in scope.counted or source in scope.no_parameters or not size or size.element_type in ARGUMENTS:
                continue
            scope.counted.add(source)
            elements += 0 if size.shape is None else math.prod(size.shape)
            size_bytes += size.size_bytes or 0
    return elements, size_bytes


def _bytes(name: str, scope: Scope) -> int | None:
    return scope.sizes[name].size_bytes if name in scope.sizes else None


def _in_order(intervals: Iterable[LivenessInterval], own: set[str]) -> bool:
    made: set[str] = set()
    for interval in intervals:
        if any(name in own and name not in made for name in interval.reads):
            return False
        made |= set(interval.makes)
    return True


def cost_of(
    path: Path, *, name: str, where: str, dimensions: Sizes | None = None, shapes: Shapes | None = None, case: str = ""
) -> ModelCost:
    """Return the cost of a model for some sizes of dimensions, or shapes of inputs, by name; `case` is for people."""
    model = inlined(read_onnx(path, where), where)
    facts = facts_of(model, sha256_of(path), path.stat().st_size, where)
    require_outputs(facts, where)
    given = tuple(info.name for info in facts.inputs)
    weights = {tensor.name for tensor in model.graph.initializer}
    kinds = open_kinds(model, where) if dynamic_dimensions(model) else None
    inferred, values = with_shapes(model, where, dimensions=dimensions or {}, shapes=shapes or {})
    scope = Scope(model=inferred, counted=set(), no_parameters=values, kinds=kinds)
    cost = graph_cost(inferred.graph, scope, given=given, weights=weights)
    known = {value.name: _open_shape(value.type.tensor_type) for value in inferred.graph.input}
    inputs, dynamic = tuple((name, known.get(name)) for name in given), dynamic_dimensions(inferred)
    options = " ".join(f"--dim {name}=..." for name in dynamic)
    unknown = (
        *cost.unknown,
        *((f"the inputs have dynamic dimensions: give {options}",) if dynamic else ()),
        *(f"input '{name}' may have any number of dimensions" for name, shape in inputs if shape is None),
    )
    return ModelCost(
        model=name,
        sha256=facts.sha256,
        case=case,
        inputs=inputs,
        macs=sum(node.macs for node in cost.nodes),
        operations=sum(node.operations for node in cost.nodes),
        parameters=sum(node.parameters for node in cost.nodes),
        parameter_bytes=sum(node.parameter_bytes for node in cost.nodes),
        peak=cost.peak,
        memory=cost.memory,
        constant_nodes=cost.constant_nodes,
        at_least=bool(unknown) or any(node.unknown for node in cost.nodes),
        unknown=unknown,
        operators=by_operator(cost.nodes),
        nodes=cost.nodes,
    )


def open_dimensions(path: Path, where: str) -> tuple[str, ...]:
    """Return the names of the dimensions that a model's inputs leave open."""
    return dynamic_dimensions(read_onnx(path, where))


def _open_shape(tensor: onnx.TypeProto.Tensor) -> tuple[int | None, ...] | None:
    if not tensor.HasField("shape"):
        return None
    return tuple(each.dim_value if each.HasField("dim_value") else None for each in tensor.shape.dim)
