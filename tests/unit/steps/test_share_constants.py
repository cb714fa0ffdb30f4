"""Share constants: one of those that are equal stays."""

from copy import deepcopy

import numpy as np
from onnx import helper

from onnx_samples import model_of, value
from ortrim.buildspec.step_specs import ShareConstants
from ortrim.models.graph import replace_nodes
from ortrim.steps.remove import share_constants
from stepped_models import SHAPE, constant, feeds_for, layered, same_outputs, with_branch

OPTIONS = ShareConstants(use="share-constants")


def test_equal_initializers_become_one() -> None:
    model = layered()
    before = deepcopy(model)
    done = share_constants(model, OPTIONS)
    assert [tensor.name for tensor in model.graph.initializer] == ["w", "b"]
    assert done.notes[0].startswith("1 constants were equal to others")
    assert same_outputs(before, model, feeds_for(model))


def test_an_inner_graph_shares_with_the_outer_one() -> None:
    """A constant of a branch that the graph around has as an initializer is read from there."""
    model = with_branch()
    for attribute in model.graph.node[1].attribute:
        node = helper.make_node("Constant", [], ["own"], value=constant("", np.array([3, 4, 5], np.float32)))
        attribute.g.node[0].input[1] = "own"
        replace_nodes(attribute.g, [node, attribute.g.node[0]])
    before = deepcopy(model)
    share_constants(model, OPTIONS)
    assert [len(each.g.node) for each in model.graph.node[1].attribute] == [1, 1]
    assert same_outputs(before, model, feeds_for(model))


def test_constants_that_differ_stay() -> None:
    """Other numbers, types and shapes are other constants; so is one that is an output or can be given by a run."""
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in ("a", "b", "c", "d")]
    weights = [
        constant("a", np.array([1, 2], np.float32)),
        constant("b", np.array([[1, 2]], np.float32)),
        constant("c", np.array([1, 3], np.float32)),
        constant("d", np.array([1, 2], np.int32)),
        constant("e", np.array([1, 2], np.float32)),
        constant("f", np.array([1, 2], np.float32)),
    ]
    outputs = [value(f"{name}_out", shape=None) for name in ("a", "b", "c")] + [value("e", shape=(2,))]
    model = model_of(nodes, [value("f", shape=(2,)), value("x", shape=SHAPE)], outputs, initializers=weights)
    before = deepcopy(model)
    assert share_constants(model, OPTIONS).notes == ()
    assert model == before


def test_a_constant_behind_its_reader_is_not_shared() -> None:
    model = with_branch()
    late = helper.make_node("Constant", [], ["late"], value=constant("", np.array([7, 7, 7], np.float32)))
    inner = helper.make_node("Constant", [], ["own"], value=constant("", np.array([7, 7, 7], np.float32)))
    model.graph.node.append(late)
    for attribute in model.graph.node[1].attribute:
        attribute.g.node.append(inner)
    before = deepcopy(model)
    share_constants(model, OPTIONS)
    assert model == before
