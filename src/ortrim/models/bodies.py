"""The graphs inside nodes, with the shapes of what they read from outside and of what they compute."""

from collections.abc import Iterator, Mapping

import onnx

from ortrim.models.onnx_reading import graphs_of
from ortrim.models.shape_values import with_known_values
from ortrim.models.value_sizes import ValueSize


def captured(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Return the values that a graph reads from outside, its inner graphs' among them, in order."""
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    made |= {name for node in graph.node for name in node.output}
    return tuple(dict.fromkeys(name for name in _read(graph) if name and name not in made))


def inferred_body(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    body: onnx.GraphProto,
    outer: Mapping[str, ValueSize],
    tensors: Mapping[str, onnx.TensorProto],
) -> tuple[onnx.GraphProto, frozenset[str]]:
    """Return a node's inner graph with its shapes inferred, as `with_known_values` does it for a model.

    `outer` and `tensors` are what is known of values outside, by name. What the graph is given takes the shapes that
    are outside at its first turn. A graph that cannot be inferred is returned as it is.
    """
    alone = onnx.ModelProto()
    alone.CopyFrom(onnx.helper.make_model(onnx.GraphProto(), opset_imports=list(model.opset_import)))
    alone.graph.CopyFrom(body)
    for value, name in _fed(node, alone.graph):
        if name in outer and not value.type.tensor_type.HasField("shape"):
            value.CopyFrom(_value(value.name, outer[name]))
    names = captured(body)
    alone.graph.input.extend(_value(name, outer[name]) for name in names if name in outer and name not in tensors)
    alone.graph.initializer.extend(_named(tensors[name], name) for name in names if name in tensors)
    try:
        inferred, known = with_known_values(alone)
    except Exception:  # noqa: BLE001 - what cannot be inferred stays unknown, and is said to be
        return body, frozenset()
    return inferred.graph, known


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for inner in graphs_of(node):
            yield from captured(inner)
    yield from (value.name for value in graph.output)


def _fed(node: onnx.NodeProto, body: onnx.GraphProto) -> Iterator[tuple[onnx.ValueInfoProto, str]]:
    """Pair the inputs of a loop's body that have the same shape outside; Scan's slices have another."""
    if node.op_type == "Loop":
        yield from zip(body.input[2:], node.input[2:], strict=False)
    elif node.op_type == "Scan":
        slices = next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)
        states = max(len(body.input) - max(slices, 0), 0)
        yield from zip(body.input[:states], node.input, strict=False)


def _value(name: str, size: ValueSize) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, size.element_type, size.shape)


def _named(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    """Return a tensor under the name of the value; that of a Constant node has none, or another."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy
