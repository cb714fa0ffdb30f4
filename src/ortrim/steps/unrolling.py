"""A GRU or LSTM as matrix products and activations, one turn after the other.

After ONNX's definitions of GRU and LSTM (`onnx/defs/rnn/defs.cc`), for which ONNX has no function body. The products of
the input are one for the whole sequence. Sequences lie on axis 0; states are (1, batch, hidden).
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import onnx

from ortrim.steps.node_writer import NodeWriter
from ortrim.steps.recurrence import Direction, Recurrence

STARTS: Final = {"GRU": (5,), "LSTM": (5, 6)}
"""Where a node's inputs have the states to begin with."""
GATES_AXIS: Final = 2
Turn = Callable[[str, list[str]], list[str]]
"""Takes the products of one turn's input and the states, and returns the new states, the one to give out first."""


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
    """Write the products of the whole input with the weights, and return those of each turn."""
    bias = direction.bias + direction.recurrent_bias
    if recurrence.linear_before_reset:
        bias[2 * recurrence.hidden :] = direction.bias[2 * recurrence.hidden :]
    product = writer.add("MatMul", source, writer.constant("W", direction.weights))
    return writer.split(writer.add("Add", product, writer.constant("B", bias)), [1] * length, axis=0)


def _taken(turn: Turn, gates: list[str], states: list[str], *, backward: bool) -> tuple[list[str], list[str]]:
    """Write all turns; return what they give, in the order of the sequence, and the last states."""
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
