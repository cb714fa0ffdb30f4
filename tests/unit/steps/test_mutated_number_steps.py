"""Models with something in them changed: the steps that change numbers give a result or a diagnostic."""

from contextlib import suppress
from random import Random
from typing import Final

import onnx
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from mutated_models import mutated
from number_samples import normalised, picture, recurrent, sequences, weights
from onnx_samples import branching
from ortrim.buildspec.step_specs import Conv1dTo2d, ExpandRecurrent, FoldBatchNorm, FoldInput, StepChoices
from ortrim.errors import Diagnostic
from ortrim.steps.conv1d_to_2d import conv1d_to_2d
from ortrim.steps.fold_batch_norm import fold_batch_norm
from ortrim.steps.fold_input import fold_input
from ortrim.steps.recurrent import expand_recurrent
from ortrim.steps.step import Stepped

SAMPLES: Final = tuple(
    model.SerializeToString()
    for model in (
        sequences(11),
        sequences(17),
        normalised(
            helper.make_node("Conv", ["x", "w", "b"], ["n"]), initializers=[weights("w", 4, 3, 3, 3), weights("b", 4)]
        ),
        normalised(
            helper.make_node("ConvTranspose", ["x", "w"], ["n"], group=3),
            initializers=[weights("w", 3, 2, 2, 2)],
            channels=6,
        ),
        normalised(helper.make_node("MatMul", ["x", "w"], ["n"]), initializers=[weights("w", 3, 4)], rank=2),
        picture(),
        picture(pads=(1, 0, 1, 1)),
        recurrent(),
        recurrent("GRU", direction="bidirectional", linear_before_reset=1),
        branching(),
    )
)
CHOICES: Final[tuple[StepChoices, ...]] = (
    Conv1dTo2d(use="conv1d-to-2d"),
    FoldBatchNorm(use="fold-batch-norm"),
    ExpandRecurrent(use="expand-recurrent"),
    FoldInput(use="fold-input", mean=(0.1, 0.2, 0.3), std=(2.0,), swap_channels=True, channels_last=True, uint8=True),
)


def step(model: onnx.ModelProto, choices: StepChoices) -> Stepped:
    """Do a step as the table would, without what that does about other errors."""
    match choices:
        case Conv1dTo2d():
            return conv1d_to_2d(model, choices)
        case FoldBatchNorm():
            return fold_batch_norm(model, choices)
        case ExpandRecurrent():
            return expand_recurrent(model, choices)
        case FoldInput():
            return fold_input(model, choices)
        case _:
            raise AssertionError(choices)


@settings(max_examples=60)
@given(st.sampled_from(SAMPLES), st.sampled_from(CHOICES), st.integers(0, 2**32), st.integers(1, 4))
def test_a_changed_model_gives_a_result_or_a_diagnostic(
    content: bytes, choices: StepChoices, seed: int, times: int
) -> None:
    model = onnx.ModelProto.FromString(mutated(content, Random(seed), times))  # noqa: S311 - no secrets
    assume(model.HasField("graph"))  # without one a file is refused before any step
    with suppress(Diagnostic):
        assert onnx.ModelProto.FromString(step(model, choices).model.SerializeToString()).HasField("graph")


def test_an_attribute_without_a_value_is_not_taken_for_one_that_is_absent() -> None:
    """Padding that is named and not given is no reason to think that there is none."""
    model = picture()
    model.graph.node[0].attribute[0].ref_attr_name = "elsewhere"
    caught: list[str] = []
    for choices in CHOICES[1:]:
        try:
            step(model, choices)
        except Diagnostic as error:
            caught.append(error.what)
    assert caught == ["the attribute 'pads' of a node Conv cannot be read"]
