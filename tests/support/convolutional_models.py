"""A model of convolutions of every kind that may be laid out in blocks of channels."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ortrim.analysis.inspect import inspect_ort
from ortrim.base.files import shipped_folder

NCHWC_ROWS: Final = "nchwc_rows.h"
"""What the kernels of ARM64 and of AVX-512 both include."""


def swish(name: str, *, gate_first: bool = False) -> tuple[onnx.NodeProto, onnx.NodeProto]:
    gate = helper.make_node("HardSigmoid", [name], [f"{name}_gate"], alpha=1 / 6, beta=0.5)
    factors = [name, f"{name}_gate"]
    return gate, helper.make_node("Mul", factors[::-1] if gate_first else factors, [f"{name}_swish"])


def convolutional() -> onnx.ModelProto:
    """Return a model with convolutions of a picture, of blocks, depthwise and pointwise, and the three poolings.

    Behind four of them is hard-swish; of two, more nodes read the gate or what the convolution makes.
    """
    random = np.random.default_rng(7)
    shapes = {"a": (32, 3, 3, 3), "b": (32, 1, 3, 3), "c": (64, 32, 1, 1), "d": (32, 64, 3, 3)}
    weights = [
        numpy_helper.from_array((random.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["x1"], **window),
        helper.make_node("Relu", ["x1"], ["x2"]),
        helper.make_node("Conv", ["x2", "b"], ["x3"], group=32, **window),
        *swish("x3"),
        helper.make_node("Conv", ["x3_swish", "c"], ["x4"], kernel_shape=[1, 1]),
        *swish("x4", gate_first=True),
        helper.make_node("MaxPool", ["x4_swish"], ["x5"], strides=[2, 2], **window),
        helper.make_node("AveragePool", ["x5"], ["x6"], count_include_pad=1, **window),
        helper.make_node("AveragePool", ["x6"], ["x7"], count_include_pad=0, **window),
        helper.make_node("Conv", ["x7", "d"], ["x8"], **window),
        *swish("x8"),
        helper.make_node("Add", ["x8_swish", "x8_gate"], ["x9"]),
        helper.make_node("Conv", ["x9", "b"], ["x10"], group=32, **window),
        *swish("x10"),
        helper.make_node("Add", ["x10_swish", "x10"], ["x11"]),
        helper.make_node("Conv", ["x11", "b"], ["x12"], group=32, **window),
        helper.make_node("GlobalAveragePool", ["x12"], ["y"]),
    ]
    picture = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 31, 29])
    means = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 1, 1])
    graph = helper.make_graph(nodes, "wide", [picture], [means], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def blocked(model: Path) -> set[str]:
    return {use.name for use, _ in inspect_ort(model)["operators"] if use.domain == "com.microsoft.nchwc"}


def change_kernels(names: tuple[str, ...], folder: Path, right: str, wrong: str) -> None:
    """Copy the named kernels to a folder, with other words in one of them."""
    texts = {name: (shipped_folder("cmake") / name).read_text() for name in names}
    assert [name for name, text in texts.items() if right in text]
    for name, text in texts.items():
        (folder / name).write_text(text.replace(right, wrong))
