"""GRU and LSTM as the matrix products and activations that they are, for sequences of fixed length."""

from dataclasses import dataclass

import onnx

from ortrim.core.number_steps import ExpandRecurrent
from ortrim.steps.graph_wiring import (
    Names,
    Shapes,
    Wiring,
    drop_unread,
    is_onnx,
    opset_of,
    replace_nodes,
    shapes_of,
    wired_graphs,
)
from ortrim.steps.node_writer import NodeWriter
from ortrim.steps.recurrence import Recurrence, read_recurrence
from ortrim.steps.stepped import Stepped
from ortrim.steps.unrolling import unroll


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """A recurrence, and the turns that it takes."""

    recurrence: Recurrence
    length: int


def expand_recurrent(model: onnx.ModelProto, options: ExpandRecurrent) -> Stepped:
    """Expand what the options name, and say of each that stays why."""
    names, shapes, opset = Names(model), shapes_of(model), opset_of(model)
    notes, unread = list[str](), list[str]()
    for graph, wiring in wired_graphs(model):
        nodes = list[onnx.NodeProto]()
        for node in graph.node:
            found = _expandable(node, wiring, shapes, options)
            writer = NodeWriter(graph, names, opset, node.name or node.op_type)
            if isinstance(found, Expansion):
                unroll(node, found.recurrence, found.length, writer)
                unread += node.input[1:4]
            nodes += writer.nodes or [node]
            notes += _notes(node, found, len(writer.nodes))
        if len(nodes) > len(graph.node):
            replace_nodes(graph, nodes)
    drop_unread(model, unread)
    return Stepped(model=model, notes=tuple(notes))


def _notes(node: onnx.NodeProto, found: Expansion | str | None, count: int) -> list[str]:
    name = f"{node.op_type} {node.name or ', '.join(node.output)}"
    if isinstance(found, Expansion):
        return [f"{name}: {found.length} turns, {count:,} nodes"]
    return [f"{name} stays: {found}"] if found else []


def _expandable(
    node: onnx.NodeProto, wiring: Wiring, shapes: Shapes, options: ExpandRecurrent
) -> Expansion | str | None:
    """Return what a node works out and how many turns it takes, or why it stays; None for what is not asked for."""
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
        return f"its sequence has {length} turns, and longest = {options.longest}"
    return Expansion(recurrence=recurrence, length=length)
