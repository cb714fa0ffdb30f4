"""Opset: up and down, and what cannot go."""

from copy import deepcopy

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_samples import model_of, value
from ortrim.buildspec.step_specs import Opset
from ortrim.errors import ModelError
from ortrim.models.graph import opset_of
from ortrim.steps.runtime_tools import to_opset
from ortrim.steps.step import Workplace
from refusing import refused
from stepped_models import feeds_for, layered, same_outputs


def squeezing() -> onnx.ModelProto:
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    return model_of([node], [value("x", shape=(1, 3))], [value("y", shape=(3,))], opsets=(("", 11),))


def test_an_operator_that_changed_is_converted(place: Workplace) -> None:
    """Axes become an input on the way up, and the IR version stays the model's."""
    before = squeezing()
    done = to_opset(squeezing(), Opset(use="opset", version=17), place)
    assert opset_of(done.model) == 17
    assert done.model.ir_version == before.ir_version
    assert len(done.model.graph.node[-1].input) == 2
    assert done.notes == ("operators that differ: Squeeze",)
    assert same_outputs(before, done.model, {"x": np.array([[1, 2, 3]], np.float32)})


def test_an_operator_that_changed_is_converted_down(place: Workplace) -> None:
    """Axes that are a constant become an attribute again."""
    up = to_opset(squeezing(), Opset(use="opset", version=13), place).model
    down = to_opset(deepcopy(up), Opset(use="opset", version=11), place)
    assert (opset_of(down.model), down.notes) == (11, ("operators that differ: Constant, Squeeze",))
    (squeeze,) = (node for node in down.model.graph.node if node.op_type == "Squeeze")
    assert [(attribute.name, list(attribute.ints)) for attribute in squeeze.attribute] == [("axes", [0])]
    assert same_outputs(up, down.model, {"x": np.array([[1, 2, 3]], np.float32)})


def test_operators_that_did_not_change_need_no_converter(place: Workplace) -> None:
    done = to_opset(layered(), Opset(use="opset", version=14), place)
    expected = layered()
    expected.opset_import[0].version = 14
    assert done.model == expected
    assert same_outputs(layered(), done.model, feeds_for(layered()))


def test_the_same_opset_changes_nothing(place: Workplace) -> None:
    done = to_opset(squeezing(), Opset(use="opset", version=11), place)
    assert (done.model, done.notes) == (squeezing(), ())


def test_an_operator_that_the_opset_lacks_is_named(place: Workplace) -> None:
    model = model_of([helper.make_node("Gelu", ["x"], ["y"])], opsets=(("", 20),))
    with pytest.raises(ModelError, match="opset 17 does not have Gelu") as caught:
        to_opset(model, Opset(use="opset", version=17), place)
    assert caught.value.code == "step-failed"


def test_what_the_converter_cannot_do_is_named(place: Workplace) -> None:
    """Its own words and the operators that differ are the why."""
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"])
    model = model_of(
        [node],
        [value("x", shape=(2, 3)), value("axes", TensorProto.INT64, (1,))],
        [value("y", shape=(1, 3))],
        opsets=(("", 13),),
    )
    error = refused(ModelError, to_opset, model, Opset(use="opset", version=11), place)
    assert error.code == "step-failed"
    assert error.why.endswith("operators that differ: ReduceSum")


def test_an_opset_beyond_onnx_is_refused(place: Workplace) -> None:
    """The newest known one is in the diagnostic."""
    with pytest.raises(ModelError, match="not 99"):
        to_opset(layered(), Opset(use="opset", version=99), place)


def test_functions_follow(place: Workplace) -> None:
    model = layered()
    body = helper.make_node("Relu", ["a"], ["b"])
    model.functions.append(helper.make_function("own", "F", ["a"], ["b"], [body], [helper.make_opsetid("", 17)]))
    model.opset_import.append(helper.make_opsetid("own", 1))
    done = to_opset(deepcopy(model), Opset(use="opset", version=15), place)
    assert done.model.functions[0].opset_import[0].version == 15
