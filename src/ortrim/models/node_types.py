"""Finding the nodes of a model that use an operator, and the types that they work on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from ortrim.models.onnx_reading import graphs_of, read_onnx
from ortrim.models.onnx_types import ELEMENT_TYPES


@dataclass(frozen=True, kw_only=True)
class OperatorUse:
    """One node: its operator's domain, the opset that the model imports for it (0: none), and its input types."""

    domain: str
    opset: int
    signature: str


def find_uses(path: Path, name: str, domain: str = "", node: str = "") -> tuple[OperatorUse, ...]:
    """Return the uses of an operator in a model; `domain` and `node`, when given, narrow the search."""
    model = with_types(read_onnx(path, str(path)))
    opsets = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    uses = []
    for found, types in _typed_nodes(model.graph, {}):
        own = found.domain or "ai.onnx"
        if found.op_type == name and domain in {"", own} and node in {"", found.name}:
            signature = ", ".join(types.get(value, "unknown type") for value in found.input if value)
            uses.append(OperatorUse(domain=own, opset=opsets.get(own, 0), signature=signature or "no inputs"))
    return tuple(uses)


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types of its inner values as far as they can be inferred."""
    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 - a diagnostic with fewer types is better than none
        return model


def _typed_nodes(
    graph: onnx.GraphProto, outer: Mapping[str, str]
) -> Iterator[tuple[onnx.NodeProto, Mapping[str, str]]]:
    types = {**outer, **dict(_value_types(graph))}
    for node in graph.node:
        yield node, types
        for inner in graphs_of(node):
            yield from _typed_nodes(inner, types)


def _value_types(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    values: Iterable[onnx.ValueInfoProto] = (*graph.value_info, *graph.input, *graph.output)
    for value in values:
        if value.type.WhichOneof("value") == "tensor_type":
            yield value.name, _type_name(value.type.tensor_type.elem_type)
    for tensor in graph.initializer:
        yield tensor.name, _type_name(tensor.data_type)


def _type_name(number: int) -> str:
    return ELEMENT_TYPES.get(number, "unknown type")
