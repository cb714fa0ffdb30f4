"""Which convolutions along one axis are made two-dimensional for NCHWc blocks, and what is left as it is."""

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
from ortrim.models.one_axis import faster_in_two_axes
from ortrim.models.onnx_files import facts_of
from ortrim.models.two_axes import with_two_axes

LONG: Final = 100


def conv(source: str, result: str, filters: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, filters], [result], **attributes)


def model(nodes: Sequence[onnx.NodeProto], *tensors: onnx.TensorProto, channels: int = 64) -> onnx.ModelProto:
    outputs = [value(nodes[-1].output[0], shape=[None] * 3)]
    return model_of(nodes, [value("x", shape=["n", channels, "length"])], outputs, initializers=tensors)


def chosen(given: onnx.ModelProto, folder: Path, *shapes: Sequence[int]) -> set[str]:
    path = folder / "m.onnx"
    onnx.save(given, path)
    facts = facts_of(given, sha256=sha256_of(path), size_bytes=1, where="m")
    prepared = PreparedModel(name="m", path=path, facts=facts)
    channels = given.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    cases = [{"x": tuple(shape)} for shape in shapes or [(1, channels, LONG)]]
    found = faster_in_two_axes(prepared, cases, folder)
    return {*found.anywhere, *found.in_blocks}


W: Final = weights("w", 64, 64, 3)


def test_a_chain_is_chosen_as_a_whole(tmp_path: Path) -> None:
    """A pointwise convolution does not pay for two reorders alone, and has none in a chain."""
    pointwise, halves = weights("p", 64, 64, 1), helper.make_tensor("half", 1, [], [0.5])
    assert not chosen(model([conv("x", "y", "p")], pointwise), tmp_path)
    nodes = [
        conv("x", "a", "w", pads=[1, 1]),
        helper.make_node("LeakyRelu", ["a"], ["b"]),
        conv("b", "c", "p"),
        helper.make_node("Mul", ["c", "half"], ["d"]),
        helper.make_node("Add", ["a", "d"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["y"], kernel_shape=[2], strides=[2]),
    ]
    chain = model(nodes, W, pointwise, halves)
    assert chosen(chain, tmp_path) == {"a", "c"}
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 64, 21)).astype(np.float32)}
    before = ran(chain, feeds)
    with_two_axes(chain, {"a", "c"})
    assert_same(before, ran(chain, feeds))
    assert operators(chain.graph) == ["Unsqueeze", "Conv", "LeakyRelu", "Conv", "Mul", "Add", "MaxPool", "Squeeze"]


@pytest.mark.parametrize(
    ("channels", "filters", "attributes", "length"),
    [
        (64, (64, 64, 3), {}, 17),  # 15 positions
        (1, (258, 1, 256), {"strides": [128]}, 16000),  # frames of sound, read where they lie
        (16, (16, 16, 3), {}, LONG),  # less gained than two reorders take
        (256, (256, 256, 7), {"pads": [3, 3]}, LONG),  # a GEMM of many filters has all of AVX-512
        (51, (64, 51, 5), {}, LONG),  # channels that upstream's transformer does not take
        (64, (60, 16, 5), {"group": 4}, LONG),
        (64, (64, 1, 9), {"group": 64}, LONG),  # a kernel of its own in plain layout, too
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

    def causal(mode: str) -> onnx.ModelProto:
        nodes = [conv("x", "a", "w", pads=[1, 1])]
        nodes += [helper.make_node("Pad", ["a"], ["b"], mode=mode), conv("b", "y", "w")]
        nodes[1].input.append("causal")
        zeros = helper.make_tensor("causal", 7, [6], [0, 0, 2, 0, 0, 0])
        return model(nodes, weights("w", 16, 16, 5), zeros, channels=16)

    assert chosen(causal("constant"), tmp_path) == {"a", "y"}
    assert not chosen(causal("edge"), tmp_path)


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
