"""Shape inference that also follows the small numbers which models compute from shapes, to reshape by them."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from ortrim.models.known_branches import take_branches
from ortrim.models.shape_inference import inferred

MOST_ROUNDS: Final = 32
MOST_ELEMENTS: Final = 1024
FOLLOWED: Final = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Floor", "Gather",
    "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or",
    "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Shape", "Size", "Slice", "Squeeze",
    "Sub", "Tile", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
"""Operators with which exporters compute shapes."""
OF_SHAPE: Final = ("Shape", "Size")

Values = dict[str, Any]
"""Arrays of NumPy by the values' names."""


def with_known_values(model: onnx.ModelProto) -> tuple[onnx.ModelProto, frozenset[str]]:
    """Infer shapes, put in the values that follow from them, and again, until nothing new is known.

    Returns the model, whose nodes of such values have become Constant, and the names of the values that follow from
    shapes; the others follow from constants alone. Raises what onnx raises.
    """
    from_shapes: set[str] = set()
    for _ in range(MOST_ROUNDS):
        model = inferred(model)
        if not (_put_values(model, from_shapes) | take_branches(model.graph, _known_values(model.graph))):
            break
    return model, frozenset(from_shapes)


def _put_values(model: onnx.ModelProto, from_shapes: set[str]) -> bool:
    """Work out the nodes whose inputs are known, and make each of them Constant; return whether there was any."""
    shapes, values, any_new = _known_shapes(model.graph), _known_values(model.graph), False
    for node in model.graph.node:
        value = _value(model, node, shapes, values)
        if value is not None and value.size <= MOST_ELEMENTS:
            if node.op_type in OF_SHAPE or from_shapes.intersection(node.input):
                from_shapes.add(node.output[0])
            values[node.output[0]], any_new = value, True
            _make_constant(node, value)
    return any_new


def _make_constant(node: onnx.NodeProto, value: Any) -> None:
    name, output = node.name, node.output[0]
    tensor = numpy_helper.from_array(np.asarray(value))
    node.CopyFrom(onnx.helper.make_node("Constant", [], [output], name=name, value=tensor))


def _value(model: onnx.ModelProto, node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]], values: Values) -> Any:
    """Return what a node gives, None when that is not known or may be large."""
    if node.domain not in {"", "ai.onnx"} or node.op_type not in FOLLOWED or len(node.output) != 1:
        return None
    if math.prod(shapes.get(node.output[0], (MOST_ELEMENTS + 1,))) > MOST_ELEMENTS:
        return None
    if node.op_type in OF_SHAPE:
        shape = shapes.get(node.input[0]) if node.input else None
        return None if shape is None else _of_shape(node, shape)
    if not node.input or not all(name in values for name in node.input if name):
        return None
    return _evaluated(model, node, values)


def _of_shape(node: onnx.NodeProto, shape: tuple[int, ...]) -> Any:
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    if any(size > np.iinfo(np.int64).max for size in shape):
        return None
    if node.op_type == "Size":
        size = math.prod(shape)
        return np.array(size, np.int64) if size <= np.iinfo(np.int64).max else None
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)


def _evaluated(model: onnx.ModelProto, node: onnx.NodeProto, values: Values) -> Any:
    inputs = {name: values[name] for name in node.input if name}
    graph = onnx.helper.make_graph(
        [node],
        "one node",
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in inputs],
        [onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.UNDEFINED, None)],
    )
    alone = onnx.helper.make_model(graph, opset_imports=list(model.opset_import))
    try:
        with np.errstate(all="ignore"):
            (result,) = ReferenceEvaluator(alone).run(None, inputs)
    except Exception:  # noqa: BLE001 - what cannot be worked out stays unknown
        return None
    return result if isinstance(result, np.ndarray | np.generic) else None


def _known_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(each.HasField("dim_value") for each in tensor.shape.dim):
            shapes[value.name] = tuple(each.dim_value for each in tensor.shape.dim)
    return shapes


def known_tensors(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the small initializers of a graph and what its Constant nodes hold, by the values' names."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.output) == 1:
            tensors |= dict.fromkeys(node.output, _held(node))
    return {
        name: tensor for name, tensor in tensors.items() if tensor.data_type and math.prod(tensor.dims) <= MOST_ELEMENTS
    }


def _held(node: onnx.NodeProto) -> onnx.TensorProto:
    """Return the tensor of a Constant node, without anything in it when the node holds no tensor."""
    tensors = (attribute.t for attribute in node.attribute if attribute.HasField("t"))
    return next(tensors, onnx.TensorProto())


def _known_values(graph: onnx.GraphProto) -> Values:
    values = {name: _array(tensor) for name, tensor in known_tensors(graph).items()}
    return {name: value for name, value in values.items() if value is not None}


def _array(tensor: onnx.TensorProto) -> Any:
    try:
        return numpy_helper.to_array(tensor)
    except Exception:  # noqa: BLE001 - a damaged tensor is one of unknown value
        return None
