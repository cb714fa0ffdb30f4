"""Reading files that should be ONNX models, and saying what they are when they are not."""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.external_data_helper import uses_external_data

from ortrim.base.archives import open_zip
from ortrim.base.command import SHORTAGE, out_of_memory
from ortrim.errors import ModelError, StorageError
from ortrim.models.models import ModelFacts, TensorInfo
from ortrim.pins.runtime import limits_of, needed_for_ir_version, needed_for_opset

HEAD_BYTES: Final = 4096
ZIP: Final = b"PK\x03\x04"
PICKLE: Final = 0x80
PICKLE_PROTOCOLS: Final = range(2, 6)
TORCH_MAGIC: Final = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")
"""What `torch.save` of PyTorch 1.5 and older begins with; `torch/serialization.py`, MAGIC_NUMBER."""
SAFETENSORS_HEADER: Final = 100 << 20
"""The longest header that safetensors reads."""
EXPORT: Final = 'export it in Python: torch.onnx.export(model, example_inputs, "model.onnx")'
TENSORFLOW: Final = "convert it: python -m tf2onnx.convert --{} PATH --output model.onnx"
KERAS: Final = "load it in Keras, then: tf2onnx.convert.from_keras(model, output_path='model.onnx')"
DOWNLOAD: Final = "download it again: the URL may require a login, or be that of a page about the file"
UNPACK: Final = "unpack it and give a file inside"


OtherFormat = tuple[str, str]
"""What a file is, as `the file` goes on, and what to do about it."""
GIVE_IT: Final = "export the model that it was converted from to ONNX; it cannot be converted back"
BY_MAGIC: Final = {
    b"\x89HDF\r\n\x1a\n": ("is an HDF5 file, as Keras saves models", KERAS),
    b"GGUF": ("holds weights for llama.cpp (GGUF)", "export the original model to ONNX"),
    b"\x1f\x8b": ("is compressed by gzip", UNPACK),
    b"\xfd7zXZ": ("is compressed by xz", UNPACK),
    b"BZh": ("is compressed by bzip2", UNPACK),
    b"\x28\xb5\x2f\xfd": ("is compressed by zstd", UNPACK),
}


def other_format(path: Path) -> OtherFormat | None:
    """Return what a file or folder is that is known not to be an ONNX model; None when it may be one."""
    if path.is_dir():
        if path.suffix == ".mlpackage":
            return ("is a Core ML package", GIVE_IT)
        if (path / "saved_model.pb").exists():
            return ("is TensorFlow's SavedModel", TENSORFLOW.format("saved-model"))
        return None
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return _of_bytes(head, path) or _of_text(head) or _of_weights(head, path.stat().st_size)


def format_by_name(path: Path) -> OtherFormat | None:
    """Return what a file that is no ONNX model probably is, by its name."""
    match path.suffix.lower():
        case ".pb":
            kind = "saved-model" if path.name == "saved_model.pb" else "graphdef"
            return ("is not an ONNX model; by its name it is a TensorFlow model", TENSORFLOW.format(kind))
        case ".mlmodel":
            return ("is not an ONNX model; by its name it is a Core ML model", GIVE_IT)
        case _:
            return None


def _of_bytes(head: bytes, path: Path) -> OtherFormat | None:
    if not head:
        return ("is empty", "export or download the model again")
    if head[4:8] == b"TFL3":
        return ("is a TensorFlow Lite model", TENSORFLOW.format("tflite"))
    if head.startswith(ZIP):
        return _of_zip(path)
    for magic, found in BY_MAGIC.items():
        if head.startswith(magic):
            return found
    return _of_pickle(head) if head[0] == PICKLE and head[1:2] and head[1] in PICKLE_PROTOCOLS else None


def _of_pickle(head: bytes) -> OtherFormat:
    if TORCH_MAGIC in head[:32]:
        return ("is a PyTorch model, saved by torch.save", EXPORT)
    if b"sklearn" in head:
        hint = "convert it in Python: skl2onnx.to_onnx(model, example_inputs)"
        return ("is a pickled model of scikit-learn", hint)
    return ("is a pickled Python object, which is never loaded here", "export the model to ONNX")


def _of_zip(path: Path) -> OtherFormat | None:
    """Return what a zip archive holds; None for one that is no model's, such as an AAR, and for a damaged one."""
    try:
        with open_zip(path, str(path), links=True) as archive:
            names = tuple(archive.members)
    except StorageError:
        return None
    inner = {name.split("/", 1)[-1] for name in names}
    if "data.pkl" in inner:
        scripted = any(name.startswith("code/") for name in inner)
        what = "is a TorchScript model" if scripted else "is a PyTorch model, saved by torch.save"
        return (what, EXPORT)
    if any(name.endswith("exported_program.json") or name.startswith("models/") for name in inner):
        return ("is a PyTorch model, saved by torch.export", EXPORT)
    if "model.weights.h5" in names:
        return ("is a Keras model", KERAS)
    return _of_contents(names)


def _of_contents(names: tuple[str, ...]) -> OtherFormat | None:
    if models := [name for name in names if name.endswith(".onnx")]:
        return (f"is a zip archive, with {models[0]!r} in it", UNPACK)
    if names and all(name.endswith(".npy") for name in names):
        return ("holds arrays of NumPy", "it may be the 'data' of a case; give the model itself")
    return None


def _of_text(head: bytes) -> OtherFormat | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"version https://git-lfs"):
        return ("is only a pointer to Git LFS", "run: git lfs pull")
    if text.startswith(b"<"):
        html = b"<html" in text[:1024].lower() or text[:9].lower() == b"<!doctype"
        return ("is a web page" if html else "is text in XML", DOWNLOAD)
    return ("is text in JSON", DOWNLOAD) if text.startswith(b"{") else None


def _of_weights(head: bytes, size: int) -> OtherFormat | None:
    length = int.from_bytes(head[:8], "little")
    if head[8:9] != b"{" or not 2 <= length <= min(SAFETENSORS_HEADER, size - 8):
        return None
    hint = "load them into their model in Python and export that: torch.onnx.export or optimum-cli export onnx"
    return ("holds weights without a model (safetensors)", hint)


ELEMENT_TYPES: Final[dict[int, str]] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.INT16: "int16",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
    onnx.TensorProto.UINT8: "uint8",
    onnx.TensorProto.UINT16: "uint16",
    onnx.TensorProto.UINT32: "uint32",
    onnx.TensorProto.UINT64: "uint64",
    onnx.TensorProto.BOOL: "bool",
    onnx.TensorProto.STRING: "string",
}

_TENSOR: Final = "|".join(ELEMENT_TYPES.values())
_MAP: Final = r"map\((int64|string), (int64|string|float32|float64)\)"
UNTYPED: Final = "no type"
COMPARABLE: Final = re.compile(rf"({UNTYPED}|{_TENSOR}|{_MAP}|sequence\(({_TENSOR}|{_MAP})\))")
"""Words for the types of outputs that ORT format can hold (no optional values) and the runner can save as tensors.

ONNX Runtime finds out the type of an output that the model leaves open.
"""


def type_words(kind: onnx.TypeProto) -> str:
    """Return a type in words: `float32`, `sequence(map(int64, float32))`, `no type`."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            return element_words(kind.tensor_type.elem_type)
        case "sequence_type":
            return f"sequence({type_words(kind.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({type_words(kind.optional_type.elem_type)})"
        case "map_type":
            return f"map({element_words(kind.map_type.key_type)}, {type_words(kind.map_type.value_type)})"
        case other:
            return (other or UNTYPED).removesuffix("_type")


def element_words(number: int) -> str:
    """Return an element type in words, by its number in ONNX: `float32`, `int4`, `type 99` for an unknown one."""
    if number in ELEMENT_TYPES:
        return ELEMENT_TYPES[number]
    known: dict[int, str] = {value: name for name, value in onnx.TensorProto.DataType.items()}
    return known.get(number, f"type {number}").lower()


def require_texts(message: Message, where: str) -> None:
    """Raise `ModelError` `not-onnx` for a name that is not UTF-8, as protobuf's old syntax allows.

    Tensors' contents are not looked into.
    """
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            # Protobuf hands over as bytes what is not UTF-8.
            if any(isinstance(text, bytes) for text in ((value,) if isinstance(value, str | bytes) else value)):
                what, hint = f"a text in the model, '{field.name}', is not UTF-8", "export or download the model again"
                raise ModelError("not-onnx", what, where=where, hint=hint)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in (value,) if isinstance(value, Message) else value:
                require_texts(each, where)


OLDEST_OPSET: Final = 7
"""Upstream's promise in `docs/Versioning.md`: every version runs opset 7 and up."""

LARGEST_MODEL_BYTES: Final = 2**31 - 1
"""Neither a protobuf message nor a flatbuffer, the ORT format, can be larger."""


UNSUPPORTED: Final = {
    "unsupported-opset": (
        "convert it with onnx.version_converter, export another opset, or choose another onnxruntime.version"
    ),
    "unsupported-ir-version": (
        "export it without (float4, float8e8m0, 2-bit integers, settings for several devices), or choose another "
        "onnxruntime.version"
    ),
}
"""What to do about each."""


def check_limits(facts: ModelFacts, ort_version: str, where: str) -> None:
    """Raise `ModelError` for what `ort_version` does not take: `no-outputs`, `unsupported-opset`, ..."""
    require_outputs(facts, where)
    for code, _, words, needed in unsupported(facts, ort_version):
        hint = UNSUPPORTED[code] + (f": {needed}" if needed else "")
        raise ModelError(code, f"the model uses {words}", where=where, hint=hint)


def unsupported(facts: ModelFacts, ort_version: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield what a version does not take: one of `UNSUPPORTED`, the place, words, and what is needed, where that helps.

    A version whose limits are not recorded leaves the judgement to the converter. An IR version's number alone is
    lowered.
    """
    limits = limits_of(ort_version)
    newest = {"ai.onnx": limits.opset, "ai.onnx.ml": limits.ml_opset} if limits else {}
    for domain, opset in facts.opsets:
        oldest, most = OLDEST_OPSET if domain == "ai.onnx" else 1, newest.get(domain)
        too_new = most is not None and opset > most
        if too_new or opset < oldest:
            taken = f"{oldest} and up" if most is None else f"{oldest} to {most}"
            words = f"opset {opset} of {domain}; ONNX Runtime {ort_version} takes {taken}"
            yield "unsupported-opset", domain, words, needed_for_opset(domain, opset) if too_new else ""
    own = facts.least_ir_version
    if limits and own > limits.ir_version:
        words = f"what IR version {own} brought; ONNX Runtime {ort_version} reads up to {limits.ir_version}"
        yield "unsupported-ir-version", "model", words, needed_for_ir_version(own)


def require_outputs(facts: ModelFacts, where: str) -> None:
    """Raise `ModelError` (`no-outputs`): ONNX Runtime may load such a model, and no run of it gives anything."""
    if not facts.outputs:
        what = "the model has no outputs" if facts.node_count else "the model's graph is empty: no nodes and no outputs"
        hint = "export it again with its outputs, or add them: model.graph.output.append(...)"
        raise ModelError("no-outputs", what, where=where, hint=hint)


ALWAYS_READ: Final = 10
"""The IR version that every supported runtime reads."""
TYPES_SINCE: Final = {"FLOAT4E2M1": 11, "FLOAT8E8M0": 12, "UINT2": 13, "INT2": 13, "FLOAT6E2M3": 14, "FLOAT6E3M2": 14}
"""The element types that later ones brought, by their names in `TensorProto.DataType`."""
FIELDS_SINCE: Final = {"configuration": 11, "device_configurations": 11, "opaque_type": 14}
TYPE_FIELDS: Final = ("data_type", "elem_type")
TYPE_ATTRIBUTES: Final = ("to", "dtype", "output_dtype")
"""Attributes of operators that name an element type."""


def least_ir_version(model: onnx.ModelProto) -> int:
    """Return the lowest IR version that has all that a model uses; its own where it has what onnx does not know."""
    own = int(model.ir_version)
    return own if own <= ALWAYS_READ else max(ALWAYS_READ, *_ir_versions(model, own))


def _ir_versions(message: Message, own: int) -> Iterator[int]:
    """Yield the IR versions that brought what is in a message, as far as they are not read by every runtime."""
    yield own if len(UnknownFieldSet(message)) else 0
    names_type = isinstance(message, onnx.AttributeProto) and message.name in TYPE_ATTRIBUTES
    for field, value in message.ListFields():
        yield FIELDS_SINCE.get(field.name, 0)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in (value,) if isinstance(value, Message) else value:
                yield from _ir_versions(each, own)
        elif field.name in TYPE_FIELDS or (names_type and field.name == "i"):
            known = value in onnx.TensorProto.DataType.values()
            yield TYPES_SINCE.get(onnx.TensorProto.DataType.Name(value), 0) if known else own


def refuse_size(size: int, where: str) -> NoReturn:
    """Raise `ModelError` (`model-too-large`)."""
    what = f"the model with its data has {size:,} bytes; a model in ORT format can have {LARGEST_MODEL_BYTES:,}"
    hint = "quantize the model, or split it into several"
    raise ModelError("model-too-large", what, where=where, hint=hint)


_GIVE_ONNX: Final = "give the original ONNX model"


def read_onnx(path: Path, where: str) -> onnx.ModelProto:
    """Read a model without its external data. Raises `ModelError`, `not-onnx` or `model-too-large`."""
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
            _refuse(f"the file {named[0]}", where, named[1], why=str(error))
        hint = "export or download the model again; the file may be truncated"
        _refuse("the file is damaged or not an ONNX model", where, hint, why=str(error))
    if not (model.HasField("graph") and model.HasField("ir_version")):
        _refuse("the file holds no model", where, _GIVE_ONNX)
    require_texts(model, where)
    return model


def facts_of(model: onnx.ModelProto, sha256: str, size_bytes: int, where: str) -> ModelFacts:
    """Return what a model says of itself. `inputs` leaves out those that an initializer provides."""
    provided = {tensor.name for tensor in model.graph.initializer}
    provided |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    inputs = [value for value in model.graph.input if value.name not in provided]
    return ModelFacts(
        sha256=sha256,
        size_bytes=size_bytes,
        ir_version=model.ir_version,
        least_ir_version=least_ir_version(model),
        opsets=tuple(sorted((entry.domain or "ai.onnx", entry.version) for entry in model.opset_import)),
        inputs=tuple(_input(value, where) for value in inputs),
        outputs=tuple(_output(value, where) for value in model.graph.output),
        node_count=sum(1 for _ in nodes_of(model)),
        convolution_share=_convolution_share(model.graph, IMAGE_FILTERS, "Conv"),
        one_axis_share=_convolution_share(model.graph, IMAGE_FILTERS - 1, "Conv", "ConvTranspose"),
    )


IMAGE_FILTERS: Final = 4
"""Axes of the filters of a convolution along two axes."""


def _convolution_share(graph: onnx.GraphProto, rank: int, *operators: str) -> float:
    return filter_share(graph, rank, [node for node in graph.node if node.op_type in operators])


def filter_share(graph: onnx.GraphProto, rank: int, convolutions: Iterable[onnx.NodeProto]) -> float:
    """Return the share of a graph's float32 weights that these nodes have, whose filters have so many axes.

    Weights are initializers, or values of Constant as Paddle's exporter writes them.
    """
    constants = (node for node in graph.node if node.op_type == "Constant" and len(node.output) == 1)
    written = ((node.output[0], each.t) for node in constants for each in node.attribute if each.HasField("t"))
    tensors = dict(written) | {each.name: each for each in graph.initializer}
    weights = {name: each.dims for name, each in tensors.items() if each.data_type == onnx.TensorProto.FLOAT}
    read = {name for node in convolutions for name in node.input[1:2]}
    filters = [dims for name, dims in weights.items() if name in read and len(dims) == rank]
    return sum(map(math.prod, filters)) / max(1, sum(map(math.prod, weights.values())))


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of a model: of the graph, of the graphs inside its nodes, and of its functions."""
    yield from _nested_nodes(model.graph.node)
    for function in model.functions:
        yield from _nested_nodes(function.node)


def array_of(tensor: onnx.TensorProto) -> NDArray[Any] | None:
    """Return a tensor's content; None when it lies in another file or is damaged."""
    if uses_external_data(tensor):
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except Exception:  # noqa: BLE001 - it raises many kinds for fewer or more bytes than the dimensions say
        return None


def graphs_in(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the model's graph and every graph inside a node, those of functions too, outer ones first."""
    yield from graphs_below(model.graph)
    for function in model.functions:
        for node in _nested_nodes(function.node):
            yield from graphs_of(node)


def graphs_below(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and every one inside its nodes, outer ones first."""
    yield graph
    for node in _nested_nodes(graph.node):
        yield from graphs_of(node)


def read_names(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield the values that nodes read, those that their inner graphs take from outside among them."""
    for node in nodes:
        yield from filter(None, node.input)
        for graph in graphs_of(node):
            yield from captured(graph)


def fresh(name: str, names: set[str]) -> str:
    """Return a name like this one that is none of `names`, which it is added to."""
    while name in names:
        name += "_"
    names.add(name)
    return name


def captured(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Return the values that a graph reads from outside, its inner graphs' among them, each once and in order."""
    made = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
    made |= {tensor.name for tensor in graph.initializer}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    read = (*read_names(graph.node), *(value.name for value in graph.output))
    return tuple(dict.fromkeys(name for name in read if name and name not in made))


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types and shapes of its inner values, as far as ONNX can infer them."""
    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 - it raises its own kinds, and others for what it cannot parse
        return model


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
    words = type_words(value.type)
    if words not in ELEMENT_TYPES.values():
        what = f"input '{value.name}' is of a type that cannot be fed: {words}"
        hint = "inputs must be tensors; export the model with tensors instead"
        raise ModelError("unsupported-input-type", what, where=where, hint=hint)
    return TensorInfo(name=value.name, element_type=words, shape=shape_of(value.type))


def _output(value: onnx.ValueInfoProto, where: str) -> TensorInfo:
    words = type_words(value.type)
    if not COMPARABLE.fullmatch(words):
        what = f"output '{value.name}' is of a type that cannot be compared: {words}"
        hint = "outputs must be tensors of common types, or sequences or maps of them (skl2onnx: zipmap=False)"
        raise ModelError("unsupported-output-type", what, where=where, hint=hint)
    return TensorInfo(name=value.name, element_type=words, shape=shape_of(value.type))


def shape_of(kind: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Return a tensor's shape; None when the model leaves open even how many dimensions there are."""
    if not kind.tensor_type.HasField("shape"):
        return None
    return tuple(
        (each.dim_value if each.dim_value >= 0 else None) if each.HasField("dim_value") else each.dim_param or None
        for each in kind.tensor_type.shape.dim
    )


def _refuse_other_format(path: Path, where: str) -> None:
    if found := other_format(path):
        _refuse(f"the file {found[0]}", where, found[1])
    with path.open("rb") as file:
        head = file.read(8)
    if head[4:] == b"ORTM":
        _refuse("the file is in ORT format already", where, _GIVE_ONNX)
    if head.startswith(ZIP):
        _refuse("the file is an archive", where, UNPACK)


def _refuse(what: str, where: str, hint: str, *, why: str = "") -> NoReturn:
    raise ModelError("not-onnx", what, where=where, why=why, hint=hint)
