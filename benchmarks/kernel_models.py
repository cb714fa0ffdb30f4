"""Makes the models of `benchmarks/kernels`: small ones whose products and convolutions MLAS has several kernels for.

usage: kernel_models.py [FOLDER]

`float32` has a convolution and a matrix product. `quantized` has them with 8 bits: unsigned activations with signed
weights, as most converters write it, then signed with signed, and a depthwise convolution too. MLAS has kernels of its
own for convolutions of 8 bits from 64 channels on. The weights are noise, the same bytes everywhere.
"""

import hashlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

CHANNELS: Final[Mapping[str, int]] = {"float32": 16, "quantized": 64}
SIZE: Final = 8
"""Of the picture, in both directions; a convolution with padding keeps it."""
SCALES: Final = (0.02, 1.0, 4.0, 16.0, 96.0)
"""Of the input and all weights, and of each result, so that few values are cut off."""
OPSET: Final = 17
IR_VERSION: Final = 8
DEFAULT_FOLDER: Final = Path(__file__).with_name("kernels")


def noise(name: str, *shape: int) -> NDArray[np.int8]:
    data = hashlib.shake_256(name.encode()).digest(int(np.prod(shape)))
    return np.frombuffer(data, dtype=np.int8).reshape(shape)


def float32() -> onnx.ModelProto:
    channels = CHANNELS["float32"]
    tensors: dict[str, NDArray[Any]] = {
        "kernel": noise("kernel", channels, channels, 3, 3).astype(np.float32) / 512,
        "weights": noise("weights", SIZE, 2 * SIZE).astype(np.float32) / 512,
    }
    nodes = [
        _node("Conv", "x", "kernel", output="c", pads=[1] * 4),
        _node("Relu", "c", output="r"),
        _node("MatMul", "r", "weights", output="y"),
    ]
    return _model("float32", nodes, tensors, TensorProto.FLOAT, TensorProto.FLOAT)


def quantized() -> onnx.ModelProto:
    channels = CHANNELS["quantized"]
    tensors: dict[str, NDArray[Any]] = {
        "kernel": noise("kernel", channels, channels, 3, 3),
        "depthwise": noise("depthwise", channels, 1, 3, 3),
        "weights": noise("weights", SIZE, 2 * SIZE),
        "more": noise("more", 2 * SIZE, SIZE),
        **{f"scale-{size}": np.array(size, np.float32) for size in SCALES},
        "unsigned": np.array(128, np.uint8),
        "signed": np.array(0, np.int8),
    }
    given, first, second, third, fourth = (f"scale-{size}" for size in SCALES)
    ours = (given, "signed")
    same = {"pads": [1] * 4}
    nodes = [
        _node("QLinearConv", "x", given, "unsigned", "kernel", *ours, first, "unsigned", output="c", **same),
        _node(
            "QLinearConv",
            "c",
            first,
            "unsigned",
            "depthwise",
            *ours,
            second,
            "unsigned",
            output="d",
            group=channels,
            **same,
        ),
        _node("QLinearMatMul", "d", second, "unsigned", "weights", *ours, third, "unsigned", output="p"),
        _node("DequantizeLinear", "p", third, "unsigned", output="f"),
        _node("QuantizeLinear", "f", third, "signed", output="s"),
        _node("QLinearMatMul", "s", third, "signed", "more", *ours, fourth, "signed", output="y"),
    ]
    return _model("quantized", nodes, tensors, TensorProto.UINT8, TensorProto.INT8)


def _node(operator: str, *inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def _model(
    name: str, nodes: list[NodeProto], tensors: Mapping[str, NDArray[Any]], given: int, made: int
) -> onnx.ModelProto:
    width = 2 * SIZE if made == TensorProto.FLOAT else SIZE
    inputs = [helper.make_tensor_value_info("x", given, (1, CHANNELS[name], SIZE, SIZE))]
    outputs = [helper.make_tensor_value_info("y", made, (1, CHANNELS[name], SIZE, width))]
    initializers = [numpy_helper.from_array(values, each) for each, values in tensors.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


MODELS: Final[Mapping[str, Callable[[], onnx.ModelProto]]] = {"float32": float32, "quantized": quantized}


def main(words: list[str]) -> None:
    folder = Path(words[0]) if words else DEFAULT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        model = make()
        onnx.checker.check_model(model, full_check=True)
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(sys.argv[1:])
