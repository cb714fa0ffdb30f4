"""Convolutions along one axis as such along two, against onnxruntime."""

from copy import deepcopy
from typing import Final

import onnx
import pytest
from onnx import helper

from number_samples import assert_same, operators, ran, random_feeds, sequences, weights
from onnx_samples import model_of, relu, value
from ortrim.buildspec.step_specs import Conv1dTo2d
from ortrim.steps.conv1d_to_2d import conv1d_to_2d
from ortrim.steps.step import Stepped

ASKED: Final = Conv1dTo2d(use="conv1d-to-2d")


def step(model: onnx.ModelProto) -> Stepped:
    return conv1d_to_2d(deepcopy(model), ASKED)


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 22])
def test_neighbours_stay_in_two_dimensions(opset: int) -> None:
    """One Unsqueeze before the first convolution, one Squeeze behind the last, and the same numbers."""
    model = sequences(opset)
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    found = operators(stepped.model.graph)
    assert (found[0], found.count("Unsqueeze"), found.count("Squeeze")) == ("Unsqueeze", 1, 1)
    assert found.index("Squeeze") == found.index("Transpose") - 1
    counts = "made 4 convolutions and poolings two-dimensional, and 3 other nodes with them"
    assert stepped.notes == (f"{counts}; 2 of Squeeze and Unsqueeze are in the graph",)
    shapes = {tensor.name: list(tensor.dims) for tensor in stepped.model.graph.initializer}
    assert sorted(shape for shape in shapes.values() if len(shape) == 4) == [[4, 2, 1, 2], [4, 3, 1, 3], [4, 5, 1, 2]]


FOLLOWING: Final = [
    helper.make_node("Pad", ["a", "pads"], ["y"], mode="reflect"),
    helper.make_node("Concat", ["a", "a", "row"], ["y"], axis=-1),
    helper.make_node("Concat", ["a", "a"], ["y"], axis=1),
    helper.make_node("Slice", ["a", "from", "to", "axes"], ["y"]),
    helper.make_node("BatchNormalization", ["a", "s", "s", "s", "v"], ["y"]),
    helper.make_node("PRelu", ["a", "slope"], ["y"]),
    helper.make_node("Sub", ["row", "a"], ["y"]),
    helper.make_node("Div", ["a", "one"], ["y"]),
    helper.make_node("Clip", ["a", "", "one"], ["y"]),
    helper.make_node("Mul", ["a", "last"], ["y"]),
]


def followed(node: onnx.NodeProto) -> onnx.ModelProto:
    conv = helper.make_node("Conv", ["x", "w"], ["a"])
    tensors = [weights("w", 4, 3, 3), weights("s", 4), weights("slope", 4, 1), weights("row", 1, 4, 6)]
    tensors += [helper.make_tensor("v", 1, [4], [0.5] * 4), helper.make_tensor("one", 1, [], [0.5])]
    numbers = {"pads": [0, 0, 2, 0, 0, 1], "from": [1, 1], "to": [3, 9], "axes": [-2, 2]}
    tensors += [helper.make_tensor(name, 7, [len(given)], given) for name, given in numbers.items()]
    used = [each for each in [*tensors, weights("last", 6)] if each.name in {"w", *node.input}]
    inputs, outputs = [value("x", shape=[1, 3, 8])], [value("y", shape=[None] * 3)]
    return model_of([conv, node], inputs, outputs, initializers=used)


@pytest.mark.parametrize("node", FOLLOWING, ids=lambda node: str(node.op_type))
def test_an_operator_follows(node: onnx.NodeProto) -> None:
    """What works by element, by channel or along given axes stands before the Squeeze, and gives the same."""
    model = followed(node)
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    assert operators(stepped.model.graph) == ["Unsqueeze", "Conv", node.op_type, "Squeeze"]


STAYING: Final = [
    helper.make_node("ReduceMean", ["a"], ["y"], axes=[2]),
    helper.make_node("Add", ["a", "deep"], ["y"]),
    helper.make_node("Softmax", ["a"], ["y"], axis=-1),
    helper.make_node("Where", ["mask", "a", "a"], ["y"]),
]


@pytest.mark.parametrize("node", STAYING, ids=lambda node: str(node.op_type))
def test_what_cannot_follow_reads_the_old_form(node: onnx.NodeProto) -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["a"])
    tensors = [weights("w", 4, 3, 3), weights("deep", 1, 1, 4, 6), helper.make_tensor("mask", 9, [1], [True])]
    used = [each for each in tensors if each.name in {"w", *node.input}]
    rank = 4 if "deep" in node.input else 3
    model = model_of([conv, node], [value("x", shape=[1, 3, 8])], [value("y", shape=[None] * rank)], initializers=used)
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    assert operators(stepped.model.graph) == ["Unsqueeze", "Conv", "Squeeze", node.op_type]


def test_graphs_inside_nodes_are_rewritten() -> None:
    """A branch reads the outer value in its old form, and gives such."""
    conv = helper.make_node("Conv", ["x", "w"], ["then"])
    branch = helper.make_graph([conv], "then", [], [value("then", shape=[1, 4, 6])])
    other = helper.make_graph(
        [helper.make_node("Identity", ["k"], ["else"])], "else", [], [value("else", shape=[1, 4, 6])]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    choice = helper.make_tensor("c", 9, [], [True])
    tensors = [weights("w", 4, 3, 3), weights("k", 1, 4, 6), choice]
    model = model_of([node], [value("x", shape=[1, 3, 8])], [value("y", shape=[1, 4, 6])], initializers=tensors)
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    branches = {attribute.name: operators(attribute.g) for attribute in stepped.model.graph.node[0].attribute}
    assert branches == {"then_branch": ["Unsqueeze", "Conv", "Squeeze"], "else_branch": ["Identity"]}
    assert [tensor.name for tensor in stepped.model.graph.initializer] == ["k", "c"]


def test_weights_that_are_worked_out_get_their_axis_too() -> None:
    """Weights need not be constant, only known to have three dimensions."""
    conv = helper.make_node("Conv", ["x", "w"], ["y"])
    inputs = [value("x", shape=[1, 3, 8]), value("w", shape=[4, 3, 3])]
    model = model_of([conv], inputs, [value("y", shape=[1, 4, 6])])
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    assert operators(stepped.model.graph) == ["Unsqueeze", "Unsqueeze", "Conv", "Squeeze"]


def plain_convolution(rank: int) -> onnx.ModelProto:
    """Return a convolution with weights of so many dimensions."""
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    size = [None] * (rank - 2)
    inputs, outputs = [value("x", shape=[1, 3, *[8] * (rank - 2)])], [value("y", shape=[1, 4, *size])]
    return model_of([node], inputs, outputs, initializers=[weights("w", 4, 3, *[3] * (rank - 2))])


def quantized() -> onnx.ModelProto:
    """Return a convolution along one axis with quantized weights."""
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    tensors = [helper.make_tensor("q", 3, [1, 1, 2], [1, 2]), helper.make_tensor("s", 1, [], [0.5])]
    return model_of(nodes, [value("x", shape=[1, 1, 8])], [value("y", shape=[1, 1, 7])], initializers=tensors)


def positions() -> onnx.ModelProto:
    """Return a pooling along one axis that gives positions."""
    node = helper.make_node("MaxPool", ["x"], ["y", "where"], kernel_shape=[2])
    outputs = [value("y", shape=[1, 3, 7]), value("where", 7, [1, 3, 7])]
    return model_of([node], [value("x", shape=[1, 3, 8])], outputs)


@pytest.mark.parametrize("model", [plain_convolution(4), plain_convolution(5), relu(), quantized(), positions()])
def test_other_models_are_left_alone(model: onnx.ModelProto) -> None:
    """Nothing along one axis, quantized weights, or positions in a flat array: not a byte changes."""
    stepped = step(model)
    assert stepped.model.SerializeToString() == model.SerializeToString()
    assert stepped.notes == ()
