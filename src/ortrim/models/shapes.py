"""Shapes and constants inside a model: onnx's inference, which here also follows operators that ONNX Runtime fused.

It follows the small numbers which models compute from shapes, too, and the branches of If that are always taken.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import TensorProto, inliner, numpy_helper
from onnx.reference import ReferenceEvaluator

from ortrim.errors import ModelError
from ortrim.models.onnx_files import array_of, captured, graphs_of
from ortrim.models.surrogate_operators import MADE_UP, surrogates

Stands = list[Sequence[onnx.NodeProto]]


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model with the shapes that can be inferred; its nodes are as they were."""
    opset = next((each.version for each in model.opset_import if each.domain in {"", "ai.onnx"}), None)
    stands: Stands = [surrogates(node, opset) if opset else () for node in model.graph.node]
    if not any(stands):
        return _infer(model)
    standing = deepcopy(model)
    del standing.graph.node[:]
    for node, stand in zip(model.graph.node, stands, strict=True):
        standing.graph.node.extend(stand or (node,))
    try:
        made = _infer(standing)
    except onnx.shape_inference.InferenceError:  # a node of a damaged model lacks what its stand-in needs
        return _infer(model)
    _put_back(made.graph, model.graph, stands)
    return made


def _infer(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)


def _put_back(made: onnx.GraphProto, original: onnx.GraphProto, stands: Stands) -> None:
    """Put the model's own nodes in the place of what stood in for them, and forget the values that it does not have."""
    nodes, position = [], 0
    for node, stand in zip(original.node, stands, strict=True):
        nodes.append(node if stand else deepcopy(made.node[position]))
        position += len(stand) or 1
    known = [onnx.ValueInfoProto.FromString(each.SerializeToString()) for each in made.value_info]
    del made.node[:], made.value_info[:]
    made.node.extend(nodes)
    made.value_info.extend(each for each in known if not each.name.startswith(MADE_UP))


def take_branches(graph: onnx.GraphProto, values: Mapping[str, Any]) -> bool:
    """Put the branches that `values`, arrays by name, decide for into a graph; return whether there were any."""
    decided = [_branch(node, values) for node in graph.node]
    if not any(decided):
        return False
    copies = list[onnx.NodeProto]()
    for node, branch in zip(graph.node, decided, strict=True):
        if branch is None:
            copies.append(deepcopy(node))
        else:
            copies += map(deepcopy, branch.node)
            pairs = zip(branch.output, node.output, strict=True)
            copies += (onnx.helper.make_node("Identity", [inner.name], [outer]) for inner, outer in pairs)
    for branch in filter(None, decided):
        graph.initializer.extend(branch.initializer)
        graph.value_info.extend(branch.value_info)
    graph.ClearField("node")
    graph.node.extend(copies)
    return True


def _branch(node: onnx.NodeProto, values: Mapping[str, Any]) -> onnx.GraphProto | None:
    condition = values.get(node.input[0]) if node.op_type == "If" and node.input else None
    if condition is None or condition.size != 1:
        return None
    wanted = "then_branch" if condition.item() else "else_branch"
    branch = next((each.g for each in node.attribute if each.name == wanted and each.HasField("g")), None)
    return branch if branch is not None and len(branch.output) == len(node.output) else None


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
    shapes, values, any_new = known_shapes(model.graph), _known_values(model.graph), False
    for node in model.graph.node:
        value = _value(model, node, shapes, values)
        if value is not None and value.size <= MOST_ELEMENTS:
            if node.op_type in OF_SHAPE or from_shapes.intersection(node.input):
                from_shapes.add(node.output[0])
            values[node.output[0]], any_new = value, True
            tensor = numpy_helper.from_array(np.asarray(value))
            node.CopyFrom(onnx.helper.make_node("Constant", [], [node.output[0]], name=node.name, value=tensor))
    return any_new


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
    size = math.prod(shape)
    if max((*shape, size if node.op_type == "Size" else 0)) > np.iinfo(np.int64).max:
        return None
    if node.op_type == "Size":
        return np.array(size, np.int64)
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)


def _evaluated(model: onnx.ModelProto, node: onnx.NodeProto, values: Values) -> Any:
    inputs = {name: values[name] for name in node.input if name}
    given, made = (
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in names]
        for names in (inputs, node.output[:1])
    )
    graph = onnx.helper.make_graph([node], "one node", given, made)
    alone = onnx.helper.make_model(graph, opset_imports=list(model.opset_import))
    try:
        with np.errstate(all="ignore"):
            (result,) = ReferenceEvaluator(alone).run(None, inputs)
    except Exception:  # noqa: BLE001 - what cannot be worked out stays unknown
        return None
    return result if isinstance(result, np.ndarray | np.generic) else None


def known_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Return the shapes of values all of whose sizes a graph's own lists tell."""
    return {name: size.shape for name, size in value_sizes(graph).items() if size.shape is not None}


def known_tensors(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the small initializers of a graph and what its Constant nodes hold, by the values' names."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.output) == 1:
            held = (attribute.t for attribute in node.attribute if attribute.HasField("t"))
            tensors[node.output[0]] = next(held, onnx.TensorProto())
    return {
        name: tensor for name, tensor in tensors.items() if tensor.data_type and math.prod(tensor.dims) <= MOST_ELEMENTS
    }


def _known_values(graph: onnx.GraphProto) -> Values:
    values = {name: array_of(tensor) for name, tensor in known_tensors(graph).items()}
    return {name: value for name, value in values.items() if value is not None}


Shape = tuple[int, ...]
BITS: Final[Mapping[int, int]] = {
    **dict.fromkeys((TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32), 32),
    **dict.fromkeys((TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64, TensorProto.COMPLEX64), 64),
    **dict.fromkeys((TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT16, TensorProto.UINT16), 16),
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL), 8),
    **dict.fromkeys((TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2), 8),
    **dict.fromkeys((TensorProto.FLOAT8E5M2FNUZ, TensorProto.FLOAT8E8M0), 8),
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1), 4),
    **dict.fromkeys((TensorProto.INT2, TensorProto.UINT2), 2),
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
    found = dict[str, tuple[int, Shape | None]]()
    for value in (*graph.value_info, *graph.output, *graph.input):
        if value.type.WhichOneof("value") == "tensor_type":
            tensor = value.type.tensor_type
            known = tensor.HasField("shape") and all(each.HasField("dim_value") for each in tensor.shape.dim)
            found[value.name] = tensor.elem_type, tuple(each.dim_value for each in tensor.shape.dim) if known else None
    for held in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
        found[held.name] = held.data_type, tuple(held.dims)
    # A damaged model may give a negative size.
    return {
        name: ValueSize(element_type=kind, shape=None if shape and min(shape) < 0 else shape)
        for name, (kind, shape) in found.items()
    }


Kinds = Mapping[str, Hashable]
"""Of tensors that may lie in each other's buffers: those of equal kinds, as far as a runtime knows before it runs."""

LARGEST_VALUE: Final = 1024
"""Elements of an initializer that is looked into for a shape; the weights are left out of the inference."""

UNINFERRED: Final = (
    onnx.shape_inference.InferenceError, DecodeError, EncodeError, ValueError, TypeError, RuntimeError,
)  # fmt: skip
"""What onnx raises for a model whose shapes it cannot infer."""
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
    except UNINFERRED as error:
        what = "the shapes inside the model cannot be inferred"
        hint = "check the model with onnx.checker, or export again"
        raise ModelError("shapes-not-inferred", what, where=where, why=str(error), hint=hint) from error


def open_kinds(model: onnx.ModelProto, where: str) -> Kinds:
    """Return what can be known of a model's tensors before its inputs have sizes: element bits, and sizes or names.

    A tensor with a dimension of which neither is known is left out. The model loses its weights' data. Raises
    `ModelError` (`shapes-not-inferred`).
    """
    _without_weights(model.graph)
    told = (*model.graph.value_info, *model.graph.input, *model.graph.output)
    own = {each.dim_param for value in told for each in value.type.tensor_type.shape.dim}
    copy = deepcopy(model)
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
    names = (
        dimension.dim_param or f"{value.name}:{axis}"
        for value in model.graph.input
        if value.name not in provided
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim)
        if not _is_known(dimension)
    )
    return tuple(dict.fromkeys(names))


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


MOST_NODES: Final = 1_000_000
Name = tuple[str, str]


def inlined(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """Return the model without functions."""
    if not model.functions:
        return model
    functions = {(function.domain, function.name): function for function in model.functions}
    hint = "export the model again without functions"
    try:
        size = _size(model.graph.node, functions, {}, ())
    except RecursionError as error:
        what, why = "the model is not valid ONNX", "its functions call themselves"
        raise ModelError("model-invalid", what, where=where, why=why, hint=hint) from error
    if size > MOST_NODES:
        what = f"the model's functions have more than {MOST_NODES:,} nodes"
        raise ModelError("functions-too-deep", what, where=where, hint=hint)
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:
        what = "the model's functions cannot be inlined"
        raise ModelError("functions-too-deep", what, where=where, why=str(error), hint=hint) from error


def _size(
    nodes: Iterable[onnx.NodeProto],
    functions: dict[Name, onnx.FunctionProto],
    sizes: dict[Name, int],
    calls: tuple[Name, ...],
) -> int:
    """Count nodes with each call as large as what is called. Raises `RecursionError` for what calls itself."""
    total = 0
    for node in nodes:
        name = (node.domain, node.op_type)
        inner = sum(_size(graph.node, functions, sizes, calls) for graph in graphs_of(node))
        if name in functions and name not in sizes:
            if name in calls:
                raise RecursionError
            sizes[name] = _size(functions[name].node, functions, sizes, (*calls, name))
        total += inner + sizes.get(name, 1)
    return total


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
    alone = onnx.helper.make_model(onnx.GraphProto(), opset_imports=list(model.opset_import))
    alone.graph.CopyFrom(body)
    for value, name in _fed(node, alone.graph):
        if name in outer and not value.type.tensor_type.HasField("shape"):
            value.CopyFrom(_bodies_value(value.name, outer[name]))
    names = captured(body)
    alone.graph.input.extend(
        _bodies_value(name, outer[name]) for name in names if name in outer and name not in tensors
    )
    alone.graph.initializer.extend(_named(tensors[name], name) for name in names if name in tensors)
    try:
        inferred, known = with_known_values(alone)
    except Exception:  # noqa: BLE001 - what cannot be inferred stays unknown, and is said to be
        return body, frozenset()
    return inferred.graph, known


def _fed(node: onnx.NodeProto, body: onnx.GraphProto) -> Iterator[tuple[onnx.ValueInfoProto, str]]:
    """Pair the inputs of a loop's body that have the same shape outside; Scan's slices have another."""
    if node.op_type == "Loop":
        yield from zip(body.input[2:], node.input[2:], strict=False)
    elif node.op_type == "Scan":
        slices = next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)
        states = max(len(body.input) - max(slices, 0), 0)
        yield from zip(body.input[:states], node.input, strict=False)


def _bodies_value(name: str, size: ValueSize) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, size.element_type, size.shape)


def _named(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    """Return a tensor under the name of the value; that of a Constant node has none, or another."""
    named = deepcopy(tensor)
    named.name = name
    return named


BY_CHANCE: Final = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip
ROUNDED: Final = ("DequantizeLinear",)
"""Constants that stay as they are in the model: their kernels read the quantized form."""


def constant_nodes(graph: onnx.GraphProto, constants: Collection[str]) -> dict[str, onnx.NodeProto]:
    """Return the nodes that work on `constants` alone, by the name of each of their outputs."""
    known = set(constants)
    found: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        # A node without inputs is a constant only if ONNX says so.
        same = node.op_type not in BY_CHANCE and not any(True for _ in graphs_of(node))
        constant = same and (node.op_type == "Constant" or any(node.input))
        if constant and all(name in known for name in node.input if name):
            known |= {name for name in node.output if name}
            found |= {name: node for name in node.output if name}
    return found


def sources_of(name: str, made_by: Mapping[str, onnx.NodeProto | None]) -> Iterator[str]:
    """Yield the constants that are in memory for one: itself, or the quantized one that it stands for."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        node = made_by.get(current)
        if current in seen:
            continue
        seen.add(current)
        if node is not None and node.op_type in ROUNDED:
            waiting += [each for each in node.input if each]
        else:
            yield current
