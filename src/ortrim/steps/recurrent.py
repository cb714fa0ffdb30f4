"""GRU and LSTM as the matrix products and activations that they are, for sequences of fixed length."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx

from ortrim.buildspec.step_specs import ExpandRecurrent
from ortrim.models.graph import (
    Array,
    Names,
    NodeWriter,
    Shapes,
    Wiring,
    attributes_of,
    drop_unread,
    is_onnx,
    opset_of,
    replace_nodes,
    shapes_of,
    wired_graphs,
)
from ortrim.steps.step import Stepped

GATES: Final = {"GRU": 3, "LSTM": 4}
DEFAULTS: Final = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
PLAIN: Final = {name.lower(): name for name in ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")}
"""Activations without numbers of their own; ONNX does not mind their case."""
UNUSUAL: Final = {"clip": 0.0, "input_forget": 0, "activation_alpha": [], "activation_beta": [], "layout": 0}
"""Attributes that are not expanded unless they say this."""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a recurrence. Weights are (inputs, gates x hidden), (hidden, gates x hidden); a bias, each."""

    backward: bool
    weights: Array
    recurrent: Array
    bias: Array
    recurrent_bias: Array
    activations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """All of a node: `hidden` numbers of state, and its directions in their order."""

    hidden: int
    directions: tuple[Direction, ...]
    linear_before_reset: bool


def read_recurrence(node: onnx.NodeProto, wiring: Wiring) -> Recurrence | str:
    """Return what a node works out, or in words why it cannot be expanded."""
    attributes = attributes_of(node)
    unusual = [name for name, usual in UNUSUAL.items() if attributes.get(name, usual) != usual]
    unusual += [name for at, name in ((4, "lengths of sequences"), (7, "peepholes")) if any(node.input[at : at + 1])]
    if unusual:
        return "it has " + ", ".join(unusual)
    backward = DIRECTIONS.get(attributes.get("direction", "forward"))
    activations = _activations(node.op_type, attributes, len(backward or ()))
    weights = _weights(node, wiring)
    if backward is None or activations is None:
        return "its direction or its activations are not supported"
    if weights is None or not _fit(*weights, count=len(backward), gates=GATES[node.op_type]):
        return "its weights are not constants of the right shape"
    return Recurrence(
        hidden=weights[1].shape[2],
        directions=tuple(
            _direction(backwards, activations[index], *(each[index] for each in weights))
            for index, backwards in enumerate(backward)
        ),
        linear_before_reset=bool(attributes.get("linear_before_reset", 0)),
    )


def _activations(operator: str, attributes: Mapping[str, Any], count: int) -> list[tuple[str, ...]] | None:
    default, named = DEFAULTS[operator], attributes.get("activations")
    is_named = isinstance(named, list) and all(isinstance(each, bytes) for each in named)
    given = [str(each, "utf-8", "replace") for each in named or ()] if is_named else []
    names = [PLAIN.get(name.lower()) for name in given or default * count]
    known = [name for name in names if name is not None]
    if len(known) != len(names) or len(known) != len(default) * count:
        return None
    return [tuple(known[start : start + len(default)]) for start in range(0, len(known), len(default))]


def _weights(node: onnx.NodeProto, wiring: Wiring) -> tuple[Array, Array, Array] | None:
    """Return W, R and B as ONNX has them."""
    if len(node.input) < 3:
        return None
    weights, recurrent = wiring.constant(node.input[1]), wiring.constant(node.input[2])
    if weights is None or recurrent is None or weights.ndim != 3 or recurrent.ndim != 3:
        return None
    none = np.zeros((weights.shape[0], 2 * weights.shape[1]), weights.dtype)
    bias = wiring.constant(node.input[3]) if any(node.input[3:4]) else none
    return None if bias is None else (weights, recurrent, bias)


def _fit(weights: Array, recurrent: Array, bias: Array, *, count: int, gates: int) -> bool:
    hidden = recurrent.shape[2]
    return (
        hidden > 0
        and weights.dtype.kind == "f"
        and weights.dtype == recurrent.dtype == bias.dtype
        and weights.shape[:2] == recurrent.shape[:2] == (count, gates * hidden)
        and bias.shape == (count, 2 * gates * hidden)
    )


def _direction(
    backward: bool,  # noqa: FBT001 - one of a tuple's
    activations: tuple[str, ...],
    weights: Array,
    recurrent: Array,
    bias: Array,
) -> Direction:
    half = len(bias) // 2
    return Direction(
        backward=backward,
        weights=weights.T,
        recurrent=recurrent.T,
        bias=bias[:half],
        recurrent_bias=bias[half:],
        activations=activations,
    )


STARTS: Final = {"GRU": (5,), "LSTM": (5, 6)}
"""Where a node's inputs have the states to begin with."""
GATES_AXIS: Final = 2
Turn = Callable[[str, list[str]], list[str]]
"""Takes the products of one time step's input and the states, and returns the new states, the one to give out first."""


def unroll(node: onnx.NodeProto, recurrence: Recurrence, length: int, writer: NodeWriter) -> None:
    """Write the nodes that give the outputs of `node`, for a sequence of `length`."""
    starts = [_starts(node, recurrence, index, writer) for index in STARTS[node.op_type]]
    given, ends = list[str](), [list[str]() for _ in starts]
    for index, direction in enumerate(recurrence.directions):
        turn = TURNS[node.op_type](recurrence, direction, writer)
        gates = _products(node.input[0], recurrence, direction, length, writer)
        outputs, states = _taken(turn, gates, [start[index] for start in starts], backward=direction.backward)
        if any(node.output[:1]):
            given.append(writer.unsqueeze(writer.add("Concat", *outputs, axis=0), 1))
        for end, state in zip(ends, states, strict=True):
            end.append(state)
    for axis, name, values in zip((1, 0, 0), node.output, (given, *ends), strict=False):
        if name:
            writer.add("Concat", *values, output=name, axis=axis)


def _starts(node: onnx.NodeProto, recurrence: Recurrence, index: int, writer: NodeWriter) -> list[str]:
    """Return the states to begin with, one for each direction."""
    count = len(recurrence.directions)
    if any(node.input[index : index + 1]):
        return writer.split(node.input[index], [1] * count, axis=0)
    kind = recurrence.directions[0].weights.dtype
    return [writer.constant("zeros", np.zeros((1, 1, recurrence.hidden), kind))] * count


def _products(source: str, recurrence: Recurrence, direction: Direction, length: int, writer: NodeWriter) -> list[str]:
    """Write the products of the whole input with the weights, and return those of each time step."""
    bias = direction.bias + direction.recurrent_bias
    if recurrence.linear_before_reset:
        bias[2 * recurrence.hidden :] = direction.bias[2 * recurrence.hidden :]
    product = writer.add("MatMul", source, writer.constant("W", direction.weights))
    return writer.split(writer.add("Add", product, writer.constant("B", bias)), [1] * length, axis=0)


def _taken(turn: Turn, gates: list[str], states: list[str], *, backward: bool) -> tuple[list[str], list[str]]:
    """Write all time steps; return what they give, in the order of the sequence, and the last states."""
    given = []
    for each in reversed(gates) if backward else gates:
        states = turn(each, states)
        given.append(states[0])
    return given[::-1] if backward else given, states


def _lstm(recurrence: Recurrence, direction: Direction, writer: NodeWriter) -> Turn:
    """Gates are input, output, forget and cell; the first three have one activation."""
    hidden, (gate, cell, out) = recurrence.hidden, direction.activations
    recurrent = writer.constant("R", direction.recurrent)

    def turn(gates: str, states: list[str]) -> list[str]:
        both = writer.add("Add", gates, writer.add("MatMul", states[0], recurrent))
        opening, candidate = writer.split(both, [3 * hidden, hidden], axis=GATES_AXIS)
        opened, given, kept = writer.split(writer.add(gate, opening), [hidden] * 3, axis=GATES_AXIS)
        new = writer.add("Mul", opened, writer.add(cell, candidate))
        memory = writer.add("Add", writer.add("Mul", kept, states[1]), new)
        return [writer.add("Mul", given, writer.add(out, memory)), memory]

    return turn


def _gru(recurrence: Recurrence, direction: Direction, writer: NodeWriter) -> Turn:
    """Gates are update, reset and hidden; the new state is `h + z * (H - h)`."""
    hidden, (gate, out) = recurrence.hidden, direction.activations
    opening = writer.constant("R", direction.recurrent[:, : 2 * hidden])
    candidate = writer.constant("R", direction.recurrent[:, 2 * hidden :])
    linear = recurrence.linear_before_reset
    bias = writer.constant("B", direction.recurrent_bias[2 * hidden :]) if linear else ""

    def turn(gates: str, states: list[str]) -> list[str]:
        state = states[0]
        first, last = writer.split(gates, [2 * hidden, hidden], axis=GATES_AXIS)
        opened = writer.add(gate, writer.add("Add", first, writer.add("MatMul", state, opening)))
        update, reset = writer.split(opened, [hidden] * 2, axis=GATES_AXIS)
        if linear:
            product = writer.add("Add", writer.add("MatMul", state, candidate), bias)
            seen = writer.add("Mul", reset, product)
        else:
            seen = writer.add("MatMul", writer.add("Mul", reset, state), candidate)
        new = writer.add(out, writer.add("Add", last, seen))
        return [writer.add("Add", new, writer.add("Mul", update, writer.add("Sub", state, new)))]

    return turn


TURNS: Final = {"GRU": _gru, "LSTM": _lstm}


Expansion = tuple[Recurrence, int]
"""A recurrence, and the time steps that it takes."""


def expand_recurrent(model: onnx.ModelProto, options: ExpandRecurrent) -> Stepped:
    """Expand what the options name, and say of each that stays why."""
    names, shapes, opset = Names(model), shapes_of(model), opset_of(model)
    notes, unread = list[str](), list[str]()
    for graph, wiring in wired_graphs(model):
        nodes = list[onnx.NodeProto]()
        for node in graph.node:
            found = _expandable(node, wiring, shapes, options)
            writer = NodeWriter(graph, names, opset, node.name or node.op_type)
            name = f"{node.op_type} {node.name or ', '.join(node.output)}"
            if isinstance(found, tuple):
                unroll(node, *found, writer)
                unread += node.input[1:4]
                notes.append(f"{name}: {found[1]} time steps, {len(writer.nodes):,} nodes")
            elif found:
                notes.append(f"{name} stays: {found}")
            nodes += writer.nodes or [node]
        if len(nodes) > len(graph.node):
            replace_nodes(graph, nodes)
    drop_unread(model, unread)
    return Stepped(model=model, notes=tuple(notes))


def _expandable(
    node: onnx.NodeProto, wiring: Wiring, shapes: Shapes, options: ExpandRecurrent
) -> Expansion | str | None:
    """Return what a node computes and its number of time steps, or why it stays; None for what is not asked for."""
    if not is_onnx(node, *options.operators):
        return None
    shape = shapes.get(node.input[0], ()) if node.input else ()
    length, width = (shape[0], shape[2]) if len(shape) == 3 else (None, None)
    recurrence = read_recurrence(node, wiring)
    if isinstance(recurrence, str):
        return recurrence
    if not isinstance(length, int) or length < 1:
        return "the length of its sequence is not fixed"
    if isinstance(width, int) and width != len(recurrence.directions[0].weights):
        return "its input is not as wide as its weights"
    if length > options.longest:
        return f"its sequence has {length} time steps, and longest = {options.longest}"
    return recurrence, length
