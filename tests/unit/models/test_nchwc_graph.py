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


def _planes(blocks: Any) -> Any:
    images, _, height, width = blocks.shape
    return blocks.reshape(images, -1, height, width, BLOCK).transpose(0, 1, 4, 2, 3).reshape(blocks.shape)


def _blocks(planes: Any) -> Any:
    images, _, height, width = planes.shape
    return planes.reshape(images, -1, BLOCK, height, width).transpose(0, 1, 3, 4, 2).reshape(planes.shape)


class ReorderOutput(OpRun):
    op_domain = NCHWC

    def _run(self, blocks: Any, channels: int | None = None) -> tuple[Any]:
        return (_planes(blocks)[:, :channels],)


class ReorderInput(OpRun):
    op_domain = NCHWC

    def _run(self, planes: Any) -> tuple[Any]:
        return (_blocks(np.pad(planes, ((0, 0), (0, -planes.shape[1] % BLOCK), (0, 0), (0, 0)))),)


class Conv(OpRun):
    op_domain = NCHWC

    def _run(
        self,
        blocks: Any,
        weights: Any,
        bias: Any = None,
        more: Any = None,
        *,
        pads: Any,
        activation: Any = None,
        **_: Any,
    ) -> tuple[Any]:
        planes = _planes(blocks)
        made, channels, *kernel = weights.shape
        lanes = BLOCK if channels > 1 else 1
        filters = weights.reshape(made // BLOCK, channels // lanes, *kernel, lanes, BLOCK)
        filters = filters.transpose(0, 5, 1, 4, 2, 3).reshape(weights.shape).astype(np.float64)
        padded = np.pad(planes, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
        sums = np.einsum("nchwyx,mcyx->nmhw" if channels > 1 else "nchwyx,coyx->nchw", windows, filters)
        sums += 0 if bias is None else bias.reshape(1, -1, 1, 1)
        sums += 0 if more is None else _planes(more)
        return (_blocks(np.maximum(sums, 0) if activation else sums).astype(np.float32),)


def reorders(model: onnx.ModelProto) -> int:
    return count(model, FROM_BLOCKS, TO_BLOCKS)


def count(model: onnx.ModelProto, *operators: str) -> int:
    return sum(node.op_type in operators for node in model.graph.node)


def sums(model: onnx.ModelProto) -> int:
    return count(model, "Add", "Sub", "Mul", "Div")


def outputs(model: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    return list(ReferenceEvaluator(model, new_ops=[Conv, ReorderInput, ReorderOutput]).run(None, inputs))


def model_of(
    nodes: list[onnx.NodeProto], inputs: list[str], results: list[str], channels: int, weights: Any = ()
) -> onnx.ModelProto:
    constants: dict[str, Any] = {"three": [3], "zero": 0, "six": 6, "row": [[[[1, 2, 3]]]], "five": [[[[5]]]]}
    tensors = [
        numpy_helper.from_array(np.array(values, np.float32), name) for name, values in [*constants.items(), *weights]
    ]
    shape = [2, channels, 2, 3]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
    graph = helper.make_graph(nodes, "g", given, made, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(NCHWC, 1)])


def some_convolution(
    draw: random.Random, x: str, made: str, channels: int, weights: dict[str, Any]
) -> list[onnx.NodeProto]:
    """Return a convolution between its reorders; weights are new ones or some that are there."""
    size, depthwise, padded = draw.choice([1, 3]), draw.randrange(2), -(-channels // BLOCK) * BLOCK
    name = f"w{size}{depthwise}{draw.randrange(2)}"
    if name not in weights:
        numbers = np.random.default_rng(draw.randrange(1000))
        weights[name] = numbers.uniform(-1, 1, (padded, 1 if depthwise else padded, size, size)) / padded
        weights[f"{name}b"] = numbers.uniform(-1, 1, padded)
    more = draw.choice([[], [], [f"{name}b"], [f"{name}b", "c0"]])
    extra: dict[str, Any] = {"activation": "Relu"} if draw.randrange(3) == 0 else {}
    inputs = [f"b{made}", name, *more]
    return [
        helper.make_node(TO_BLOCKS, [x], inputs[:1], domain=NCHWC),
        helper.make_node("Conv", inputs, [f"c{made}"], domain=NCHWC, pads=[size // 2] * 4, **extra),
        helper.make_node(FROM_BLOCKS, [f"c{made}"], [made], domain=NCHWC, channels=channels),
    ]


def some_graph(draw: random.Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return a graph of what two convolutions make, operators that follow, and reorders for further convolutions."""
    channels = draw.choice([8, 16, 24, 12])
    padded = -(-channels // BLOCK) * BLOCK
    nodes = [helper.make_node(FROM_BLOCKS, [f"c{i}"], [f"v{i}"], domain=NCHWC, channels=channels) for i in range(2)]
    values, results, weights = ["v0", "v1"], [], dict[str, Any]()
    full = {"v0", "v1"}  # what has the shape that convolutions want
    numbers = np.random.default_rng(draw.randrange(1000))
    for number in range(draw.randint(1, 15)):
        x, made = draw.choice([*values, *values[-1:] * 9]), f"v{number + 2}"
        kind = draw.choice([0, 1, 2, 3, 4, *[5] * 5, *[6] * 4, 7])
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
        elif kind == 3:
            nodes.append(helper.make_node("Mul", [x, draw.choice(values)], [made]))
        elif kind == 5 and x in full:
            nodes += some_convolution(draw, x, made, channels, weights)
        elif kind in (5, 6):
            constant = draw.choice(["three", "six", "five", "row"])
            operator = draw.choice(["Add", "Sub", "Mul", "Div"])
            turned = operator != "Div" and draw.randrange(2)  # by zero next to nothing would be compared
            nodes.append(helper.make_node(operator, [constant, x] if turned else [x, constant], [made]))
        elif kind == 4:
            nodes.append(helper.make_node("LeakyRelu", [x], [made], alpha=0.25))
        else:
            made = ""
            if all(each != "ReduceMax" for each in (node.op_type for node in nodes if x in node.output)):
                results.append(f"r{number}")
                nodes.append(helper.make_node(TO_BLOCKS, [x], [f"b{number}"], domain=NCHWC))
                nodes.append(helper.make_node("Identity", [f"b{number}"], results[-1:]))
        values += filter(None, [made])
        full |= {made} if x in full and kind != 2 else set()
    results += draw.sample(values[2:], min(len(values) - 2, draw.randrange(2)))
    inputs = {name: numbers.uniform(-5, 5, (2, padded, 2, 3)).astype(np.float32) for name in ("c0", "c1")}
    found = list(dict.fromkeys(results)) or ["v0"]
    return model_of(nodes, ["c0", "c1"], found, padded, weights.items()), inputs


def kept(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    onnx.save(model, folder / "m.onnx")
    keep_blocks(folder / "m.onnx", BLOCK)
    return onnx.load(folder / "m.onnx")


def test_random_graphs_compute_the_same_with_fewer_reorders(tmp_path: Path) -> None:
    """Whatever reads a value as planes, whether channels fill their blocks, and where shapes are others."""
    draw = random.Random(44)  # noqa: S311 - a test's
    fewer = same_count = folded = 0
    for _ in range(300):
        model, inputs = some_graph(draw)
        changed = kept(model, tmp_path)
        for before, after in zip(outputs(model, inputs), outputs(changed, inputs), strict=True):
            assert before.shape == after.shape
            np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5 * np.abs(before).max())
        fewer += reorders(changed) < reorders(model)
        same_count += reorders(changed) == reorders(model)
        folded += sums(changed) < sums(model) - 2 * count(changed, "HardSigmoid")
    assert fewer > 100
    assert same_count > 50
    assert folded > 30


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("first", [True, False], ids=["value", "constant"])
@pytest.mark.parametrize("activation", [{}, {"activation": "Relu"}], ids=["plain", "relu"])
@pytest.mark.parametrize("behind", [True, False], ids=["behind", "before"])
def test_a_convolution_takes_over_what_is_linear(
    operator: str, activation: dict[str, str], tmp_path: Path, *, first: bool, behind: bool
) -> None:
    """Nothing behind its activation, and no constant less or by a value."""
    numbers = np.random.default_rng(1)
    weights = {"w": numbers.uniform(0.1, 1, (8, 8, 1, 1)), "b": numbers.uniform(0.1, 1, 8)}
    values = ["p", "y"] if behind else ["x", "z"]
    inputs = [values[0], "six"] if first else ["six", values[0]]
    nodes = [
        helper.make_node(operator, inputs, values[1:]),
        helper.make_node(TO_BLOCKS, ["x" if behind else "z"], ["c"], domain=NCHWC),
        helper.make_node("Conv", ["c", "w", "b"], ["m"], domain=NCHWC, pads=[0] * 4, **activation),
        helper.make_node(FROM_BLOCKS, ["m"], ["p"], domain=NCHWC, channels=8),
        helper.make_node(FROM_BLOCKS, ["i"], ["x"], domain=NCHWC, channels=8),
        helper.make_node(TO_BLOCKS, ["y" if behind else "p"], ["t"], domain=NCHWC),
        helper.make_node("Identity", ["t"], ["o"]),
    ]
    order = [4, 1, 2, 3, 0, 5, 6] if behind else [4, 0, 1, 2, 3, 5, 6]
    model = model_of([nodes[number] for number in order], ["i"], ["o"], 8, weights.items())
    given = {"i": numbers.uniform(1, 5, (2, 8, 2, 3)).astype(np.float32)}
    changed = kept(model, tmp_path)
    np.testing.assert_allclose(outputs(changed, given)[0], outputs(model, given)[0], rtol=1e-5, atol=1e-5)
    linear = (first or operator in ("Add", "Mul")) and not (behind and activation)
    assert [node.op_type for node in changed.graph.node if node.op_type == operator] == [operator] * (not linear)


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
