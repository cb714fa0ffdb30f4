"""Models of one node between DequantizeLinear and QuantizeLinear, which ONNX Runtime optimizes to one of integers."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, value

INPUT_SCALE, WEIGHT_SCALE = 0.02, 0.01


def _constant(name: str, numbers: object, element_type: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(numbers, element_type), name)


def quantized_convolution(
    bias_scale: float | Sequence[float], activation: str = "", output_zero: int = 128
) -> onnx.ModelProto:
    """Return a Conv of two channels; its bias is about 1 and -2 by its own scale or scales."""
    scales = np.broadcast_to(np.asarray(bias_scale, np.float64), (2,))
    weight_scales = WEIGHT_SCALE if np.ndim(bias_scale) == 0 else [WEIGHT_SCALE] * 2
    dequantize = [
        helper.make_node("DequantizeLinear", [name, f"{name}s", f"{name}z"], [f"{name}f"], axis=0) for name in "qwb"
    ]
    after = [helper.make_node(activation, ["c"], ["a"])] if activation else []
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "qs", "qz"], ["q"]),
        *dequantize,
        helper.make_node("Conv", ["qf", "wf", "bf"], ["c"]),
        *after,
        helper.make_node("QuantizeLinear", [after[0].output[0] if after else "c", "ys", "yz"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    constants = [
        *(_constant("qs", INPUT_SCALE), _constant("qz", 128, np.uint8)),
        *(_constant("ws", weight_scales), _constant("wz", np.zeros_like(weight_scales), np.int8)),
        *(_constant("bs", bias_scale), _constant("bz", np.zeros_like(bias_scale), np.int32)),
        *(_constant("ys", 0.05), _constant("yz", output_zero, np.uint8)),
        _constant("w", [[[[60]]], [[[-90]]]], np.int8),
        _constant("b", np.round(np.array([1, -2]) / scales), np.int32),
    ]
    ends = [value("x", shape=(1, 1, 2, 3))], [value("y", shape=(1, 2, 2, 3))]
    return model_of(nodes, *ends, initializers=constants)


def quantized_resize(mode: str) -> onnx.ModelProto:
    """Return a Resize of three by three uint8 to twice as many in both directions."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["f"]),
        helper.make_node("Resize", ["f", "", "", "sizes"], ["c"], mode=mode),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    constants = [_constant("s", 1.0), _constant("z", 0, np.uint8), _constant("sizes", [1, 1, 6, 6], np.int64)]
    ends = [value("x", TensorProto.FLOAT, (1, 1, 3, 3))], [value("y", TensorProto.FLOAT, (1, 1, 6, 6))]
    return model_of(nodes, *ends, initializers=constants)
