"""What the rules of `lint` look at, made from small models."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from onnx_samples import write
from ortrim.analysis.lint.rules import LintFacts
from ortrim.models.graph_facts import read_graph
from ortrim.pins.runtime import VersionLimits

VERSION = "1.21.0"
LIMITS = VersionLimits(opset=22, ml_opset=5, ir_version=10)


def facts(model: onnx.ModelProto, **more: Any) -> LintFacts:
    with TemporaryDirectory() as folder:
        graph = read_graph(write(Path(folder) / "model.onnx", model))
    return replace(LintFacts(graph=graph, version=VERSION, limits=LIMITS), **more)
