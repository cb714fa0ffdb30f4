"""Values that stay in blocks: random graphs whose reorders and operators NumPy computes, before and after."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from ortrim.models.nchwc_graph import FROM_BLOCKS, NCHWC, TO_BLOCKS, keep_blocks

BLOCK = 8


class ReorderOutput(OpRun):
    op_domain = NCHWC

    def _run(self, blocks: Any, channels: int | None = None) -> tuple[Any]:
        images, _, height, width = blocks.shape
        planes = blocks.reshape(images, -1, height, width, BLOCK).transpose(0, 1, 4, 2, 3)
        return (planes.reshape(blocks.shape)[:, :channels],)


class ReorderInput(OpRun):
    op_domain = NCHWC

    def _run(self, planes: Any) -> tuple[Any]:
        images, channels, height, width = planes.shape
        padded = np.pad(planes, ((0, 0), (0, -channels % BLOCK), (0, 0), (0, 0)))
        blocks = padded.reshape(images, -1, BLOCK, height, width).transpose(0, 1, 3, 4, 2)
        return (blocks.reshape(padded.shape),)


def reorders(model: onnx.ModelProto) -> int:
    return sum(node.domain == NCHWC for node in model.graph.node)


def outputs(model: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    return list(ReferenceEvaluator(model, new_ops=[ReorderInput, ReorderOutput]).run(None, inputs))


def model_of(nodes: list[onnx.NodeProto], inputs: list[str], results: list[str], channels: int) -> onnx.ModelProto:
    constants: dict[str, Any] = {"three": [3], "zero": 0, "six": 6, "row": [[[[1, 2, 3]]]], "five": [[[[5]]]]}
    tensors = [numpy_helper.from_array(np.array(values, np.float32), name) for name, values in constants.items()]
    shape = [2, channels, 2, 3]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
    graph = helper.make_graph(nodes, "g", given, made, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(NCHWC, 1)])


def some_graph(draw: random.Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return a graph of what two convolutions make, operators that follow, and reorders for further convolutions."""
    channels = draw.choice([8, 16, 24, 12])
    padded = -(-channels // BLOCK) * BLOCK
    nodes = [helper.make_node(FROM_BLOCKS, [f"c{i}"], [f"v{i}"], domain=NCHWC, channels=channels) for i in range(2)]
    values, results = ["v0", "v1"], []
    for number in range(draw.randint(1, 12)):
        x, made = draw.choice(values), f"v{number + 2}"
        kind = draw.randrange(8)
        if kind == 0:  # hard-swish, or nearly so
            least = draw.choice(["zero", "three"])
            names = [f"{made}_{part}" for part in "abc"]
            nodes += [
                helper.make_node("Add", [x, "three"], names[:1]),
                helper.make_node("Clip", [names[0], least, "six"], names[1:2]),
                helper.make_node("Mul", draw.sample([x, names[1]], 2), names[2:]),
                helper.make_node("Div", [names[2], "six"], [made]),
            ]
            results += draw.sample(names, draw.randrange(2))
        elif kind == 1:
            nodes.append(helper.make_node("Max", [x, draw.choice(["five", "row"])], [made]))
        elif kind == 2:
            nodes.append(helper.make_node("ReduceMax", [x], [made], axes=[1], keepdims=1))
        elif kind in (3, 4):
            nodes.append(helper.make_node("Mul", [x, draw.choice(values)], [made]))
        elif kind == 5:
            nodes.append(helper.make_node("LeakyRelu", [x], [made], alpha=0.25))
        else:
            made = ""
            if all(each != "ReduceMax" for each in (node.op_type for node in nodes if x in node.output)):
                results.append(f"r{number}")
                nodes.append(helper.make_node(TO_BLOCKS, [x], [f"b{number}"], domain=NCHWC))
                nodes.append(helper.make_node("Identity", [f"b{number}"], results[-1:]))
        values += filter(None, [made])
    results += draw.sample(values[2:], min(len(values) - 2, draw.randrange(2)))
    numbers = np.random.default_rng(draw.randrange(1000))
    inputs = {name: numbers.uniform(-5, 5, (2, padded, 2, 3)).astype(np.float32) for name in ("c0", "c1")}
    return model_of(nodes, ["c0", "c1"], list(dict.fromkeys(results)) or ["v0"], padded), inputs


def kept(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    onnx.save(model, folder / "m.onnx")
    keep_blocks(folder / "m.onnx", BLOCK)
    return onnx.load(folder / "m.onnx")


def test_random_graphs_compute_the_same_with_fewer_reorders(tmp_path: Path) -> None:
    """Whatever reads a value as planes, whether channels fill their blocks, and where shapes are others."""
    draw, fewer, same_count = random.Random(44), 0, 0  # noqa: S311 - a test's
    for _ in range(300):
        model, inputs = some_graph(draw)
        changed = kept(model, tmp_path)
        for before, after in zip(outputs(model, inputs), outputs(changed, inputs), strict=True):
            assert before.shape == after.shape
            np.testing.assert_allclose(after, before, rtol=2e-6, atol=2e-6)
        fewer += reorders(changed) < reorders(model)
        same_count += reorders(changed) == reorders(model)
    assert fewer > 100
    assert same_count > 50


def test_a_convolution_s_hard_swish_has_two_operators_on_blocks(tmp_path: Path) -> None:
    nodes = [
        helper.make_node(FROM_BLOCKS, ["c"], ["x"], domain=NCHWC, channels=8),
        helper.make_node("Add", ["x", "three"], ["a"]),
        helper.make_node("Clip", ["a", "zero", "six"], ["b"]),
        helper.make_node("Mul", ["x", "b"], ["m"]),
        helper.make_node("Div", ["m", "six"], ["y"]),
        helper.make_node(TO_BLOCKS, ["y"], ["z"], domain=NCHWC),
        helper.make_node("Identity", ["z"], ["o"]),
    ]
    changed = kept(model_of(nodes, ["c"], ["o"], 8), tmp_path)
    assert [node.op_type for node in changed.graph.node] == ["HardSigmoid", "Mul", "Identity"]


@pytest.mark.parametrize("reader", ["three", "x"])
def test_hard_swish_of_other_constants_is_left_alone(tmp_path: Path, reader: str) -> None:
    """And one whose middle is an output, too."""
    least, results = ("three", ["y"]) if reader == "three" else ("zero", ["y", "b"])
    nodes = [
        helper.make_node("Add", ["x", "three"], ["a"]),
        helper.make_node("Clip", ["a", least, "six"], ["b"]),
        helper.make_node("Mul", ["b", "x"], ["m"]),
        helper.make_node("Div", ["m", "six"], ["y"]),
    ]
    changed = kept(model_of(nodes, ["x"], results, 8), tmp_path)
    assert Counter(node.op_type for node in changed.graph.node) == Counter(["Add", "Clip", "Mul", "Div"])
