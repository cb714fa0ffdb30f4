"""Shapes and bytes of a graph's values, as far as the model says."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import onnx
from onnx import TensorProto

Shape = tuple[int, ...]


BITS: Final[Mapping[int, int]] = {
    **dict.fromkeys((TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32), 32),
    **dict.fromkeys((TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64, TensorProto.COMPLEX64), 64),
    **dict.fromkeys((TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT16, TensorProto.UINT16), 16),
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL), 8),
    **dict.fromkeys((TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2), 8),
    **dict.fromkeys((TensorProto.FLOAT8E5M2FNUZ,), 8),
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4), 4),
    TensorProto.COMPLEX128: 128,
}
"""Of an element in memory; a text has none that could be known."""

ARGUMENTS: Final = (TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING)
"""Types of constants that say where and how to work, such as shapes and axes, and are no parameters."""


@dataclass(frozen=True, kw_only=True)
class ValueSize:
    """A tensor: its element type in ONNX's numbers, and its shape, None when some of it is not known."""

    element_type: int
    shape: Shape | None

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the elements; None when they are not known."""
        if self.shape is None or self.element_type not in BITS:
            return None
        return (math.prod(self.shape) * BITS[self.element_type] + 7) // 8


def value_sizes(graph: onnx.GraphProto) -> dict[str, ValueSize]:
    """Return the tensors that a graph's own lists speak of; what is no tensor is left out."""
    return dict((*_values(graph), *_constants(graph)))


def _values(graph: onnx.GraphProto) -> Iterator[tuple[str, ValueSize]]:
    for value in (*graph.value_info, *graph.output, *graph.input):
        if value.type.WhichOneof("value") == "tensor_type":
            tensor = value.type.tensor_type
            yield value.name, ValueSize(element_type=tensor.elem_type, shape=_shape(tensor))


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, ValueSize]]:
    for tensor in graph.initializer:
        yield tensor.name, ValueSize(element_type=tensor.data_type, shape=_known(tuple(tensor.dims)))
    for sparse in graph.sparse_initializer:
        values = sparse.values
        yield values.name, ValueSize(element_type=values.data_type, shape=_known(tuple(values.dims)))


def _shape(tensor: onnx.TypeProto.Tensor) -> Shape | None:
    if not tensor.HasField("shape") or not all(each.HasField("dim_value") for each in tensor.shape.dim):
        return None
    return _known(tuple(each.dim_value for each in tensor.shape.dim))


def _known(shape: Shape) -> Shape | None:
    """Return a shape unless a damaged model gives a negative size."""
    return None if any(size < 0 for size in shape) else shape
