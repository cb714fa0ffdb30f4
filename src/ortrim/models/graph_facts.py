"""An ONNX model's graph as plain facts, which the rules of `invoke lint` read. Pure."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from ortrim.base.files import sha256_of
from ortrim.models import onnx_files
from ortrim.models.models import ModelFacts, TensorInfo
from ortrim.models.prepare import external_files, refuse_links
from ortrim.models.shapes import BITS

NAMELESS: Final = ("?", "-1", "None")
"""What exporters write for a size that they do not know (Paddle's writes `?`): two of them need not be equal."""


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """One node: its operator's domain and name, and its values with the types and shapes that are known.

    `scope` names the nodes and functions around it, outermost first, and is empty in the main graph. An input that is
    left out has an empty name; an unknown element type is empty. `attributes` holds those that are one number or one
    short text, in words; `constants` the names of inputs that the model fixes.
    """

    name: str
    domain: str
    operator: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    scope: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    constants: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The node in words: its name, or its operator and what it makes."""
        own = self.name or f"{self.operator} -> {next((value.name for value in self.outputs), '')}"
        return f"{self.scope}/{own}" if self.scope else own

    def attribute(self, name: str) -> str:
        """Return an attribute in words, empty when it is absent or not kept."""
        return dict(self.attributes).get(name, "")


@dataclass(frozen=True, kw_only=True)
class WeightFacts:
    """A tensor that the model fixes: an initializer, or the value of a Constant node.

    `size_bytes` is what its type and dimensions come to. `digest` is one of type, dimensions and content, empty for
    content in another file, named by `external`. `values` are those of a small integer tensor, `scales` those of
    a small float32 tensor.
    """

    name: str
    element_type: str
    dimensions: tuple[int, ...]
    size_bytes: int
    digest: str = ""
    external: str = ""
    values: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """A model: what it says of itself, its nodes wherever they are, its weights and the texts that it carries.

    `texts` are those that it does not need to run, by their place, such as `doc_string of the graph`. `external_bytes`
    is what the files beside the model that it refers to come to. `functions` are the domains and names of operators
    that the model itself defines by others.
    """

    model: ModelFacts
    producer: str
    nodes: tuple[NodeFacts, ...]
    weights: tuple[WeightFacts, ...]
    texts: tuple[tuple[str, str], ...] = ()
    external_bytes: int = 0
    functions: tuple[tuple[str, str], ...] = ()


STRING_NORMALIZER: Final = ("ai.onnx", "StringNormalizer")
EVERYWHERE: Final = ("C", "POSIX")
"""The locales that every system has."""


def locale_of(node: NodeFacts) -> str:
    """Return the locale without which ONNX Runtime refuses a StringNormalizer; empty where there is none."""
    if (node.domain, node.operator) != STRING_NORMALIZER:
        return ""
    locale = node.attribute("locale") or "en_US.UTF-8"  # the default in `string_normalizer.cc`
    return "" if locale in EVERYWHERE else locale


def operators_of(graph: GraphFacts) -> frozenset[tuple[str, str]]:
    """Return the domains and names of a model's operators."""
    return frozenset((node.domain, node.operator) for node in graph.nodes)


def elements(value: TensorInfo) -> int | None:
    """Return the number of a tensor's elements; None when it is not fixed."""
    if value.shape is None or any(not isinstance(size, int) for size in value.shape):
        return None
    return prod(size for size in value.shape if isinstance(size, int))


def dynamic_dimensions(inputs: tuple[TensorInfo, ...]) -> tuple[str, ...]:
    """Return the names of the inputs' dimensions that are not fixed, in order; one without a name is `input[axis]`."""
    names = (dimension_name(value, axis) for value in inputs for axis in range(len(value.shape or ())))
    return tuple(dict.fromkeys(name for name in names if name))


def dimension_name(value: TensorInfo, axis: int) -> str:
    """Return the name of an input's dimension, empty for a fixed one."""
    assert value.shape is not None
    size = value.shape[axis]
    if isinstance(size, int):
        return ""
    return size if size and size not in NAMELESS else f"{value.name}[{axis}]"


def _texts(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """Yield what people and exporters wrote into a model, with its place; empty texts are left out."""
    texts = [("doc_string of the model", model.doc_string), ("doc_string of the graph", model.graph.doc_string)]
    texts += [(f"metadata '{entry.key}'", entry.value) for entry in model.metadata_props]
    texts += [text for node in model.graph.node for text in _node_texts(node)]
    for function in model.functions:
        texts.append((f"doc_string of function '{function.name}'", function.doc_string))
        texts += [text for node in function.node for text in _node_texts(node)]
    texts += [(f"doc_string of weight '{tensor.name}'", tensor.doc_string) for tensor in model.graph.initializer]
    yield from ((place, text) for place, text in texts if text)


def _node_texts(node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    yield f"name of {node.op_type}", node.name
    yield f"doc_string of node '{node.name or node.op_type}'", node.doc_string
    for entry in node.metadata_props:
        yield f"metadata '{entry.key}' of node '{node.name or node.op_type}'", entry.value
    for graph in onnx_files.graphs_of(node):
        for inner in graph.node:
            yield from _node_texts(inner)


WHOLE: Final = (TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL)
"""Types of which a few values are kept."""


def weights_of(model: onnx.ModelProto) -> tuple[WeightFacts, ...]:
    """Return all dense weights of a model, wherever they are; content beside the model is not read."""
    return tuple(_weight(name, tensor) for name, tensor in _tensors(model))


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[str, TensorProto]]:
    for graph in onnx_files.graphs_in(model):
        yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in onnx_files.nodes_of(model):
        if node.op_type == "Constant":
            name = node.output[0] if node.output else ""
            yield from ((name, attribute.t) for attribute in node.attribute if attribute.HasField("t"))


def _weight(name: str, tensor: TensorProto) -> WeightFacts:
    element_type, dimensions = onnx_files.element_words(tensor.data_type), tuple(tensor.dims)
    external = uses_external_data(tensor)
    locations = (entry.value for entry in tensor.external_data if entry.key == "location") if external else iter(())
    bits = BITS.get(tensor.data_type)
    count = max(prod(dimensions), 0)
    return WeightFacts(
        name=name,
        element_type=element_type,
        dimensions=dimensions,
        size_bytes=-(-count * bits // 8) if bits else tensor.ByteSize(),
        digest="" if external else tensor_digest(tensor),
        external=next(locations, ""),
        values=tuple(map(int, _numbers(tensor, WHOLE, MOST_VALUES))),
        scales=tuple(_numbers(tensor, (TensorProto.FLOAT,), MOST_SCALES)),
    )


def tensor_digest(tensor: TensorProto) -> str:
    """Return a digest that equal tensors, stored in the same field, share, whatever they are called."""
    made = hashlib.sha256(f"{tensor.data_type} {list(tensor.dims)} ".encode())
    if tensor.HasField("raw_data"):
        made.update(tensor.raw_data)
    else:
        bare = deepcopy(tensor)
        for field in ("name", "doc_string", "metadata_props"):
            bare.ClearField(field)
        made.update(bare.SerializeToString(deterministic=True))
    return made.hexdigest()


def _numbers(tensor: TensorProto, types: Collection[int], most: int) -> list[Any]:
    """Return the numbers of a tensor of these types; none if it has more, or lies in another file."""
    if tensor.data_type not in types or not 0 < prod(tensor.dims) <= most or uses_external_data(tensor):
        return []
    try:
        return numpy_helper.to_array(tensor).ravel().tolist()
    except (ValueError, TypeError):  # a damaged tensor: fewer or more bytes than its dimensions say
        return []


LONGEST_ATTRIBUTE: Final = 200
MOST_VALUES: Final = 16
MOST_SCALES: Final = 4096
Known = Mapping[str, TensorInfo]


def read_graph(path: Path) -> GraphFacts:
    """Read a model with the types and shapes that can be inferred; data beside it is measured, not read."""
    where = str(path)
    model = onnx_files.read_onnx(path, where)
    facts = onnx_files.facts_of(model, sha256_of(path), path.stat().st_size, where)
    names = external_files(model, where)
    refuse_links(path, names, where)
    typed = onnx_files.with_types(model)
    return GraphFacts(
        model=facts,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        nodes=tuple(node_facts(typed)),
        weights=weights_of(model),
        texts=tuple(_texts(model)),
        external_bytes=sum(_size_of(path.parent / name) for name in names),
        functions=tuple(sorted((function.domain or "ai.onnx", function.name) for function in model.functions)),
    )


def _size_of(path: Path) -> int:
    """Return a file's size, 0 when there is none, or when no file can have such a name."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def node_facts(model: onnx.ModelProto) -> Iterator[NodeFacts]:
    """Yield every node of a model whose types are inferred, those of its functions without types."""
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
    facts = NodeFacts(
        name=node.name,
        domain=node.domain or "ai.onnx",
        operator=node.op_type,
        inputs=tuple(_known(name, known) for name in node.input),
        outputs=tuple(_known(name, known) for name in node.output),
        scope=scope,
        attributes=tuple(_attributes(node)),
        constants=tuple(name for name in node.input if name in fixed),
    )
    yield facts
    for graph in onnx_files.graphs_of(node):
        yield from _graph_nodes(graph, known, fixed, facts.place)


def _known(name: str, known: Known) -> TensorInfo:
    return known.get(name) or TensorInfo(name=name, element_type="", shape=None)


def _values(graph: onnx.GraphProto) -> Iterator[TensorInfo]:
    values: Iterable[onnx.ValueInfoProto] = (*graph.value_info, *graph.input, *graph.output)
    for value in values:
        words = onnx_files.type_words(value.type)
        element_type = "" if words == onnx_files.UNTYPED else words
        yield TensorInfo(name=value.name, element_type=element_type, shape=onnx_files.shape_of(value.type))
    for tensor in graph.initializer:
        yield TensorInfo(
            name=tensor.name, element_type=onnx_files.element_words(tensor.data_type), shape=tuple(tensor.dims)
        )


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
