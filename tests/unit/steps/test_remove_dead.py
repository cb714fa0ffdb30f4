"""Remove dead: what no output needs."""

from copy import deepcopy

import numpy as np
import pytest
from onnx import helper

from onnx_samples import model_of, value
from ortrim.buildspec.step_specs import RemoveDead
from ortrim.errors import ModelError
from ortrim.steps.remove import remove_dead
from stepped_models import SHAPE, constant, feeds_for, layered, same_outputs, with_branch

OPTIONS = RemoveDead(use="remove-dead")


def test_dead_nodes_and_what_only_they_read_go() -> None:
    """A chain that leads nowhere goes with its weights, in a branch too; the outputs stay."""
    model = layered()
    model.graph.node.append(helper.make_node("Mul", ["r", "lost"], ["nowhere"]))
    model.graph.node.append(helper.make_node("Exp", ["nowhere"], ["end"]))
    model.graph.initializer.append(constant("lost", np.array([1, 2, 3], np.float32)))
    done = remove_dead(model, OPTIONS)
    assert done.model == layered()
    assert done.notes == ("removed 2 nodes", "removed 1 initializers")


def test_a_dead_node_in_a_branch_goes() -> None:
    model = with_branch()
    model.graph.node[1].attribute[0].g.node.append(helper.make_node("Exp", ["d"], ["nowhere"]))
    assert remove_dead(model, OPTIONS).model == with_branch()


def test_a_model_without_dead_parts_stays() -> None:
    """Values that only a branch reads are alive, and so are nodes that stand in another order."""
    for model in (layered(), with_branch()):
        before = deepcopy(model)
        assert remove_dead(model, OPTIONS).notes == ()
        assert model == before


def test_nodes_in_any_order_are_followed() -> None:
    """A node may stand behind the one that reads it, as ONNX Runtime takes it."""
    nodes = [helper.make_node("Exp", ["m"], ["y"]), helper.make_node("Neg", ["x"], ["m"])]
    model = model_of(nodes)
    assert len(remove_dead(model, OPTIONS).model.graph.node) == 2


def test_inputs_go_only_when_asked() -> None:
    """An input that nothing reads goes with `inputs`, and feeds lose it."""
    model = layered()
    model.graph.input.append(value("unread", shape=SHAPE))
    assert len(remove_dead(deepcopy(model), OPTIONS).model.graph.input) == 2
    done = remove_dead(deepcopy(model), RemoveDead(use="remove-dead", inputs=True))
    feeds = feeds_for(layered())
    assert done.feeding is not None
    assert set(done.feeding.forward({**feeds, "unread": feeds["x"]})) == {"x"}
    assert same_outputs(layered(), done.model, feeds)


def test_a_model_that_needs_no_input_is_refused() -> None:
    """An output that is a constant leaves nothing to feed."""
    node = helper.make_node("Constant", [], ["y"], value=constant("", np.array([1], np.float32)))
    with pytest.raises(ModelError, match="no output needs any input"):
        remove_dead(model_of([node]), RemoveDead(use="remove-dead", inputs=True))


def test_functions_that_nothing_calls_go() -> None:
    model = layered()
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    bodies = {
        "Outer": helper.make_node("Inner", ["a"], ["b"], domain="own"),
        "Inner": helper.make_node("Relu", ["a"], ["b"]),
        "Lost": helper.make_node("Relu", ["a"], ["b"]),
    }
    for name, node in bodies.items():
        model.functions.append(helper.make_function("own", name, ["a"], ["b"], [node], opsets))
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.graph.node[2].op_type, model.graph.node[2].domain = "Outer", "own"
    done = remove_dead(model, OPTIONS)
    assert [function.name for function in done.model.functions] == ["Outer", "Inner"]
