"""The cost of a graph's nodes, and of the graphs inside them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import onnx

from ortrim.core.counting import ONNX_DOMAINS, Arithmetic, count, operator_name
from ortrim.core.lifetimes import Moment, peak_of
from ortrim.core.model_cost import NodeCost, Peak
from ortrim.core.run_plan import planned_peak
from ortrim.core.workspaces import workspace_of
from ortrim.models.bodies import inferred_body
from ortrim.models.constants import constant_nodes, sources_of
from ortrim.models.counted_nodes import counting_of, moment_of
from ortrim.models.onnx_reading import graphs_of
from ortrim.models.shape_values import known_tensors
from ortrim.models.static_shapes import Kinds
from ortrim.models.value_sizes import ARGUMENTS, BITS, ValueSize, value_sizes

LOOPS: Final = ("Loop", "Scan", "SequenceMap")
NO_ORDER: Final = "a node stands before one whose result it reads: the order of running is not known"


@dataclass(frozen=True, kw_only=True)
class GraphCost:
    """A graph's nodes with those of the graphs inside, its peak, and how many of its nodes are constant."""

    nodes: tuple[NodeCost, ...]
    peak: Peak
    memory: Peak
    constant_nodes: int
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
    costs: list[NodeCost] = []
    moments: list[Moment] = []
    planned: list[Moment] = []
    for number, node in enumerate(running):
        name = f"{outer.path}{node.name or f'{node.op_type} {number}'}"
        inner = _bodies_cost(node, name, scope)
        costs += [_node_cost(node, name, scope, inner, wanted), *inner.nodes]
        workspace = workspace_of(counting_of(node, scope.sizes), _opset(scope))
        moments.append(moment_of(node, name, inner.peak, workspace))
        planned.append(replace(moments[-1], inside=inner.memory))
    own = [name for moment in moments for name in moment.makes]
    bytes_of = {name: size for name in (*given, *own) if (size := _bytes(name, scope)) is not None}
    inputs, outputs = tuple(given), [value.name for value in graph.output]
    peak = peak_of(moments, bytes_of, inputs=inputs, outputs=outputs)
    memory = planned_peak(planned, bytes_of, _kinds(scope, bytes_of), inputs=inputs, outputs=outputs)
    unknown = () if _in_order(moments, set(own)) else (NO_ORDER,)
    constant = len(graph.node) - len(running)
    return GraphCost(nodes=tuple(costs), peak=peak, memory=memory, constant_nodes=constant, unknown=unknown)


def _kinds(scope: Scope, names: Iterable[str]) -> Kinds:
    """Return what makes tensors alike for a plan: what was known before sizes were given, else all that is known."""
    if scope.kinds is not None:
        return scope.kinds
    sizes = {name: scope.sizes[name] for name in names}
    return {name: (BITS[size.element_type], size.shape) for name, size in sizes.items() if size.shape}


def _opset(scope: Scope) -> int:
    return next((each.version for each in scope.model.opset_import if each.domain in ONNX_DOMAINS), 0)


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


@dataclass(frozen=True, kw_only=True)
class Bodies:
    """What the graphs inside a node add: the nodes that run, the peak, and parameters of branches not taken."""

    nodes: tuple[NodeCost, ...] = ()
    peak: Peak | None = None
    memory: Peak | None = None
    parameters: int = 0
    parameter_bytes: int = 0
    unknown: tuple[str, ...] = ()


def _bodies_cost(node: onnx.NodeProto, name: str, scope: Scope) -> Bodies:
    """Count each graph inside a node once; of branches, the one with more arithmetic, and the higher peak."""
    costs = [_body_cost(node, body, name, scope) for body in graphs_of(node)]
    if not costs:
        return Bodies()
    costs.sort(key=lambda each: (sum(node.macs for node in each.nodes), sum(node.operations for node in each.nodes)))
    taken = costs if node.op_type != "If" else costs[-1:]
    left = [each for cost in costs[: len(costs) - len(taken)] for each in cost.nodes]
    return Bodies(
        nodes=tuple(each for cost in taken for each in cost.nodes),
        peak=max((cost.peak for cost in costs), key=lambda peak: peak.size_bytes),
        memory=max((cost.memory for cost in costs), key=lambda memory: memory.size_bytes),
        parameters=sum(each.parameters for each in left),
        parameter_bytes=sum(each.parameter_bytes for each in left),
        unknown=tuple(dict.fromkeys(words for cost in costs for words in cost.unknown)),
    )


def _body_cost(node: onnx.NodeProto, body: onnx.GraphProto, name: str, scope: Scope) -> GraphCost:
    graph, values = inferred_body(scope.model, node, body, scope.sizes, scope.tensors)
    inner = replace(scope, path=f"{name}/", kinds=None, no_parameters=scope.no_parameters | values)
    return graph_cost(graph, inner, given=[value.name for value in body.input])


def _node_cost(node: onnx.NodeProto, name: str, scope: Scope, inner: Bodies, wanted: set[str]) -> NodeCost:
    arithmetic: Arithmetic = count(counting_of(node, scope.sizes))
    parameters, parameter_bytes = _parameters(node, scope)
    missing = [each for each in node.output if each in wanted and _bytes(each, scope) is None]
    unknown = (
        *((arithmetic.unknown,) if arithmetic.unknown else ()),
        *(f"the size of '{each}' is not known" for each in missing if each),
        *(("its body is counted once",) if node.op_type in LOOPS else ()),
        *inner.unknown,
    )
    return NodeCost(
        name=name,
        operator=operator_name(node.domain, node.op_type),
        macs=arithmetic.macs,
        operations=arithmetic.operations,
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


def _in_order(moments: Iterable[Moment], own: set[str]) -> bool:
    made: set[str] = set()
    for moment in moments:
        if any(name in own and name not in made for name in moment.reads):
            return False
        made |= set(moment.makes)
    return True
