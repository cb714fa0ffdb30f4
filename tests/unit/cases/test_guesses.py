"""What is guessed from names, types and weights alone, without the full runtime."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, value
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.buildspec.rules import model_problems
from ortrim.models.onnx_files import facts_of
from ortrim.parity.cases.guess import Guess, guess


def guessed(model: onnx.ModelProto) -> Guess:
    return next(guess(model, facts_of(model, "a" * 64, 1, "here")))


@pytest.mark.parametrize(
    ("shape", "name", "kind"),
    [
        (("N", 3, "h", "w"), "N", "batch"),
        (("unk__12", 7), "unk__12", "batch"),
        ((1, 3, None, None), "x[2]", "side"),
        ((1, 3, "H", "img_width"), "img_width", "side"),
        ((None, None, None, 3), "x[1]", "side"),
        ((1, "sequence"), "sequence", "samples"),
        ((1, "num_samples"), "num_samples", "samples"),
        ((1, 80, "time"), "time", "frames"),
        ((1, "enc_seq_len", 64), "enc_seq_len", "sequence"),
        ((1, 64, "?"), "x[2]", "size"),
    ],
)
def test_a_dimension_is_known_by_its_name_or_place(shape: tuple[int | str | None, ...], name: str, kind: str) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    found = guessed(model_of([node], [value("x", shape=shape)], [value("y", shape=None)]))
    assert {each.name: each.kind for each in found.dimensions}[name] == kind


def test_metadata_gives_the_sides_that_a_model_was_made_for() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    model = model_of([node], [value("x", shape=(1, 3, "height", "width"))], [value("y", shape=None)])
    helper.set_model_props(model, {"imgsz": "[288, 288]", "stride": "48"})
    assert [(each.sizes[:2], each.usual) for each in guessed(model).dimensions] == [((96, 288), (288,))] * 2


@pytest.mark.parametrize(
    ("name", "output", "fed_by"),
    [
        ("state", "stateN", "stateN"),
        ("h", "hn", "hn"),
        ("past_key_values.0.key", "present.0.key", "present.0.key"),
        ("cache_in", "cache_out", "cache_out"),
        ("hidden", "logits", ""),
        ("encoder_hidden_states", "last_hidden_states", ""),
        ("sound", "sound_out", ""),
    ],
)
def test_a_state_is_paired_with_the_output_of_a_like_name(name: str, output: str, fed_by: str) -> None:
    node = helper.make_node("Relu", [name], [output])
    found = guessed(model_of([node], [value(name, shape=(1, 4, 8))], [value(output, shape=(1, 4, 8))]))
    assert found.inputs[0].fed_by == fed_by


@pytest.mark.parametrize(("side", "fixed", "size_of"), [(640, 640, None), ("height", None, "height")])
def test_the_size_of_an_image_as_an_input_is_the_images(
    side: int | str, fixed: int | None, size_of: str | None
) -> None:
    """Detectors scale their boxes by it; a factor beside it is 1."""
    nodes = [helper.make_node("Relu", [name], [f"{name}_out"]) for name in ("image", "im_shape", "scale_factor")]
    inputs = [
        value("image", shape=(1, 3, side, side)),
        value("im_shape", shape=(1, 2)),
        value("scale_factor", shape=(1, 2)),
    ]
    model = model_of(nodes, inputs, [value(f"{each.name}_out", shape=None) for each in inputs])
    _, shape, scale = guessed(model).inputs
    assert (shape.fillings[0].value, shape.fillings[0].size_of) == (fixed, size_of)
    assert scale.fillings[0].value == 1.0


def test_tree_features_are_those_about_their_thresholds() -> None:
    """Below -1 to 1, where random numbers lie otherwise, trees of large features would take one way only."""
    attributes: Mapping[str, Any] = {
        "nodes_featureids": [2, 0, 0],
        "nodes_values": [100.0, 300.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    }
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    model = model_of([node], [value("x", shape=(None, None))], opsets=(("", 17), ("ai.onnx.ml", 3)))
    found = guessed(model)
    assert found.dimensions[1].sizes == (3,)
    assert found.inputs[0].fillings[0].choices == ((0.0, 1.0), (0.0, 1.0), (99.9, 100.0, 100.1))


def test_numbers_that_are_compared_with_a_count_are_one_of_it() -> None:
    """One-hot encoding as TensorFlow's converter writes it."""
    count = numpy_helper.from_array(np.arange(257, dtype=np.int32), "count")
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["tall"]),
        helper.make_node("Equal", ["tall", "count"], ["y"]),
    ]
    axis = numpy_helper.from_array(np.array([2], np.int64), "axis")
    inputs = [value("x", TensorProto.INT32, ("n", 16))]
    model = model_of(nodes, inputs, [value("y", TensorProto.BOOL, None)], initializers=[count, axis])
    assert guessed(model).inputs[0].fillings[0].high == 256


@pytest.mark.parametrize(
    ("element_type", "compared", "values"),
    [
        (TensorProto.INT64, np.array([np.inf, 3.0], np.float32), [3, 4, 2]),
        (TensorProto.INT64, np.array(["3"], object), [None, None]),
        (TensorProto.FLOAT, np.array([np.nan, 0.5], np.float32), [0.5, 1.5, -0.5, None, None, None]),
    ],
)
def test_only_numbers_that_a_case_can_have_are_taken_from_comparisons(
    element_type: int, compared: np.ndarray[Any, Any], values: list[float | None]
) -> None:
    to = TensorProto.STRING if compared.dtype == object else TensorProto.FLOAT
    nodes = [helper.make_node("Cast", ["x"], ["as"], to=to), helper.make_node("Equal", ["as", "c"], ["y"])]
    constant = numpy_helper.from_array(compared, "c")
    outputs = [value("y", TensorProto.BOOL, None)]
    model = model_of(nodes, [value("x", element_type, (1,))], outputs, initializers=[constant])
    assert [each.value for each in guessed(model).inputs[0].fillings][: len(values)] == values


def test_whatever_fills_an_input_is_what_a_buildspec_takes() -> None:
    """So that what `ortrim init` writes can be read: a range has two ends, and choices are some."""
    one, depth = (numpy_helper.from_array(np.array(size, np.int64), name) for name, size in (("one", 1), ("d", 0)))
    nodes = [
        helper.make_node("OneHot", ["a", "one", "v"], ["y"]),
        helper.make_node("OneHot", ["b", "d", "v"], ["z"]),
        helper.make_node("Add", ["c", "one"], ["w"]),
    ]
    inputs = [value(name, TensorProto.INT64, (1, 2)) for name in "abc"]
    pair = numpy_helper.from_array(np.array([0, 1], np.int64), "v")
    outputs = [value(name, TensorProto.INT64, None) for name in "yzw"]
    found = guessed(model_of(nodes, inputs, outputs, initializers=[one, depth, pair]))
    for each in found.inputs:
        for filling in each.fillings:
            spec = InputSpec(value=filling.value, choices=filling.choices, low=filling.low, high=filling.high)
            case = CaseSpec(name="case", inputs={each.name: spec})
            model = ModelSpec(name="m", path=Path("m.onnx"), cases=(case,))
            assert [problem for problem in model_problems(model, (), Path()) if "cases" in problem.location] == []
