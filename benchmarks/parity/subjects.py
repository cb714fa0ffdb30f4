"""What runs: the models of a buildspec with their cases and references, and 16-bit and 8-bit variants of some."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

from ortrim.base.cache import cache_folder
from ortrim.buildspec.buildspec import LoadedSpec, ModelSpec, SessionSpec, settings_of
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.prepare import FACTS_LAYOUT, prepare
from ortrim.parity.inputs import Case, load_array, make_cases
from ortrim.parity.reference import References, SavedOutputs, reference_outputs, shipped_outputs

VARIANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "float64": ("encoder",),
    "float16": ("text-direction", "page-orientation", "encoder", "embedding", "text-recognition", "magika"),
    "bfloat16": ("text-direction", "page-orientation", "encoder", "embedding", "magika"),
    "int8-dynamic": ("encoder", "magika", "hey-jarvis", "hey-mycroft"),
    "int8-static": ("text-direction", "page-orientation", "text-detection", "float32-kernels", "embedding"),
    "int8-outputs": ("page-orientation", "text-detection", "float32-kernels", "embedding"),
    "argmax": ("text-recognition", "text-direction", "magika"),
}
ROUNDED: Final = ("Conv", "Gemm", "MatMul")
"""Operators whose results the variant in bfloat16 rounds: the CPU has no kernels for that type, so that casts do it."""
LEAST_OPSET: Final = 13
DYNAMIC: Final = ["Attention", "Gather", "Gemm", "LSTM", "MatMul"]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model with its cases, the full runtime's outputs of it, and those of it converted."""

    prepared: PreparedModel
    converted: OrtModel
    cases: tuple[Case, ...]
    reference: References
    same_graph: SavedOutputs

    @property
    def name(self) -> str:
        return self.prepared.name


def subjects_of(loaded: LoadedSpec, runtime: FullRuntime, scratch: Path) -> Iterator[Subject]:
    """Yield the models of a buildspec, then their variants. Raises what fetching and running models raises."""
    base = loaded.file.parent
    specs = {spec.name: spec for spec in loaded.models}
    given = {name: subject_of(spec, base, runtime) for name, spec in specs.items()}
    yield from given.values()
    for kind, names in VARIANTS.items():
        for name in names:
            path = scratch / f"{name}-{kind}.onnx"
            MAKERS[kind](given[name], path)
            changed = replace(specs[name], name=path.stem, path=path, wheel=None, member=None, sha256=None)
            yield subject_of(changed, base, runtime)


def subject_of(spec: ModelSpec, base: Path, runtime: FullRuntime) -> Subject:
    root, where = cache_folder("models") / FACTS_LAYOUT, f"model '{spec.name}'"
    prepared = prepare(spec, base=base, root=root, ort_version=runtime.version, where=where)
    return prepared_subject(prepared, make_cases(prepared, spec, base, cache_folder("cases")), runtime)


def prepared_subject(prepared: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime) -> Subject:
    conversion, root = Conversion(style="fixed", level="extended", layout="plain"), cache_folder("references")
    converted = convert(prepared, conversion, runtime=runtime, root=cache_folder("conversions"))
    session = settings_of(SessionSpec(), style=converted.style, reads_in_place=converted.reads_in_place)
    return Subject(
        prepared=prepared,
        converted=converted,
        cases=cases,
        reference=reference_outputs(prepared, cases, runtime, root),
        same_graph=shipped_outputs(prepared, converted, session, cases, runtime=runtime, folder=root, runs_here=True),
    )


def to_float64(subject: Subject, path: Path) -> None:
    """Write a model in float64, with Tanh for Erf, which has no kernel for it."""
    model = onnx.load(subject.prepared.path)
    graph = model.graph
    del graph.value_info[:]
    _replace_type(graph, TensorProto.DOUBLE)
    for tensor in graph.initializer:
        _widen(tensor)
    for node in graph.node:
        node.op_type = "Tanh" if node.op_type == "Erf" else node.op_type
        for attribute in node.attribute:
            attribute.i = (
                TensorProto.DOUBLE if (attribute.name, attribute.i) == ("to", TensorProto.FLOAT) else attribute.i
            )
            if attribute.HasField("t"):
                _widen(attribute.t)
    onnx.save(model, path)


def _widen(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _replace_type(graph: onnx.GraphProto, kind: int) -> set[str]:
    """Give inputs and outputs of float32 another type; return the outputs' names."""
    changed = [
        value for value in (*graph.input, *graph.output) if value.type.tensor_type.elem_type == TensorProto.FLOAT
    ]
    for value in changed:
        value.type.tensor_type.elem_type = kind
    return {value.name for value in changed} & {value.name for value in graph.output}


def to_float16(subject: Subject, path: Path) -> None:
    """Write a model in float16, inputs and outputs too, by ONNX Runtime's own converter."""
    made = convert_float_to_float16(onnx.load(subject.prepared.path), keep_io_types=False)
    OnnxModel(made).topological_sort()
    onnx.save(made, path)


def to_bfloat16(subject: Subject, path: Path) -> None:
    """Write a model whose products and outputs are rounded to bfloat16."""
    model = onnx.load(subject.prepared.path)
    graph = model.graph
    for opset in model.opset_import:
        opset.version = max(opset.version, LEAST_OPSET) if opset.domain == "" else opset.version
    given = {value.name for value in graph.input}
    kinds = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    outputs = _replace_type(graph, TensorProto.BFLOAT16)
    for value in graph.input:
        value.type.tensor_type.elem_type = kinds[value.name]
    nodes = [each for node in graph.node for each in (node, *_rounded(node, outputs - given))]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)


def _rounded(node: onnx.NodeProto, outputs: set[str]) -> Iterator[onnx.NodeProto]:
    """Rename what a node makes, and yield the casts that make the old names of it."""
    for index, name in enumerate(node.output):
        if name in outputs:
            node.output[index] = f"{name}-exact"
            yield helper.make_node("Cast", [f"{name}-exact"], [name], to=TensorProto.BFLOAT16)
        elif node.op_type in ROUNDED:
            node.output[index] = f"{name}-exact"
            yield helper.make_node("Cast", [f"{name}-exact"], [f"{name}-rounded"], to=TensorProto.BFLOAT16)
            yield helper.make_node("Cast", [f"{name}-rounded"], [name], to=TensorProto.FLOAT)


def to_dynamic(subject: Subject, path: Path) -> None:
    """Write a model with weights of 8 bits, whose activations are quantized in every run."""
    kind = quantization.QuantType.QInt8
    with _quiet():
        quantization.quantize_dynamic(subject.prepared.path, path, weight_type=kind, op_types_to_quantize=DYNAMIC)


def to_static(subject: Subject, path: Path) -> None:
    """Write a model with weights and activations of 8 bits, whose ranges are those of the cases."""
    with _quiet():
        quantization.quantize_static(
            subject.prepared.path,
            path,
            _Recorded(subject),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )


def to_quantized_outputs(subject: Subject, path: Path) -> None:
    to_static(subject, path)
    model = onnx.load(path)
    graph = model.graph
    made = {name: node for node in graph.node for name in node.output}
    for value in graph.output:
        last = made[value.name]
        graph.node.remove(last)
        value.name = last.input[0]
        value.type.tensor_type.elem_type = TensorProto.UINT8
    onnx.save(model, path)


def to_argmax(subject: Subject, path: Path) -> None:
    """Write a model that answers with the numbers of the best classes."""
    model = onnx.load(subject.prepared.path)
    graph = model.graph
    (value,) = graph.output
    graph.node.append(helper.make_node("ArgMax", [value.name], ["label"], axis=-1, keepdims=0))
    graph.output.remove(value)
    graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, None))
    onnx.save(model, path)


class _Recorded(quantization.CalibrationDataReader):  # type: ignore[misc]  # without types of its own
    def __init__(self, subject: Subject) -> None:
        names = [info.name for info in subject.prepared.facts.inputs]
        self._waiting = [
            {name: load_array(case.folder / f"input_{index:03}.npy") for index, name in enumerate(names)}
            for case in subject.cases
        ]

    def get_next(self) -> dict[str, Any] | None:
        """Return the next set; None behind the last."""
        return self._waiting.pop(0) if self._waiting else None


@contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


MAKERS: Final[Mapping[str, Callable[[Subject, Path], None]]] = {
    "float64": to_float64,
    "float16": to_float16,
    "bfloat16": to_bfloat16,
    "int8-dynamic": to_dynamic,
    "int8-static": to_static,
    "int8-outputs": to_quantized_outputs,
    "argmax": to_argmax,
}
