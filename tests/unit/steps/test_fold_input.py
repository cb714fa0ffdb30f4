"""Pre-processing put into models, against onnxruntime."""

from copy import deepcopy
from dataclasses import replace
from typing import Final

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from number_samples import assert_same, operators, picture, ran, random_feeds, weights
from onnx_samples import model_of, relu, value
from ortrim.buildspec.step_specs import FoldInput
from ortrim.errors import ModelError
from ortrim.steps.fold_input import fold_input
from ortrim.steps.step import Feeds, Stepped
from refusing import refused

IMAGENET: Final = FoldInput(
    use="fold-input",
    scale=1 / 255,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    swap_channels=True,
    channels_last=True,
    uint8=True,
)
NOTHING: Final = FoldInput(use="fold-input")


def step(model: onnx.ModelProto, options: FoldInput) -> Stepped:
    return fold_input(deepcopy(model), options)


def checked(model: onnx.ModelProto, options: FoldInput) -> Stepped:
    stepped = step(model, options)
    assert stepped.feeding is not None
    old = random_feeds(model)
    new: Feeds = stepped.feeding.forward(old)
    meant = {**old, **stepped.feeding.back(new)} if stepped.feeding.back else old
    assert_same(ran(model, meant), ran(stepped.model, dict(new)), 1e-4)
    return stepped


def test_a_decoder_s_bytes_are_taken_and_the_rest_goes_into_the_weights() -> None:
    """Without padding, a cast and the order of axes are all that is put before the model."""
    stepped = checked(picture(), IMAGENET)
    assert operators(stepped.model.graph) == ["Transpose", "Cast", "Conv"]
    tensor = stepped.model.graph.input[0].type.tensor_type
    assert [size.dim_value for size in tensor.shape.dim] == [1, 6, 6, 3]
    assert tensor.elem_type == onnx.TensorProto.UINT8
    assert stepped.notes == ("put before the model: Transpose, Cast", "put into the weights of first: the rest")
    assert len(stepped.model.graph.initializer) == 2


def test_what_is_subtracted_stays_before_a_convolution_that_pads() -> None:
    """The padding is of zeros, which would otherwise stand for another colour."""
    stepped = checked(picture(pads=(1, 0, 1, 1)), IMAGENET)
    assert operators(stepped.model.graph) == ["Transpose", "Cast", "Sub", "Conv"]


def test_without_a_convolution_all_is_put_before_the_model() -> None:
    stepped = checked(picture(operator="Relu"), IMAGENET)
    assert operators(stepped.model.graph) == ["Transpose", "Cast", "Gather", "Sub", "Mul", "Relu"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (replace(NOTHING, channels_last=True), ["Transpose", "Relu"]),
        (replace(NOTHING, uint8=True), ["Cast", "Relu"]),
        (replace(NOTHING, swap_channels=True), ["Gather", "Relu"]),
        (replace(NOTHING, mean=(0.5,)), ["Sub", "Relu"]),
        (replace(NOTHING, std=(0.5, 0.25, 2.0)), ["Mul", "Relu"]),
        (replace(NOTHING, scale=0.5, mean=(1.0, 2.0, 3.0), std=(2.0,)), ["Sub", "Mul", "Relu"]),
    ],
)
def test_each_part_stands_alone(options: FoldInput, expected: list[str]) -> None:
    assert operators(checked(picture(operator="Relu"), options).model.graph) == expected


def test_values_inside_graphs_of_nodes_read_the_new_input() -> None:
    branches = {
        f"{name}_branch": onnx.helper.make_graph(
            [onnx.helper.make_node("Abs", ["x"], [name])], name, [], [value(name, shape=[1, 3, 6, 6])]
        )
        for name in ("then", "else")
    }
    node = onnx.helper.make_node("If", ["c"], ["y"], **branches)
    choice = onnx.helper.make_tensor("c", 9, [], [True])
    shape = [1, 3, 6, 6]
    checked(model_of([node], [value("x", shape=shape)], [value("y", shape=shape)], initializers=[choice]), IMAGENET)


@settings(max_examples=20)
@given(arrays.arrays(np.uint8, (2, 3, 4, 3)))
def test_bytes_go_there_and_back(picture_bytes: np.ndarray) -> None:
    feeding = step(picture(), IMAGENET).feeding
    assert feeding is not None
    assert feeding.back is not None
    again = feeding.forward(feeding.back({"x": picture_bytes}))
    np.testing.assert_array_equal(again["x"], picture_bytes)


@settings(max_examples=20)
@given(st.floats(1e-3, 10), st.floats(-5, 5), st.floats(0.1, 10))
def test_any_normalisation_is_the_same(scale: float, mean: float, std: float) -> None:
    """Numbers are those of the formula, whatever they are."""
    options = replace(NOTHING, scale=scale, mean=(mean, 0.0, 1.0), std=(std,))
    feeding = step(picture(), options).feeding
    assert feeding is not None
    given_values = np.ones((1, 3, 1, 1), np.float64)
    made = feeding.forward({"x": given_values})["x"]
    meant = (made * scale - np.array([mean, 0.0, 1.0]).reshape(1, 3, 1, 1)) / std
    np.testing.assert_allclose(meant, given_values, rtol=1e-5)  # a mean of 5 beside a deviation of 0.1 costs two digits


def two_inputs() -> onnx.ModelProto:
    inputs = [value("x", shape=[1, 3, 2, 2]), value("z", shape=[1, 3, 2, 2])]
    return model_of([onnx.helper.make_node("Add", ["x", "z"], ["y"])], inputs, [value("y", shape=[1, 3, 2, 2])])


def passed_through() -> onnx.ModelProto:
    model = picture()
    model.graph.output.append(value("x", shape=[1, 3, 6, 6]))
    return model


def of_unknown_channels() -> onnx.ModelProto:
    shape: list[int | str | None] = [1, "c", 2, 2]
    return model_of([onnx.helper.make_node("Relu", ["x"], ["y"])], [value("x", shape=shape)], [value("y", shape=shape)])


@pytest.mark.parametrize(
    ("model", "options", "reference"),
    [
        (two_inputs(), NOTHING, "no-such-input"),
        (picture(), replace(NOTHING, input="z"), "no-such-input"),
        (picture(), replace(NOTHING, input="w"), "no-such-input"),
        (relu(), NOTHING, "input-does-not-fit"),
        (passed_through(), NOTHING, "input-does-not-fit"),
        (picture(), replace(NOTHING, mean=(0.1, 0.2)), "input-does-not-fit"),
        (picture(), replace(NOTHING, mean=(0.1, 0.2), std=(1.0, 2.0, 3.0)), "input-does-not-fit"),
        (of_unknown_channels(), replace(NOTHING, swap_channels=True), "input-does-not-fit"),
    ],
)
def test_what_does_not_fit_is_refused(model: onnx.ModelProto, options: FoldInput, reference: str) -> None:
    error = refused(ModelError, step, model, options)
    assert error.code == reference
    assert error.hint or error.why


def test_nothing_asked_for_is_nothing_done() -> None:
    """Without choices the model's numbers stay, its weights among them."""
    model = picture()
    made = step(model, NOTHING).model
    assert made.SerializeToString() == model.SerializeToString()


def test_weights_of_other_channels_are_left() -> None:
    """A convolution by groups is no place for the order of channels."""
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], group=3)
    outputs = [value("y", shape=[1, 3, 4, 4])]
    model = model_of([node], [value("x", shape=[1, 3, 6, 6])], outputs, initializers=[weights("w", 3, 1, 3, 3)])
    assert operators(checked(model, IMAGENET).model.graph)[-3:] == ["Sub", "Mul", "Conv"]
