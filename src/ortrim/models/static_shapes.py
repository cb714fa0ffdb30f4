"""The shapes of all of a model's values for inputs of given shapes, as far as they can be inferred."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Final

import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import TensorProto

from ortrim.errors import ModelError
from ortrim.models.shape_values import with_known_values
from ortrim.models.value_sizes import BITS

Kinds = Mapping[str, Hashable]
"""Of tensors that may lie in each other's buffers: those of equal kinds, as far as a runtime knows before it runs."""

LARGEST_VALUE: Final = 1024
"""Elements of an initializer that is looked into for a shape; the weights are left out of the inference."""

Sizes = Mapping[str, int]
Shapes = Mapping[str, tuple[int, ...]]


def with_shapes(
    model: onnx.ModelProto, where: str, *, dimensions: Sizes, shapes: Shapes
) -> tuple[onnx.ModelProto, frozenset[str]]:
    """Infer the shapes of a model of ours, which is changed; return it, and the values that its shapes determine.

    `dimensions` are sizes by the dimensions' names, or by `INPUT:AXIS`; `shapes` are those of whole inputs. The
    weights' data is gone from what is returned. Raises `ModelError` (`shapes-not-inferred`).
    """
    _without_weights(model.graph)
    sizes = {**_sizes_by_name(model.graph, shapes), **dimensions}
    for value in model.graph.input:
        _fix(value, sizes, shapes.get(value.name))
    for value in (*model.graph.output, *model.graph.value_info):
        _fix(value, sizes, None)
    try:
        return with_known_values(model)
    except (
        onnx.shape_inference.InferenceError,
        DecodeError,
        EncodeError,
        ValueError,
        TypeError,
        RuntimeError,
    ) as error:
        what, hint = (
            "the shapes inside the model cannot be inferred",
            "check the model with onnx.checker, or export again",
        )
        raise ModelError("shapes-not-inferred", what, where=where, why=str(error), hint=hint) from error


def open_kinds(model: onnx.ModelProto, where: str) -> Kinds:
    """Return what can be known of a model's tensors before its inputs have sizes: element bits, and sizes or names.

    A tensor with a dimension of which neither is known is left out. The model loses its weights' data. Raises
    `ModelError` (`shapes-not-inferred`).
    """
    _without_weights(model.graph)
    told = (*model.graph.value_info, *model.graph.input, *model.graph.output)
    own = {each.dim_param for value in told for each in value.type.tensor_type.shape.dim}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    inferred, _ = with_shapes(copy, where, dimensions={}, shapes={})
    graph = inferred.graph
    kinds = ((value.name, _kind(value, own)) for value in (*graph.value_info, *graph.input, *graph.output))
    return {name: kind for name, kind in kinds if kind is not None}


def _kind(value: onnx.ValueInfoProto, names: Collection[str]) -> tuple[int, tuple[int | str, ...]] | None:
    """`names` are those that the model itself has: shape inference makes up others, which ONNX Runtime's does not."""
    tensor = value.type.tensor_type
    shape = tuple(each.dim_value if _is_known(each) else each.dim_param for each in tensor.shape.dim)
    known = all(isinstance(size, int) or (size and size in names) for size in shape)
    return (BITS[tensor.elem_type], shape) if shape and known and tensor.elem_type in BITS else None


def dynamic_dimensions(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return how the dimensions of the inputs that the model leaves open can be named, each once."""
    provided = {tensor.name for tensor in model.graph.initializer}
    names: dict[str, None] = {}
    for value in model.graph.input:
        if value.name not in provided:
            names |= dict.fromkeys(_open_names(value))
    return tuple(names)


def _open_names(value: onnx.ValueInfoProto) -> Iterable[str]:
    for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
        if not _is_known(dimension):
            yield dimension.dim_param or f"{value.name}:{axis}"


def _is_known(dimension: onnx.TensorShapeProto.Dimension) -> bool:
    return dimension.HasField("dim_value") and dimension.dim_value >= 0


def _sizes_by_name(graph: onnx.GraphProto, shapes: Shapes) -> dict[str, int]:
    """Return what the shapes of inputs say of named dimensions; a name of two sizes (Paddle's `?`) says nothing."""
    sizes: dict[str, set[int]] = {}
    for value in graph.input:
        dimensions = value.type.tensor_type.shape.dim
        shape = shapes.get(value.name, ())
        if len(shape) == len(dimensions):
            for each, size in zip(dimensions, shape, strict=True):
                sizes.setdefault(each.dim_param, set()).add(size)
    return {name: size for name, (size, *others) in sizes.items() if name and not others}


def _fix(value: onnx.ValueInfoProto, sizes: Sizes, shape: tuple[int, ...] | None) -> None:
    """Write known sizes into a value's shape; a negative size, as some exporters write it, is an unknown one."""
    if value.type.WhichOneof("value") != "tensor_type":
        return
    tensor = value.type.tensor_type
    if shape is not None and (not tensor.HasField("shape") or len(tensor.shape.dim) != len(shape)):
        tensor.shape.ClearField("dim")
        tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in shape)
    for axis, dimension in enumerate(tensor.shape.dim):
        size = shape[axis] if shape is not None else sizes.get(dimension.dim_param or f"{value.name}:{axis}")
        if _is_known(dimension):
            continue
        if size is not None:
            dimension.dim_value = size
        elif not dimension.dim_param:
            dimension.Clear()


def _without_weights(graph: onnx.GraphProto) -> None:
    """Turn large initializers, and those in other files, into inputs of the same shape."""
    listed = {value.name for value in graph.input}
    small = []
    for tensor in graph.initializer:
        outside = tensor.data_location == TensorProto.EXTERNAL
        if not outside and math.prod(tensor.dims) <= LARGEST_VALUE:
            small.append(tensor)
        elif tensor.name not in listed:
            value = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            graph.input.append(value)
    kept = [TensorProto.FromString(tensor.SerializeToString()) for tensor in small]
    graph.ClearField("initializer")
    graph.initializer.extend(kept)
