"""Dimensions: fixed, named, and the batch."""

from copy import deepcopy

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_samples import model_of, value
from ortrim.buildspec.step_specs import Batch, FixDimensions, InferShapes, NameDimensions
from ortrim.errors import ModelError
from ortrim.models.onnx_files import shape_of
from ortrim.steps.inputs_outputs import fix_dimensions, name_dimensions, set_batch
from ortrim.steps.runtime_tools import infer_shapes
from ortrim.steps.step import Workplace
from stepped_models import constant, layered


def shapes(model: onnx.ModelProto) -> dict[str, object]:
    return {
        each.name: shape_of(each.type) for each in (*model.graph.input, *model.graph.value_info, *model.graph.output)
    }


def unnamed() -> onnx.ModelProto:
    """Return a model whose input has a dimension without a name, and one that an exporter wrote as -1."""
    x = value("x", shape=(None, 3))
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [x], [value("y", shape=(None, 3))])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1
    return model


def reshaping(first: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="to six")]
    weights = [constant("shape", np.array([first, 6], np.int64))]
    return model_of(nodes, [value("x", shape=(1, 2, 3))], [value("y", shape=(1, 6))], initializers=weights)


def test_a_fixed_size_reaches_the_outputs(place: Workplace) -> None:
    done = fix_dimensions(layered(), FixDimensions(use="fix-dimensions", sizes={"batch": 4}), place)
    assert set(shapes(done.model).values()) == {(4, 3)}
    assert len(done.model.graph.value_info) == 3


def test_a_dimension_without_a_name_is_fixed_by_its_place(place: Workplace) -> None:
    """`INPUT:AXIS` names one, and one that an exporter wrote as -1."""
    options = FixDimensions(use="fix-dimensions", sizes={"x:0": 4, "x:1": 3})
    assert shapes(fix_dimensions(unnamed(), options, place).model) == {"x": (4, 3), "y": (4, 3)}


def test_a_size_that_is_there_already_changes_nothing(place: Workplace) -> None:
    """The model is the same once its shapes are known."""
    options = FixDimensions(use="fix-dimensions", sizes={"x:0": 4})
    once = fix_dimensions(unnamed(), options, place).model
    assert fix_dimensions(deepcopy(once), options, place).model == once


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"batsh": 1}, "the model has no dynamic dimension 'batsh'"),
        ({"x:2": 1}, "the model has no dynamic dimension 'x:2'"),
        ({"x:1": 5}, "the dimension 'x:1' has the fixed size 3"),
    ],
)
def test_an_unknown_dimension_is_refused(sizes: dict[str, int], words: str, place: Workplace) -> None:
    """The diagnostic names it, and those that the model has."""
    with pytest.raises(ModelError, match=words):
        fix_dimensions(layered(), FixDimensions(use="fix-dimensions", sizes=sizes), place)


def test_dimensions_get_names() -> None:
    done = name_dimensions(layered(), NameDimensions(use="name-dimensions", names={"batch": "N"}))
    assert shapes(done.model) == {"x": ("N", 3), "y": ("N", 3)}
    names = {"x:0": "N", "y:0": "N"}
    done = name_dimensions(unnamed(), NameDimensions(use="name-dimensions", names=names))
    assert shapes(done.model)["y"] == ("N", 3)
    with pytest.raises(ModelError, match="the dimension 'x:1' has the fixed size 3"):
        name_dimensions(layered(), NameDimensions(use="name-dimensions", names={"x:1": "N"}))


def test_names_that_are_there_already_change_nothing() -> None:
    for key in ("batch", "x:0", "y:0"):
        assert (
            name_dimensions(layered(), NameDimensions(use="name-dimensions", names={key: "batch"})).model == layered()
        )


def test_a_batch_that_is_there_already_changes_nothing(place: Workplace) -> None:
    """The model is the same once its shapes are known, whether its batch is a number or a name."""
    for size in (8, "batch"):
        once = set_batch(layered(), Batch(use="batch", size=size), place).model
        again = set_batch(deepcopy(once), Batch(use="batch", size=size), place)
        assert (again.model, again.notes) == (once, ())


def test_a_batch_is_set_and_opened(place: Workplace) -> None:
    """A dynamic batch gets a size, and a fixed one a name, as far as the outputs."""
    fixed = set_batch(layered(), Batch(use="batch", size=8), place).model
    assert set(shapes(fixed).values()) == {(8, 3)}
    opened = set_batch(deepcopy(fixed), Batch(use="batch", size="N"), place)
    assert set(shapes(opened.model).values()) == {("N", 3)}
    assert opened.notes == ()


def test_a_batch_that_a_constant_shape_fixes_is_refused(place: Workplace) -> None:
    """The output keeps its size, which the diagnostic says; a shape that follows the input is fine."""
    with pytest.raises(ModelError, match="the first dimension of output 'y' stays 1"):
        set_batch(reshaping(1), Batch(use="batch", size="N"), place)
    assert shapes(set_batch(reshaping(0), Batch(use="batch", size="N"), place).model)["y"] == ("N", 6)


def test_only_the_values_named_get_the_batch(place: Workplace) -> None:
    """A state whose first dimension is something else is left alone."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["state"], ["next"])]
    model = model_of(
        nodes,
        [value("x", shape=("N", 3)), value("state", shape=(2, 3))],
        [value("y", shape=("N", 3)), value("next", shape=(2, 3))],
    )
    done = set_batch(model, Batch(use="batch", size=4, of=("x", "y")), place)
    assert shapes(done.model) == {"x": (4, 3), "y": (4, 3), "state": (2, 3), "next": (2, 3)}
    with pytest.raises(ModelError, match="no input or output 'z'"):
        set_batch(model, Batch(use="batch", size=4, of=("z",)), place)


def test_shapes_are_written_once(place: Workplace) -> None:
    """Shapes of all values inside are there after inference, which then finds nothing more."""
    options = InferShapes(use="infer-shapes")
    done = infer_shapes(layered(), options, place)
    assert done.notes == ("shapes known of 3 values inside, before of 0",)
    assert infer_shapes(deepcopy(done.model), options, place).model == done.model
