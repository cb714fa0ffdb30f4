"""What the rules of `lint` look at, made from small models."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from onnx_samples import write
from ortrim.analysis.lint.rules import LintFacts
from ortrim.models.graph_facts import read_graph

VERSION = "1.21.0"


def facts(model: onnx.ModelProto, **more: Any) -> LintFacts:
    with TemporaryDirectory() as folder:
        graph = read_graph(write(Path(folder) / "model.onnx", model))
    return LintFacts(graph=graph, version=VERSION, **more)
