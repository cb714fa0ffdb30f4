"""GRU and LSTM expanded, against onnxruntime's own."""

from copy import deepcopy
from itertools import product
from typing import Any, Final

import onnx
import pytest

from number_samples import assert_same, operators, ran, random_feeds, recurrent, weights
from onnx_samples import relu
from ortrim.buildspec.step_specs import ExpandRecurrent
from ortrim.steps.recurrent import expand_recurrent
from ortrim.steps.step import Stepped

ASKED: Final = ExpandRecurrent(use="expand-recurrent")
KINDS: Final = [("LSTM", {}), ("GRU", {"linear_before_reset": 0}), ("GRU", {"linear_before_reset": 1})]
DIRECTIONS: Final = ("forward", "reverse", "bidirectional")


def step(model: onnx.ModelProto, options: ExpandRecurrent = ASKED) -> Stepped:
    return expand_recurrent(deepcopy(model), options)


@pytest.mark.parametrize(("kind", "direction"), [*product(KINDS, DIRECTIONS)])
def test_an_expansion_gives_the_same(kind: tuple[str, dict[str, Any]], direction: str) -> None:
    operator, attributes = kind
    model = recurrent(operator, direction=direction, **attributes)
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    found = operators(stepped.model.graph)
    assert operator not in found
    assert stepped.notes == (f"{operator} cell: 5 time steps, {len(found)} nodes",)


@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
def test_states_and_biases_need_not_be_given(operator: str) -> None:
    """They are zeros then; outputs that nobody wants are not made."""
    model = recurrent(operator)
    del model.graph.node[0].input[3:]
    del model.graph.input[1:], model.graph.output[1:]
    del model.graph.node[0].output[1:]
    model.graph.initializer.remove(next(each for each in model.graph.initializer if each.name == "B"))
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))


def test_other_activations_and_older_opsets() -> None:
    model = recurrent("GRU", activations=["relu", "Softsign"])
    model.opset_import[0].version = 11
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    assert "Softsign" in operators(stepped.model.graph)


def with_lengths() -> onnx.ModelProto:
    """Return an LSTM that is told how long each sequence is."""
    model = recurrent()
    model.graph.node[0].input[4] = "lengths"
    model.graph.initializer.append(onnx.helper.make_tensor("lengths", 6, [2], [5, 4]))
    return model


def with_peepholes() -> onnx.ModelProto:
    model = recurrent()
    model.graph.node[0].input.append("P")
    model.graph.initializer.append(weights("P", 1, 12))
    return model


def of_other_weights() -> onnx.ModelProto:
    model = recurrent()
    model.graph.initializer[0].CopyFrom(weights("W", 1, 12, 3))
    return model


@pytest.mark.parametrize(
    ("model", "options", "why"),
    [
        (recurrent(length="t"), ASKED, "the length of its sequence is not fixed"),
        (recurrent(length=9), ExpandRecurrent(use="expand-recurrent", longest=8), "its sequence has 9 time steps"),
        (recurrent(clip=3.0), ASKED, "it has clip"),
        (recurrent(activations=["Affine", "Tanh", "Tanh"]), ASKED, "its direction or its activations"),
        (recurrent(direction="sideways"), ASKED, "its direction or its activations"),
        (with_lengths(), ASKED, "it has lengths of sequences"),
        (with_peepholes(), ASKED, "it has peepholes"),
        (of_other_weights(), ASKED, "its weights are not constants of the right shape"),
    ],
)
def test_what_cannot_be_expanded_stays(model: onnx.ModelProto, options: ExpandRecurrent, why: str) -> None:
    """Not a byte changes, and the note says why."""
    stepped = step(model, options)
    assert stepped.model.SerializeToString() == model.SerializeToString()
    assert len(stepped.notes) == 1
    assert stepped.notes[0].startswith(f"LSTM cell stays: {why}")


@pytest.mark.parametrize("model", [relu(), recurrent("GRU")])
def test_what_is_not_asked_for_is_left_alone(model: onnx.ModelProto) -> None:
    stepped = step(model, ExpandRecurrent(use="expand-recurrent", operators=("LSTM",)))
    assert stepped.model.SerializeToString() == model.SerializeToString()
    assert stepped.notes == ()
