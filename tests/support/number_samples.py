"""Small models for the steps that change numbers, and what they give."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from onnx_samples import model_of, value

Array = np.ndarray[Any, Any]


def weights(name: str, *shape: int, seed: int = 0) -> onnx.TensorProto:
    random = np.random.default_rng([seed, *name.encode()])
    return numpy_helper.from_array(random.uniform(-1, 1, shape).astype(np.float32), name)


def positive(name: str, *shape: int) -> onnx.TensorProto:
    found = numpy_helper.to_array(weights(name, *shape))
    return numpy_helper.from_array((1 + found / 2).astype(np.float32), name)


def random_feeds(model: onnx.ModelProto, seed: int = 1) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {
        each.name: random.uniform(-1, 1, [size.dim_value or 2 for size in each.type.tensor_type.shape.dim]).astype(
            np.float32
        )
        for each in model.graph.input
    }


def ran(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def assert_same(before: Sequence[Array], after: Sequence[Array], tolerance: float = 1e-5) -> None:
    """Check that outputs have the same shapes and, nearly, the same numbers."""
    assert len(before) == len(after) > 0
    for one, other in zip(before, after, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


def operators(graph: onnx.GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def normalised(*before: onnx.NodeProto, rank: int = 4, channels: int = 4, **more: Any) -> onnx.ModelProto:
    names = ("scale", "shift", "mean", "variance")
    norm = helper.make_node("BatchNormalization", ["n", *names], ["y"], name="norm", epsilon=1e-3)
    numbers = [*(weights(name, channels) for name in names[:3]), positive("variance", channels)]
    inputs = [value("x", shape=[2, 3, *[8] * (rank - 2)])]
    outputs = [value("y", shape=["n", channels, *[None] * (rank - 2)])]
    return model_of([*before, norm], inputs, outputs, initializers=[*numbers, *more["initializers"]])


def sequences(opset: int = 17) -> onnx.ModelProto:
    """Return convolutions along one axis with all that can follow them in two, and what cannot."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="first", pads=[1, 1], strides=[2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="second", pads=[2, 0], group=2, dilations=[2]),
        helper.make_node("Mul", ["c", "gain"], ["d"]),
        helper.make_node("Add", ["d", "b"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["f"], kernel_shape=[2], strides=[2]),
        helper.make_node("ConvTranspose", ["f", "w3"], ["g"], strides=[2], output_padding=[1]),
        helper.make_node("Transpose", ["g"], ["h"], perm=[0, 2, 1]),
        helper.make_node("Softmax", ["h"], ["y"], axis=-1),
    ]
    tensors = [weights("w1", 4, 3, 3), weights("b1", 4), weights("w2", 4, 2, 2), weights("gain", 4, 1)]
    inputs = [value("x", shape=["n", 3, 16])]
    outputs = [value("y", shape=["n", None, 5])]
    return model_of(nodes, inputs, outputs, opsets=[("", opset)], initializers=[*tensors, weights("w3", 4, 5, 2)])


def picture(pads: Sequence[int] = (0, 0, 0, 0), operator: str = "Conv") -> onnx.ModelProto:
    if operator != "Conv":
        shape = [value("x", shape=[1, 3, 6, 6])], [value("y", shape=[1, 3, 6, 6])]
        return model_of([helper.make_node(operator, ["x"], ["y"])], *shape)
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], name="first", pads=list(pads))
    sizes = [4 + pads[axis] + pads[axis + 2] for axis in (0, 1)]
    inputs, outputs = [value("x", shape=[1, 3, 6, 6])], [value("y", shape=[1, 4, *sizes])]
    return model_of([node], inputs, outputs, initializers=[weights("w", 4, 3, 3, 3), weights("b", 4)])


def recurrent(operator: str = "LSTM", *, length: int | str = 5, **attributes: Any) -> onnx.ModelProto:
    """Return one GRU or LSTM with all inputs that it commonly has, and all of its outputs."""
    gates, states = {"GRU": (3, ["h0"]), "LSTM": (4, ["h0", "c0"])}[operator]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    given = ["sequence", "last", "memory"][: 1 + len(states)]
    node = helper.make_node(
        operator, ["x", "W", "R", "B", "", *states], given, name="cell", hidden_size=4, **attributes
    )
    tensors = [weights(name, directions, gates * 4, width) for name, width in (("W", 3), ("R", 4))]
    inputs = [value("x", shape=[length, "n", 3]), *(value(name, shape=[directions, "n", 4]) for name in states)]
    outputs = [value("sequence", shape=[length, directions, "n", 4])]
    outputs += [value(name, shape=[directions, "n", 4]) for name in given[1:]]
    return model_of([node], inputs, outputs, initializers=[*tensors, weights("B", directions, 2 * gates * 4)])
