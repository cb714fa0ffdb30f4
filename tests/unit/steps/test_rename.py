"""Rename: inputs, outputs and nodes."""

from copy import deepcopy

import numpy as np
import pytest

from ortrim.buildspec.step_specs import Rename
from ortrim.errors import ModelError
from ortrim.steps.inputs_outputs import rename
from stepped_models import feeds_for, layered, outputs_of, with_branch


def test_names_change_in_inner_graphs_too() -> None:
    """An input that a branch reads, and an output, have their new names everywhere; feeds follow."""
    model = with_branch()
    feeds = feeds_for(model)
    expected = outputs_of(deepcopy(model), feeds)["y"]
    done = rename(model, Rename(use="rename", inputs={"x": "sound"}, outputs={"y": "voice"}, number_nodes=True))
    assert done.outputs == {"voice": "y"}
    assert done.feeding is not None
    assert np.array_equal(outputs_of(model, done.feeding.forward(feeds))["voice"], expected)
    assert [node.name for node in model.graph.node] == ["Add_1", "If_1"]
    assert [each.g.node[0].name for each in model.graph.node[1].attribute] == ["Add_2", "Mul_1"]


def test_names_may_be_exchanged() -> None:
    model = with_branch()
    done = rename(model, Rename(use="rename", inputs={"x": "c", "c": "x"}))
    assert [value.name for value in done.model.graph.input] == ["c", "x"]
    assert model.graph.node[0].input[:] == ["c", "c"]


def test_nothing_to_rename_changes_nothing() -> None:
    """Without names the model stays as it is, and its feeds too."""
    model = layered()
    done = rename(model, Rename(use="rename", nodes={"first": "first"}))
    assert (done.model, done.feeding, done.notes) == (layered(), None, ())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Rename(use="rename", inputs={"q": "a"}), "the model has no input 'q'"),
        (Rename(use="rename", outputs={"q": "a"}), "the model has no output 'q'"),
        (Rename(use="rename", nodes={"q": "a"}), "the model has no node 'q'"),
        (Rename(use="rename", inputs={"x": "r"}), "the name 'r' is taken by another value of the model"),
        (Rename(use="rename", inputs={"x": "z"}, outputs={"y": "z"}), "the name 'z' is taken by another"),
        (Rename(use="rename", outputs={"y": "w"}), "the name 'w' is taken by another value of the model"),
    ],
)
def test_names_that_are_unknown_or_taken_are_refused(options: Rename, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        rename(layered(), options)
    assert caught.value.code == "step-failed"
