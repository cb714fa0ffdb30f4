"""What ONNX Runtime itself says of the operators that it fuses, compared with what `cost` goes by."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from fused_operators import FUSED, UNKNOWN, Fused
from onnx_samples import model_of, value, write
from ortrim.analysis.cost.graph import cost_of
from ortrim.analysis.cost.memory import ModelCost

NO_KERNEL = ("NhwcFusedConv",)
"""Without a kernel for these types on every processor."""


@pytest.mark.parametrize("fused", [each for each in (*FUSED, *UNKNOWN) if each.operator not in NO_KERNEL],
                         ids=lambda each: each.operator)  # fmt: skip
def test_the_runtime_infers_the_same(fused: Fused) -> None:
    """Shapes of the outputs; with another type, it would not load the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = fused.model(told=False).SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    shapes = [tuple(output.shape) for output in session.get_outputs()]
    assert shapes == fused.shapes


def _layers() -> onnx.ModelProto:
    """Return a model of which ONNX Runtime fuses all: a convolution, scaled products, and a normalisation."""
    shapes = {"k": (4, 3, 3, 3), "g": (16,), "b": (16,)}
    weights = [numpy_helper.from_array(np.full(shape, 0.1, np.float32), name) for name, shape in shapes.items()]
    weights += [numpy_helper.from_array(np.array(0.25, np.float32), "scale")]
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["r", "t"], ["m"]),
        helper.make_node("Mul", ["m", "scale"], ["s"]),
        helper.make_node("Add", ["s", "r"], ["a"]),
        helper.make_node("LayerNormalization", ["a", "g", "b"], ["y"], axis=-1),
    ]
    ends = [value("x", shape=("n", 3, 16, 16))], [value("y", shape=("n", 4, 16, 16))]
    return model_of(nodes, *ends, initializers=weights)


def _cost(path: Path) -> ModelCost:
    return cost_of(path, dimensions={"n": 2}, name="m", where="m")


def test_a_model_that_was_optimized_is_counted_as_before(tmp_path: Path) -> None:
    """All of it, although its operators are ONNX Runtime's own."""
    original, optimized = write(tmp_path / "m.onnx", _layers()), tmp_path / "optimized.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimized)
    onnxruntime.InferenceSession(str(original), options, providers=["CPUExecutionProvider"])
    operators = {node.op_type for node in onnx.load(optimized).graph.node}
    assert {"FusedConv", "FusedMatMul"} <= operators
    before, after = _cost(original), _cost(optimized)
    assert (after.at_least, after.macs) == (False, before.macs)
    assert 0 < after.memory.size_bytes <= before.memory.size_bytes
