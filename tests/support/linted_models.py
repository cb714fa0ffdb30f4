"""What the rules of `lint` look at, made from small models."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from onnx_samples import write
from ortrim.lint.findings import LintFacts, RuntimeFacts
from ortrim.models.graph_facts import read_graph
from ortrim.models.onnx_files import LARGEST_MODEL_BYTES, OLDEST_OPSET

LIMITS: dict[str, int] = {"oldest_opset": OLDEST_OPSET, "max_bytes": LARGEST_MODEL_BYTES}
RUNTIME = RuntimeFacts(version="1.21.0", **LIMITS, max_opset=22, max_ml_opset=5, max_ir_version=10)


def facts(model: onnx.ModelProto, **more: Any) -> LintFacts:
    """Return the facts of a model, with those of a runtime and a build as given."""
    with TemporaryDirectory() as folder:
        graph = read_graph(write(Path(folder) / "model.onnx", model))
    return replace(LintFacts(graph=graph, runtime=RUNTIME), **more)
