"""Reading from a model in ORT format what it asks of a runtime. Source: upstream's schema `ort.fbs`."""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ortrim.core.operator_uses import ModelUses, OperatorUse
from ortrim.core.operators import OperatorId
from ortrim.errors import ModelError
from ortrim.models.ort_reading import Damaged, Table, graphs_of, root_of

TENSOR: Final = 1
SEQUENCE: Final = 2
MAP: Final = 3
"""`TypeInfoValue`."""
DEEPEST_TYPE: Final = 16
"""Sequences and maps may hold each other; ONNX Runtime knows sequences of maps and no more."""
ELEMENT_TYPES: Final = {
    1: "float", 2: "uint8_t", 3: "int8_t", 4: "uint16_t", 5: "int16_t", 6: "int32_t", 7: "int64_t", 8: "std::string",
    9: "bool", 10: "MLFloat16", 11: "double", 12: "uint32_t", 13: "uint64_t", 16: "BFloat16", 17: "Float8E4M3FN",
    18: "Float8E4M3FNUZ", 19: "Float8E5M2", 20: "Float8E5M2FNUZ", 21: "UInt4x2", 22: "Int4x2", 23: "Float4E2M1x2",
}  # fmt: skip
"""`TensorDataType`, whose numbers are those of ONNX, in the names of upstream's configurations. Complex numbers have
none: no kernel takes them."""


def read_uses(path: Path) -> ModelUses:
    """Return what a model in ORT format asks of a runtime, the graphs inside its nodes included.

    Raises `ModelError` (`model-missing`, `not-ort`).
    """
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", hint="check the path")
    data = path.read_bytes()
    try:
        return _uses(root_of(data, str(path)))
    except Damaged as error:
        what, hint = "the file is damaged or cut short", "convert the model again"
        raise ModelError("not-ort", what, where=str(path), hint=hint) from error


def _uses(session: Table) -> ModelUses:
    model = session.table(1)
    main = model.table(7) if model else None
    if main is None:
        raise Damaged
    graphs = tuple(graphs_of(main))
    _require_made(main)
    # A value that a graph takes from the one around it has its type there; no two that are visible have one name.
    everywhere = {name: kind for graph in graphs for name, kind in _types(graph).items()}
    found = [use for graph in graphs for use in _nodes(graph, ChainMap(_types(graph), everywhere))]
    return ModelUses(
        format_version=session.text(0),
        uses=tuple(sorted({use: use for use in reversed(found)}.values())),
        saved=tuple(sorted({made for graph in graphs for made in _saved(graph)})),
        element_types=tuple(sorted({kind for graph in graphs for kind in _element_types(graph)})),
        sparse=any(True for graph in graphs for _ in graph.tables(7)),
    )


def _require_made(graph: Table) -> None:
    """Refuse a graph without the nodes that its outputs come from: with its operators gone, it would fit anything."""
    made = {name for node in graph.tables(2) for name in node.texts(9)}
    given = {*graph.texts(5), *(weight.text(0) for weight in graph.tables(0))}
    sparse = {values.text(0) for weight in graph.tables(7) if (values := weight.table(0))}
    if not made | given | sparse >= set(graph.texts(6)):
        raise Damaged


def _nodes(graph: Table, types: Mapping[str, str]) -> Iterator[OperatorUse]:
    for node in graph.tables(2):
        yield OperatorUse(
            operator=OperatorId(domain=node.text(2) or "ai.onnx", opset=node.integer(3, "i"), name=node.text(5)),
            inputs=tuple(types.get(name, "") for name in node.texts(8)),
            outputs=tuple(types.get(name, "") for name in node.texts(9)),
            node=node.text(0),
        )


def _types(graph: Table) -> dict[str, str]:
    """Return the element types of a graph's tensors by their names."""
    named = {}
    for value in graph.tables(1):
        kind = value.table(2)
        tensor = kind.table(2) if kind and kind.integer(1, "B") == TENSOR else None
        if tensor and value.text(0):
            named[value.text(0)] = ELEMENT_TYPES.get(tensor.integer(0, "i"), "")
    return named


def _element_types(graph: Table) -> Iterator[str]:
    """Yield the element types of a graph's values and weights, whatever they are part of."""
    for value in graph.tables(1):
        if value.text(0):
            yield from _parts(value.table(2))
    for weight in graph.tables(0):
        yield _element_type(weight, 3)


def _parts(kind: Table | None, depth: int = 0) -> Iterator[str]:
    """Yield the element types that a type is made of; an empty one for what is not known."""
    if depth > DEEPEST_TYPE:
        raise Damaged
    inner = kind.table(2) if kind else None
    tag = kind.integer(1, "B") if kind else 0
    if inner is None or tag not in {TENSOR, SEQUENCE, MAP}:
        yield ""
    elif tag == SEQUENCE:
        yield from _parts(inner.table(0), depth + 1)
    else:
        yield _element_type(inner, 0)
        if tag == MAP:
            yield from _parts(inner.table(1), depth + 1)


def _element_type(table: Table, slot: int) -> str:
    return ELEMENT_TYPES.get(table.integer(slot, "i"), "")


def _saved(graph: Table) -> Iterator[OperatorId]:
    """Yield the operators that saved optimizations make, each written `domain:operator:opset`."""
    saved = graph.table(8)
    for entry in saved.tables(0) if saved else ():
        for record in entry.tables(1):
            for text in record.texts(3):
                parts = text.split(":")
                if len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 10:
                    raise Damaged
                yield OperatorId(domain=parts[0] or "ai.onnx", opset=int(parts[2]), name=parts[1])
