"""Reading an ONNX model into the plain facts that rules judge."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import onnx
from onnx import AttributeProto

from ortrim.core.graph_facts import GraphFacts, NodeFacts
from ortrim.core.models import TensorInfo
from ortrim.models.copies import refuse_links
from ortrim.models.external_data import external_files
from ortrim.models.graph_texts import texts_of
from ortrim.models.graph_weights import element_type_of, weights_of
from ortrim.models.node_types import with_types
from ortrim.models.onnx_reading import facts_of, graphs_of, read_onnx, shape_of
from ortrim.models.onnx_types import UNTYPED, type_words
from ortrim.storage.files import sha256_of

LONGEST_ATTRIBUTE: Final = 200
MOST_VALUES: Final = 16
Known = Mapping[str, TensorInfo]


def read_graph(path: Path) -> GraphFacts:
    """Read a model with the types and shapes that can be inferred; data beside it is measured, not read.

    Raises `ModelError`: `not-onnx`, `model-too-large`, `unsupported-input-type`, `unsupported-output-type`,
    `unsafe-external-data`, `linked-external-data`.
    """
    where = str(path)
    model = read_onnx(path, where)
    facts = facts_of(model, sha256_of(path), path.stat().st_size, where)
    names = external_files(model, where)
    refuse_links(path, names, where)
    typed = with_types(model)
    return GraphFacts(
        model=facts,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        nodes=tuple(_model_nodes(typed)),
        weights=weights_of(model),
        texts=texts_of(model),
        external_bytes=sum(_size_of(path.parent / name) for name in names),
        functions=tuple(sorted((function.domain or "ai.onnx", function.name) for function in model.functions)),
    )


def _size_of(path: Path) -> int:
    """Return a file's size, 0 when there is none, or when no file can have such a name."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _model_nodes(model: onnx.ModelProto) -> Iterator[NodeFacts]:
    yield from _graph_nodes(model.graph, {}, frozenset(), "")
    for function in model.functions:
        for node in function.node:
            yield from _nodes(node, {}, frozenset(), f"function {function.name}")


def _graph_nodes(graph: onnx.GraphProto, outer: Known, fixed: frozenset[str], scope: str) -> Iterator[NodeFacts]:
    known = {**outer, **{value.name: value for value in _values(graph)}}
    fixed |= {tensor.name for tensor in graph.initializer}
    fixed |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    for node in graph.node:
        yield from _nodes(node, known, fixed, scope)


def _nodes(node: onnx.NodeProto, known: Known, fixed: frozenset[str], scope: str) -> Iterator[NodeFacts]:
    """Yield a node and those of the graphs inside it."""
    inner = tuple(graphs_of(node))
    facts = NodeFacts(
        name=node.name,
        domain=node.domain or "ai.onnx",
        operator=node.op_type,
        inputs=tuple(_known(name, known) for name in node.input),
        outputs=tuple(_known(name, known) for name in node.output),
        scope=scope,
        attributes=tuple(_attributes(node)),
        constants=tuple(name for name in node.input if name in fixed),
        has_graphs=bool(inner),
    )
    yield facts
    for graph in inner:
        yield from _graph_nodes(graph, known, fixed, facts.place)


def _known(name: str, known: Known) -> TensorInfo:
    return known.get(name) or TensorInfo(name=name, element_type="", shape=None)


def _values(graph: onnx.GraphProto) -> Iterator[TensorInfo]:
    values: Iterable[onnx.ValueInfoProto] = (*graph.value_info, *graph.input, *graph.output)
    for value in values:
        words = type_words(value.type)
        element_type = "" if words == UNTYPED else words
        yield TensorInfo(name=value.name, element_type=element_type, shape=shape_of(value.type))
    for tensor in graph.initializer:
        yield TensorInfo(name=tensor.name, element_type=element_type_of(tensor), shape=tuple(tensor.dims))


def _attributes(node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    for attribute in node.attribute:
        match attribute.type:
            case AttributeProto.INT:
                yield attribute.name, str(attribute.i)
            case AttributeProto.FLOAT:
                yield attribute.name, str(attribute.f)
            case AttributeProto.STRING if len(attribute.s) <= LONGEST_ATTRIBUTE:
                yield attribute.name, attribute.s.decode(errors="replace")
            case AttributeProto.INTS if len(attribute.ints) <= MOST_VALUES:
                yield attribute.name, ",".join(map(str, attribute.ints))
            case _:
                pass


def inlined_operators(operators: Iterable[tuple[str, str]], opsets: Mapping[str, int]) -> frozenset[tuple[str, str]]:
    """Return those of some operators, by domain and name, that need no kernel: ONNX itself defines them by others.

    `opsets` are those that the model imports.
    """
    return frozenset(each for each in operators if _has_body(*each, opsets.get(each[0], 0)))


def _has_body(domain: str, name: str, opset: int) -> bool:
    try:
        schema = onnx.defs.get_schema(name, opset, domain.removeprefix("ai.onnx") if domain == "ai.onnx" else domain)
    except (onnx.defs.SchemaError, TypeError, ValueError):  # an operator or an opset of which ONNX never heard
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)  # type: ignore[attr-defined]  # not in its stubs
