"""Which convolutions along one axis are made two-dimensional for NCHWc blocks, and what is left as it is."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import helper

from number_samples import assert_same, operators, ran, weights
from onnx_samples import model_of, value
from ortrim.base.files import sha256_of
from ortrim.models.models import PreparedModel
from ortrim.models.one_axis import OneAxis, faster_in_two_axes
from ortrim.models.onnx_files import facts_of
from ortrim.models.two_axes import with_two_axes

LONG: Final = 100


def conv(source: str, result: str, filters: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, filters], [result], **attributes)


def model(
    nodes: Sequence[onnx.NodeProto], *tensors: onnx.TensorProto, channels: int = 64, opset: int = 17
) -> onnx.ModelProto:
    inputs, outputs = [value("x", shape=["n", channels, "length"])], [value(nodes[-1].output[0], shape=[None] * 3)]
    return model_of(nodes, inputs, outputs, opsets=[("", opset)], initializers=tensors)


def chosen(given: onnx.ModelProto, folder: Path, *shapes: Sequence[int]) -> set[str]:
    found = answer(given, folder, *shapes)
    return {*found.anywhere, *found.in_blocks}


def answer(given: onnx.ModelProto, folder: Path, *shapes: Sequence[int]) -> OneAxis:
    path = folder / "m.onnx"
    onnx.save(given, path)
    facts = facts_of(given, sha256=sha256_of(path), size_bytes=1, where="m")
    prepared = PreparedModel(name="m", path=path, facts=facts)
    channels = given.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    cases = [{"x": tuple(shape)} for shape in shapes or [(1, channels, LONG)]]
    return faster_in_two_axes(prepared, cases, folder)


W: Final = weights("w", 64, 64, 3)


def test_a_chain_is_chosen_as_a_whole(tmp_path: Path) -> None:
    """A pointwise convolution does not pay for two reorders alone, and has none in a chain."""
    pointwise, halves = weights("p", 64, 64, 1), helper.make_tensor("half", 1, [], [0.5])
    assert not chosen(model([conv("x", "y", "p")], pointwise), tmp_path)
    six = [conv(source, result, "s") for source, result in ("xa", "ab", "bc", "cd", "de", "ey")]
    assert not chosen(model(six, weights("s", 8, 8, 1), channels=8), tmp_path, (1, 8, 400))
    nodes = [
        conv("x", "a", "w", pads=[1, 1]),
        helper.make_node("LeakyRelu", ["a"], ["b"]),
        conv("b", "c", "p"),
        helper.make_node("Add", ["a", "c"], ["d"]),
        helper.make_node("Mul", ["d", "half"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["y"], kernel_shape=[2], strides=[2]),
    ]
    chain = model(nodes, W, pointwise, halves)
    assert chosen(chain, tmp_path) == {"a", "c"}
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 64, 21)).astype(np.float32)}
    before = ran(chain, feeds)
    with_two_axes(chain, {"a", "c"})
    assert_same(before, ran(chain, feeds))
    assert operators(chain.graph) == ["Unsqueeze", "Conv", "LeakyRelu", "Conv", "Add", "Mul", "MaxPool", "Squeeze"]


@pytest.mark.parametrize(
    ("channels", "filters", "attributes", "length"),
    [
        (128, (32, 32, 9), {"group": 4, "auto_pad": "SAME_UPPER"}, 15),  # few positions
        (1, (258, 1, 256), {"strides": [128]}, 16000),  # frames of sound, read where they lie
        (16, (16, 16, 3), {}, LONG),  # less gained than two reorders take
        (256, (256, 256, 7), {"pads": [3, 3]}, LONG),  # a GEMM of many filters has all of AVX-512
        (51, (64, 51, 5), {}, LONG),  # channels that upstream's transformer does not take
        (64, (60, 16, 5), {"group": 4}, LONG),
        (64, (64, 1, 9), {"group": 64}, LONG),  # a kernel of its own in plain layout, too
        (12, (16, 12, 7), {"dilations": [4]}, 400),  # blocks of zeros by a quarter
        (128, (64, 128, 15), {"pads": [7, 7]}, LONG),  # many positions in no tile
        (128, (64, 128, 15), {"auto_pad": "SAME_UPPER", "dilations": [8]}, 400),
        (128, (128, 128, 3), {"pads": [1, 1]}, 20),  # tiles that are longer than what is wanted
        (32, (64, 32, 3), {"pads": [1, 1]}, LONG),  # too few channels for a transform
        (64, (16, 64, 3), {"pads": [1, 1]}, LONG),
        (64, (64, 64, 7), {"pads": [3, 3]}, 400),  # on ARM64
        (64, (30, 64, 3), {}, 4),
    ],
)  # fmt: skip
def test_what_blocks_do_not_make_faster_is_left_alone(
    tmp_path: Path, channels: int, filters: tuple[int, ...], attributes: dict[str, Any], length: int
) -> None:
    given = model([conv("x", "y", "w", **attributes)], weights("w", *filters), channels=channels)
    assert not chosen(given, tmp_path, (1, channels, length))


@pytest.mark.parametrize(
    ("channels", "filters", "attributes"),
    [
        (64, (64, 64, 3), {}),
        (64, (64, 16, 15), {"group": 4}),
        (1, (32, 1, 256), {"pads": [3, 0]}),
        (1, (16, 1, 64), {"dilations": [2]}),
        (4, (16, 4, 11), {}),  # whose input is read as it is
        (52, (32, 52, 9), {"dilations": [4]}),
    ],
)
def test_what_blocks_make_faster_is_chosen(
    tmp_path: Path, channels: int, filters: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    given = model([conv("x", "y", "w", **attributes)], weights("w", *filters), channels=channels)
    assert chosen(given, tmp_path, (1, channels, 400)) == {"y"}


def test_causal_padding_is_the_convolution_s(tmp_path: Path) -> None:
    """Zeros before the first position; the edge's own values would be computed beside the convolutions."""

    def causal(mode: str, **attributes: str) -> onnx.ModelProto:
        nodes = [conv("x", "a", "w", pads=[1, 1])]
        nodes += [helper.make_node("Pad", ["a"], ["b"], mode=mode), conv("b", "y", "w", **attributes)]
        nodes[1].input.append("causal")
        zeros = helper.make_tensor("causal", 7, [6], [0, 0, 2, 0, 0, 0])
        return model(nodes, weights("w", 16, 16, 5), zeros, channels=16)

    assert chosen(causal("constant"), tmp_path) == {"a", "y"}
    assert not chosen(causal("edge"), tmp_path)
    assert chosen(causal("constant", auto_pad="NOTSET"), tmp_path) == {"a", "y"}
    assert not chosen(causal("constant", auto_pad="VALID"), tmp_path)


def test_causal_padding_is_in_no_tile(tmp_path: Path) -> None:
    def dilated(zeros: int) -> onnx.ModelProto:
        nodes = [conv("x", "a", "p"), node("Pad", "a", "causal"), conv("b", "y", "w", dilations=[8])]
        return model(nodes, weights("p", 64, 64, 1), weights("w", 64, 64, 15), sizes("causal", 0, 0, zeros, 0, 0, 0))

    assert chosen(dilated(0), tmp_path, (1, 64, 512)) == {"a", "y"}
    assert not chosen(dilated(112), tmp_path, (1, 64, 400))


def test_no_case_is_to_be_slower(tmp_path: Path) -> None:
    """One of few positions, or one whose sizes are not known, is enough to leave a convolution as it is."""
    given = model([conv("x", "y", "w")], W)
    assert chosen(given, tmp_path, (1, 64, 400), (3, 64, 100)) == {"y"}
    assert not chosen(given, tmp_path, (1, 64, 400), (3, 64, 17))
    shape = helper.make_node("Reshape", ["x", "sizes"], ["a"])
    unknown = model([shape, conv("a", "y", "w")], W)
    unknown.graph.input.append(value("sizes", 7, [3]))
    assert not chosen(unknown, tmp_path)


def test_between_two_convolutions_what_blocks_cannot_be_given_to_costs_reorders(tmp_path: Path) -> None:
    """Softmax stays along one axis; convolutions on both sides pay for themselves, or not."""

    def apart(length: int) -> onnx.ModelProto:
        nodes = [conv("x", "a", "w"), helper.make_node("Softmax", ["a"], ["b"], axis=1), conv("b", "y", "w")]
        return model(nodes, weights("w", 32, 32, length), channels=32)

    assert not chosen(apart(1), tmp_path)
    assert chosen(apart(9), tmp_path) == {"a", "y"}
    given = apart(9)
    with_two_axes(given, {"y"})
    assert operators(given.graph) == ["Conv", "Softmax", "Unsqueeze", "Conv", "Squeeze"]


def transposing(*filters: int, group: int = 1) -> onnx.ModelProto:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2], group=group)
    return model([node], weights("w", *filters), channels=filters[0])


def test_a_transposed_convolution_is_faster_in_any_layout(tmp_path: Path) -> None:
    """But for one that adds up less than two changes of shape take."""
    assert chosen(transposing(8, 4, 4), tmp_path, (1, 8, 16)) == {"y"}
    assert chosen(transposing(8, 2, 4, group=2), tmp_path, (2, 8, 8)) == {"y"}
    assert not chosen(transposing(8, 4, 4), tmp_path, (1, 8, 15))
    given = transposing(8, 4, 4)
    given.graph.node.extend([helper.make_node("Relu", ["y"], ["z"])])
    given.graph.output[0].name = "z"
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 8, 21)).astype(np.float32)}
    before = ran(given, feeds)
    with_two_axes(given, {"y"}, followed=False)
    assert_same(before, ran(given, feeds))
    assert operators(given.graph) == ["Unsqueeze", "ConvTranspose", "Squeeze", "Relu"]


def node(operator: str, *inputs: str, result: str = "b", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [result], **attributes)


def number(name: str, *shape: int, numbers: float = 1) -> onnx.TensorProto:
    return helper.make_tensor(name, 1, shape, [numbers] * math.prod(shape))


def sizes(name: str, *numbers: int) -> onnx.TensorProto:
    return helper.make_tensor(name, 7, [len(numbers)], numbers)


NORMAL: Final = ("scale", "bias", "mean", "variance")
CONSTANTS: Final = (
    *(number(name, 16) for name in NORMAL),
    number("one", 1),
    number("column", 1, 16, 1),
    number("zero", numbers=0),
    sizes("causal", 0, 0, 2, 0, 0, 0),
    sizes("less", 0, 0, -2, 0, 0, 0),
    sizes("batch", 1, 0, 2, 0, 0, 0),
    sizes("two", 2),
    number("whole", 1, 16, LONG),
)
RELU: Final = node("Relu", "a", result="r")


def joined(nodes: Sequence[onnx.NodeProto], folder: Path, opset: int, channels: int = 16, length: int = 5) -> bool:
    """Whether values stay in blocks from one convolution to the other: reorders between cost more than both gain."""
    filters = weights("w", channels, channels, length)
    convolutions = conv("x", "a", "w", pads=[2, 2]), conv("b", "y", "w", pads=[2, 2])
    given = model([convolutions[0], *nodes, convolutions[1]], filters, *CONSTANTS, channels=channels, opset=opset)
    return {"a", "y"} <= chosen(given, folder)


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ([node("Relu", "a")], 21),
        ([node("Clip", "a", "zero", "one")], 17),
        ([node("Mul", "one", "a")], 17),
        ([RELU, node("BatchNormalization", "r", *NORMAL)], 14),
        ([node("BatchNormalization", "a", *NORMAL)], 15),
        ([RELU, node("MaxPool", "r", kernel_shape=[1])], 17),
        ([node("AveragePool", "a", kernel_shape=[1])], 18),
        ([node("Sigmoid", "a", result="r"), node("Mul", "a", "r")], 17),
        ([node("Exp", "a", result="r"), node("Sub", "r", "a")], 17),
        ([RELU, node("Add", "a", "r")], 17),
        ([node("Pad", "a", "causal")], 20),
        ([node("Pad", "a", "causal", "zero")], 17),
    ],
)
def test_values_stay_in_blocks_as_upstream_s_transformer_and_ours_keep_them(
    tmp_path: Path, nodes: list[onnx.NodeProto], opset: int
) -> None:
    assert joined(nodes, tmp_path, opset)


@pytest.mark.parametrize(
    ("nodes", "opset"),
    [
        ([node("Relu", "a")], 22),  # its Conv is another
        ([RELU, node("BatchNormalization", "r", *NORMAL)], 15),
        ([RELU, node("BatchNormalization", "r", *NORMAL, spatial=0)], 7),
        ([RELU, node("BatchNormalization", "r", "scale", "bias", "mean", "open")], 14),
        ([node("BatchNormalization", "a", *NORMAL), RELU], 15),  # so that another reads what it would become part of
        ([node("AveragePool", "a", kernel_shape=[1])], 19),
        ([node("LpPool", "a", kernel_shape=[1])], 17),
        ([node("Sum", "a", "one")], 17),
        ([RELU, node("Mul", "r", "column")], 17),
        ([node("Add", "a", "whole")], 17),
        ([node("Pow", "a", "two")], 17),  # of int64
        ([node("LeakyRelu", "a", result="l"), RELU, node("Add", "l", "r")], 17),
        ([node("Pad", "a", "causal")], 21),
        ([node("Pad", "a", "causal", "one")], 17),
        ([node("Pad", "a", "causal", mode="edge")], 17),
        ([node("Pad", "a", "less")], 17),
        ([node("Pad", "a", "batch")], 17),
        ([node("Pad", "a", "causal"), conv("b", "spare", "w")], 17),
        ([node("Pad", "a", "causal", result="r"), node("Relu", "r")], 17),
    ],
)
def test_reorders_are_counted_where_upstream_s_transformer_takes_values_out_of_blocks(
    tmp_path: Path, nodes: list[onnx.NodeProto], opset: int
) -> None:
    assert not joined(nodes, tmp_path, opset)


@pytest.mark.parametrize("operators", ["Relu", "MaxPool", "Exp", "Sigmoid Mul"])
def test_of_blocks_that_are_not_full_few_operators_are_computed(tmp_path: Path, operators: str) -> None:
    """Of 36 channels; a Sigmoid and its product become one QuickGelu."""
    first, *product = operators.split()
    attributes = {"kernel_shape": [1]} if first == "MaxPool" else {}
    nodes = [node(first, "a", result="r" if product else "b", **attributes)]
    nodes += [node(each, "a", "r") for each in product]
    assert joined(nodes, tmp_path, 17, channels=36, length=3) is (operators == "Relu")


@pytest.mark.parametrize(
    ("operators", "found"),
    [(["GlobalMaxPool"], {"a"}), (["GlobalLpPool"], set()), (["LeakyRelu", "GlobalMaxPool"], set())],
)
def test_what_is_pooled_to_one_position_is_not_reordered(tmp_path: Path, operators: list[str], found: set[str]) -> None:
    """Where upstream takes it as the convolution leaves it; what a branch of If reads is reordered for it."""
    names = ["a", *(f"b{number}" for number in range(len(operators)))]
    nodes = [node(each, names[at], result=names[at + 1]) for at, each in enumerate(operators)]
    given = model([conv("x", "a", "w"), *nodes], weights("w", 16, 16, 3), channels=16)
    assert chosen(given, tmp_path, (1, 16, 400)) == found
    branches = {
        name: helper.make_graph([node(operators[0], "a", result=name)], name, [], [value(name, shape=None)])
        for name in ("then_branch", "else_branch")
    }
    given.graph.node[1].CopyFrom(node("If", "condition", result=names[1], **branches))
    given.graph.input.append(value("condition", 9, []))
    assert not chosen(given, tmp_path, (1, 16, 400))


@pytest.mark.parametrize("size", [LONG, "length"])
def test_products_of_two_values_stay_in_blocks_where_the_model_tells_their_sizes(
    tmp_path: Path, size: int | str
) -> None:
    nodes = [
        *(conv("x", name, "w", pads=[2, 2]) for name in ("a", "c")),
        node("Tanh", "a", result="t"),
        node("Sigmoid", "c", result="s"),
        node("Mul", "t", "s"),
        conv("b", "y", "w"),
    ]
    given = model(nodes, weights("w", 16, 16, 5), channels=16)
    given.graph.input[0].CopyFrom(value("x", shape=[1, 16, size]))
    assert bool(chosen(given, tmp_path)) is (size == LONG)


def test_an_input_whose_size_nothing_tells_is_no_reason_to_fail(tmp_path: Path) -> None:
    """Here the exporter wrote the output's size down."""
    given = model([node("Compress", "x", "kept", axis=2), conv("b", "y", "w")], W)
    given.graph.input.append(value("kept", 9, [LONG]))
    given.graph.output[0].CopyFrom(value("y", shape=[1, 64, LONG - 2]))
    assert not chosen(given, tmp_path)


@pytest.mark.parametrize(
    ("filters", "attributes"),
    [
        ((64, 64, 3), {"group": 0}),
        ((4, 8, 3), {"group": 8}),
        ((64, 64, 3), {"strides": [0]}),
        ((64, 64, 3), {"dilations": [1, 1]}),
        ((64, 64, 0), {}),
        ((0, 64, 3), {}),
        ((64, 0, 3), {}),
    ],
)
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_damaged_convolutions_are_for_conversion_to_refuse(
    tmp_path: Path, operator: str, filters: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    made = helper.make_node(operator, ["x", "w"], ["y"], **attributes)
    without = helper.make_node(operator, ["x"], ["z"])
    given = model([made, without], weights("w", *filters))
    given.graph.output[0].CopyFrom(value("y", shape=[1, 64, 98]))
    assert not answer(given, tmp_path).in_blocks


@pytest.mark.parametrize(
    "filters",
    [W, helper.make_tensor("w", 10, [64, 64, 3], [0.0] * 64 * 64 * 3), None],
    ids=["float32", "float16", "input"],
)
def test_filters_are_constants_of_float32(tmp_path: Path, filters: onnx.TensorProto | None) -> None:
    """Which a model of IR version 3 lists as inputs, too."""
    given = model([conv("x", "y", "w")], *([filters] if filters else []))
    given.graph.input.append(value("w", filters.data_type if filters else 1, [64, 64, 3]))
    given.ir_version = 3
    assert bool(chosen(given, tmp_path)) is (filters is W)


def test_a_bias_is_constant(tmp_path: Path) -> None:
    given = model([conv("x", "y", "w")], W, number("bias", 64))
    given.graph.node[0].input.append("bias")
    assert chosen(given, tmp_path)
    given.graph.node[0].input[2] = "open"
    given.graph.input.append(value("open", shape=[64]))
    assert not chosen(given, tmp_path)


def test_weights_in_other_files_stay_there(tmp_path: Path) -> None:
    given = model([node("Relu", "x", result="a"), conv("a", "y", "w")], W, weights("t", 1))
    given.graph.initializer[1].ClearField("raw_data")
    given.graph.initializer[1].data_location = onnx.TensorProto.EXTERNAL
    given.graph.initializer[1].external_data.add(key="location", value="t.bin")
    assert not chosen(given, tmp_path)


def test_the_share_is_that_of_the_convolutions_in_blocks(tmp_path: Path) -> None:
    transposed = node("ConvTranspose", "x", "t", result="y", strides=[2])
    given = model([conv("x", "a", "w"), transposed], W, weights("t", 64, 64, 6), weights("product", 64, 64, 7))
    found = answer(given, tmp_path)
    assert (found.anywhere, found.in_blocks) == (("y",), ("a",))
    assert found.share == pytest.approx(3 / 16)


def test_an_answer_is_kept_for_the_version_of_onnx_that_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inference of shapes decides."""
    given = model([conv("x", "y", "w")], W)
    assert chosen(given, tmp_path)
    monkeypatch.setattr("ortrim.models.one_axis._chosen", lambda *_: OneAxis())
    assert chosen(given, tmp_path)
    monkeypatch.setattr(onnx, "__version__", "another")
    assert not chosen(given, tmp_path)
