"""Reading files that should be ONNX models, and saying what they are when they are not."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

import onnx
from google.protobuf.message import DecodeError

from ortrim.core.models import ModelFacts, TensorInfo
from ortrim.errors import ModelError
from ortrim.models.limits import LARGEST_MODEL_BYTES, refuse_size
from ortrim.models.onnx_types import COMPARABLE, ELEMENT_TYPES, type_words
from ortrim.models.other_formats import ZIP, format_by_name, other_format
from ortrim.models.texts import require_texts
from ortrim.tools.memory import SHORTAGE, out_of_memory

_GIVE_ONNX: Final = "give the original ONNX model"


def read_onnx(path: Path, where: str) -> onnx.ModelProto:
    """Read a model without its external data.

    Raises `ModelError`: `not-onnx` (empty, another format, damaged, names that are no text), `model-too-large`; and
    `MemoryShortage`.
    """
    size = path.stat().st_size
    if size > LARGEST_MODEL_BYTES:
        refuse_size(size, where)
    _refuse_other_format(path, where)
    try:
        model = onnx.load_model(path, format="protobuf", load_external_data=False)
    except DecodeError as error:
        if SHORTAGE.search(str(error)):
            raise out_of_memory(where, str(error)) from error
        if named := format_by_name(path):
            _refuse(f"the file {named.what}", where, named.hint, why=str(error))
        hint = "export or download the model again; the file may be cut short"
        _refuse("the file is damaged or not an ONNX model", where, hint, why=str(error))
    if not (model.HasField("graph") and model.HasField("ir_version")):
        _refuse("the file holds no model", where, _GIVE_ONNX)
    require_texts(model, where)
    return model


def facts_of(model: onnx.ModelProto, sha256: str, size_bytes: int, where: str) -> ModelFacts:
    """Return what a model says of itself. `inputs` leaves out those that an initializer provides.

    Raises `ModelError` (`unsupported-input-type`, `unsupported-output-type`).
    """
    provided = {tensor.name for tensor in model.graph.initializer}
    provided |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    inputs = [value for value in model.graph.input if value.name not in provided]
    return ModelFacts(
        sha256=sha256,
        size_bytes=size_bytes,
        ir_version=model.ir_version,
        opsets=tuple(sorted((entry.domain or "ai.onnx", entry.version) for entry in model.opset_import)),
        inputs=tuple(_input(value, where) for value in inputs),
        outputs=tuple(_output(value, where) for value in model.graph.output),
        node_count=sum(1 for _ in nodes_of(model)),
    )


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of a model: of the graph, of the graphs inside its nodes, and of its functions."""
    yield from _nested_nodes(model.graph.node)
    for function in model.functions:
        yield from _nested_nodes(function.node)


def graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds, such as the branches of If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _nested_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from _nested_nodes(graph.node)


def _input(value: onnx.ValueInfoProto, where: str) -> TensorInfo:
    """Return an input, which has to be a tensor: nothing else can be made or recorded."""
    words = type_words(value.type)
    if words not in ELEMENT_TYPES.values():
        what = f"input '{value.name}' is of a type that cannot be fed: {words}"
        hint = "inputs have to be tensors; export the model with tensors instead"
        raise ModelError("unsupported-input-type", what, where=where, hint=hint)
    return TensorInfo(name=value.name, element_type=words, shape=shape_of(value.type))


def _output(value: onnx.ValueInfoProto, where: str) -> TensorInfo:
    """Return an output: whatever comes down to tensors that can be compared."""
    words = type_words(value.type)
    if not COMPARABLE.fullmatch(words):
        what = f"output '{value.name}' is of a type that cannot be compared: {words}"
        hint = "outputs have to be tensors of common types, or sequences or maps of them (skl2onnx: zipmap=False)"
        raise ModelError("unsupported-output-type", what, where=where, hint=hint)
    return TensorInfo(name=value.name, element_type=words, shape=shape_of(value.type))


def shape_of(kind: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Return a tensor's shape; None when the model leaves open even how many dimensions there are."""
    if not kind.tensor_type.HasField("shape"):
        return None
    return tuple(_dimension(dimension) for dimension in kind.tensor_type.shape.dim)


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    return dimension.dim_param or None


def _refuse_other_format(path: Path, where: str) -> None:
    """Recognise what people give instead of a model."""
    if found := other_format(path):
        _refuse(f"the file {found.what}", where, found.hint)
    with path.open("rb") as file:
        head = file.read(8)
    if head[4:] == b"ORTM":
        _refuse("the file is in ORT format already", where, _GIVE_ONNX)
    if head.startswith(ZIP):
        _refuse("the file is an archive", where, "unpack it and give the .onnx file inside")


def _refuse(what: str, where: str, hint: str, *, why: str = "") -> NoReturn:
    raise ModelError("not-onnx", what, where=where, why=why, hint=hint)
