"""Inspect: what is in an ONNX model, a model in ORT format, or an operator configuration."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ortrim.core.models import ModelFacts
from ortrim.core.operator_config import parse_config
from ortrim.core.operators import OperatorId, RequiredOperators
from ortrim.errors import ModelError, OperatorsError
from ortrim.models.alignment import misaligned, tensor_places
from ortrim.models.ort_reading import Damaged, Table, nodes_of, root_of
from ortrim.storage.files import sha256_of

OperatorCounts = tuple[tuple[OperatorId, int], ...]
"""Operators with the number of their nodes, in order."""


@dataclass(frozen=True, kw_only=True)
class OnnxInspection:
    """An ONNX model. The opset of an operator is the one that the model imports for its domain (0: none)."""

    facts: ModelFacts
    producer: str
    operators: OperatorCounts
    external_files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OrtInspection:
    """A model in ORT format. The opset of an operator is that since which it is as it is, as in a configuration.

    The format says nothing of the ONNX Runtime that wrote it but `format_version`: ONNX Runtime 1.16 and newer
    write 6 and minimal builds of them read 5 and 6. `misaligned_tensors` are those that a processor without unaligned
    access cannot read in place.
    """

    sha256: str
    size_bytes: int
    format_version: str
    ir_version: int
    opsets: tuple[tuple[str, int], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operators: OperatorCounts
    runtime_optimizations: bool
    misaligned_tensors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConfigInspection:
    """A required-operators configuration."""

    required: RequiredOperators
    restricted_count: int


def inspect_onnx(path: Path) -> OnnxInspection:
    """Read an ONNX model. Raises `ModelError` as preparing does, but takes any opset."""
    from ortrim.models import external_data, onnx_reading  # noqa: PLC0415 - they import onnx

    model = onnx_reading.read_onnx(_present(path), str(path))
    facts = onnx_reading.facts_of(model, sha256_of(path), path.stat().st_size, str(path))
    opsets = dict(facts.opsets)
    nodes = ((node.domain or "ai.onnx", node.op_type) for node in onnx_reading.nodes_of(model))
    return OnnxInspection(
        facts=facts,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        operators=_counted([(domain, opsets.get(domain, 0), name) for domain, name in nodes]),
        external_files=external_data.external_files(model, str(path)),
    )


def inspect_ort(path: Path) -> OrtInspection:
    """Read a model in ORT format. Raises `ModelError` (`not-ort`, `model-missing`)."""
    data = _present(path).read_bytes()
    try:
        return _inspect_session(root_of(data, str(path)), data, sha256_of(path))
    except Damaged as error:
        hint = "convert the model again"
        raise ModelError("not-ort", "the file is damaged or cut short", where=str(path), hint=hint) from error


def inspect_config(path: Path) -> ConfigInspection:
    """Read a required-operators configuration. Raises `OperatorsError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorsError("config-unreadable", "cannot be read", where=str(path), why=str(error)) from error
    required = parse_config(text, str(path))
    return ConfigInspection(required=required, restricted_count=len(required.types))


def _inspect_session(session: Table, data: bytes, sha256: str) -> OrtInspection:
    model = session.table(1)
    graph = model.table(7) if model else None
    if model is None or graph is None:
        raise Damaged
    nodes = [(node.text(2) or "ai.onnx", node.integer(3, "i"), node.text(5)) for node in nodes_of(graph)]
    return OrtInspection(
        sha256=sha256,
        size_bytes=len(data),
        format_version=session.text(0),
        ir_version=model.integer(0, "q"),
        opsets=tuple(sorted((entry.text(0) or "ai.onnx", entry.integer(1, "q")) for entry in model.tables(1))),
        inputs=tuple(graph.texts(5)),
        outputs=tuple(graph.texts(6)),
        operators=_counted(nodes),
        runtime_optimizations=graph.table(8) is not None,
        misaligned_tensors=misaligned(tensor_places(data, "")),
    )


def _counted(operators: list[tuple[str, int, str]]) -> OperatorCounts:
    counts = Counter(OperatorId(domain=domain, opset=opset, name=name) for domain, opset, name in operators)
    return tuple(sorted(counts.items()))


def _present(path: Path) -> Path:
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", hint="check the path")
    return path
