"""Recurrent networks as tf2onnx writes them get fewer nodes, and give the same outputs to the last bit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from ortrim.models.recurrent_graph import shorten_recurrent

GATES: Final = {"GRU": 3, "LSTM": 4, "RNN": 1}
SIZE: Final = 4
DEPTH: Final = 3


def network(operator: str, *, ends: bool = False, changed: Mapping[str, Any] | None = None) -> onnx.ModelProto:
    """Return a model of two directions over (steps, batch, 3), whose first state is computed from the batch's size.

    It ends with all steps of both directions side by side, or with the last one of each. `changed` replaces constants.
    """
    draw = np.random.default_rng(7)
    rows = GATES[operator] * SIZE
    constants: dict[str, Any] = {
        "weights": draw.normal(size=(2, rows, DEPTH)).astype(np.float32),
        "recurrent": draw.normal(size=(2, rows, SIZE)).astype(np.float32),
        "zero": np.array([0], np.float32),
        "size": np.array([SIZE], np.int64),
        **{f"n{number}": np.array([number], np.int64) for number in range(3)},
        "last": np.array([-1], np.int64),
        "end": np.array([2**31 - 1], np.int64),
        **(changed or {}),
    }
    node = helper.make_node
    attributes: dict[str, Any] = {"hidden_size": SIZE, "direction": "bidirectional"}
    parts = ["forward end", "reverse end"] if ends else ["forward", "reverse"]
    states = ["state", "state"] if operator == "LSTM" else ["state"]
    nodes = [
        node("Shape", ["sound"], ["shape"]),
        node("Slice", ["shape", "n1", "n2", "n0"], ["batch"]),
        node("Concat", ["batch", "size"], ["sizes"], axis=0),
        node("Expand", ["zero", "sizes"], ["zeros"]),
        node("Unsqueeze", ["zeros", "n0"], ["one"]),
        node("Concat", ["one", "one"], ["state"], axis=0),
        node(operator, ["sound", "weights", "recurrent", "", "", *states], ["all"], **attributes),
        *(
            each
            for way, first, past in (("forward", "n0", "n1"), ("reverse", "n1", "n2"))
            for each in (
                node("Slice", ["all", first, past, "n1"], [f"{way} part"]),
                node("Squeeze", [f"{way} part", "n1"], [way]),
            )
        ),
        node("Slice", ["forward", "last", "end", "n0"], ["forward end part"]),
        node("Squeeze", ["forward end part", "n0"], ["forward end"]),
        node("Slice", ["reverse", "n0", "n1", "n0"], ["reverse end part"]),
        node("Squeeze", ["reverse end part", "n0"], ["reverse end"]),
        node("Concat", parts, ["joined"], axis=1 if ends else 2),
    ]  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "network",
        [value("sound", onnx.TensorProto.FLOAT, ["steps", "batch", DEPTH])],
        [value("joined", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def opened(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options)


def outputs(path: Path) -> list[Any]:
    session = opened(path)
    draw = np.random.default_rng(3)
    sounds = (draw.normal(size=(steps, batch, DEPTH)).astype(np.float32) for steps, batch in ((1, 1), (5, 1), (4, 3)))
    return [session.run(None, {"sound": sound})[0] for sound in sounds]


def shortened(model: onnx.ModelProto, folder: Path) -> list[str]:
    """Return the operators that are left, after comparing what both models give."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(model, before)
    written = shorten_recurrent(before, after)
    for one, other in zip(outputs(before), outputs(written), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    return [node.op_type for node in onnx.load(written).graph.node]


@pytest.mark.parametrize(
    ("operator", "ends"), [("GRU", False), ("GRU", True), ("LSTM", False), ("LSTM", True), ("RNN", False)]
)
def test_zeros_and_parts_of_directions_are_left_out(operator: str, *, ends: bool, tmp_path: Path) -> None:
    assert shortened(network(operator, ends=ends), tmp_path) == [operator, "Transpose", "Reshape"]


def test_the_last_steps_of_an_rnn_stay(tmp_path: Path) -> None:
    """Without any step, ONNX Runtime's RNN reads one in front of its outputs; the nodes that stay refuse that."""
    assert shortened(network("RNN", ends=True), tmp_path)[0::9] == ["RNN", "Concat"]


def test_nodes_may_stand_in_any_order(tmp_path: Path) -> None:
    model = network("LSTM", changed={"zero": np.array([0.5], np.float32)})
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(model.graph.node)]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    assert sorted(shortened(model, tmp_path)).count("Transpose") == 1


@pytest.mark.parametrize("version", [3, 8])
def test_what_a_caller_may_give_stays_optional(version: int, tmp_path: Path) -> None:
    """Constants that are inputs, too, as all are in models of IR 3."""
    model = network("LSTM")
    model.ir_version = version
    model.graph.input.extend(
        helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in model.graph.initializer
    )
    shortened(model, tmp_path)
    before, after = (opened(tmp_path / name) for name in ("before.onnx", "after.onnx"))
    assert [each.name for each in after.get_inputs()] == [each.name for each in before.get_inputs()] == ["sound"]


def test_a_model_with_weights_in_other_files_is_taken_as_it_is(tmp_path: Path) -> None:
    model = network("LSTM")
    value = numpy_helper.from_array(np.zeros(1, np.float32), "elsewhere")
    value.ClearField("raw_data")
    value.data_location = onnx.TensorProto.EXTERNAL
    value.external_data.add(key="location", value="weights.bin")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["elsewhere"], value=value))
    path = tmp_path / "outside.onnx"
    onnx.save(model, path)
    assert shorten_recurrent(path, tmp_path / "after.onnx") == path


def test_states_that_are_not_zeros_stay(tmp_path: Path) -> None:
    left = shortened(network("GRU", changed={"zero": np.array([0.5], np.float32)}), tmp_path)
    assert left == ["Shape", "Slice", "Concat", "Expand", "Unsqueeze", "Concat", "GRU", "Transpose", "Reshape"]


def test_other_steps_than_the_last_stay(tmp_path: Path) -> None:
    left = shortened(
        network("LSTM", ends=True, changed={"last": np.array([0], np.int64), "end": np.array([1], np.int64)}), tmp_path
    )
    assert left.count("Slice") == len(("forward", "reverse", "forward end", "reverse end"))


def test_directions_in_the_other_order_stay(tmp_path: Path) -> None:
    model = network("LSTM")
    join = model.graph.node[-1]
    join.input[:] = list(reversed(join.input))
    assert shortened(model, tmp_path) == ["LSTM", "Slice", "Squeeze", "Slice", "Squeeze", "Concat"]


def test_a_model_without_recurrence_is_taken_as_it_is(tmp_path: Path) -> None:
    model = network("LSTM")
    graph = helper.make_graph(
        [helper.make_node("Relu", ["sound"], ["joined"])], "plain", model.graph.input, model.graph.output
    )
    path = tmp_path / "plain.onnx"
    onnx.save(helper.make_model(graph), path)
    assert shorten_recurrent(path, tmp_path / "after.onnx") == path
