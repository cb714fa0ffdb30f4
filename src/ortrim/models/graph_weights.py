"""The weights of an ONNX model: what it fixes, in initializers and Constant nodes."""

import hashlib
from collections.abc import Iterator
from math import prod
from typing import Final

import onnx
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from ortrim.core.graph_facts import WeightFacts
from ortrim.models.onnx_reading import graphs_of
from ortrim.models.onnx_types import ELEMENT_TYPES

MOST_VALUES: Final = 16
BITS: Final = {
    **dict.fromkeys(("float64", "int64", "uint64"), 64),
    **dict.fromkeys(("float32", "int32", "uint32"), 32),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 16),
    **dict.fromkeys(("int8", "uint8", "bool"), 8),
}
"""Bits of one element; types that are not listed count by what is stored."""
SMALL: Final = frozenset({TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL})
"""Types of which a few values are kept."""


def weights_of(model: onnx.ModelProto) -> tuple[WeightFacts, ...]:
    """Return all dense weights of a model, wherever they are; content beside the model is not read."""
    return tuple(_weight(name, tensor) for name, tensor in _model_tensors(model))


def element_type_of(tensor: TensorProto) -> str:
    """Return a tensor's element type in words."""
    return ELEMENT_TYPES.get(tensor.data_type, f"type {tensor.data_type}")


def _model_tensors(model: onnx.ModelProto) -> Iterator[tuple[str, TensorProto]]:
    yield from _tensors(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _node_tensors(node)


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, TensorProto]]:
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        yield from _node_tensors(node)


def _node_tensors(node: onnx.NodeProto) -> Iterator[tuple[str, TensorProto]]:
    if node.op_type == "Constant":
        name = node.output[0] if node.output else ""
        yield from ((name, attribute.t) for attribute in node.attribute if attribute.HasField("t"))
    for graph in graphs_of(node):
        yield from _tensors(graph)


def _weight(name: str, tensor: TensorProto) -> WeightFacts:
    element_type, dimensions = element_type_of(tensor), tuple(tensor.dims)
    external = uses_external_data(tensor)
    locations = (entry.value for entry in tensor.external_data if entry.key == "location") if external else iter(())
    bits = BITS.get(element_type)
    count = max(prod(dimensions), 0)
    return WeightFacts(
        name=name,
        element_type=element_type,
        dimensions=dimensions,
        size_bytes=count * bits // 8 if bits else tensor.ByteSize(),
        digest="" if external else _digest(tensor),
        external=next(locations, ""),
        values=() if external else _small_integers(tensor, count),
    )


def _digest(tensor: TensorProto) -> str:
    """Return a digest that equal tensors, stored in the same field, share."""
    made = hashlib.sha256(f"{tensor.data_type} {list(tensor.dims)} ".encode())
    if tensor.HasField("raw_data"):
        made.update(tensor.raw_data)
    else:
        bare = TensorProto()
        bare.CopyFrom(tensor)
        bare.ClearField("name")
        bare.ClearField("doc_string")
        made.update(bare.SerializeToString(deterministic=True))
    return made.hexdigest()


def _small_integers(tensor: TensorProto, count: int) -> tuple[int, ...]:
    if tensor.data_type not in SMALL or not 0 < count <= MOST_VALUES:
        return ()
    try:
        return tuple(map(int, numpy_helper.to_array(tensor).ravel()))
    except (ValueError, TypeError):  # a damaged tensor: fewer or more bytes than its dimensions say
        return ()
