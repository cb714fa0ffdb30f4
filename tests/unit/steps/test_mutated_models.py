"""Models with something in them changed: steps give a result or a diagnostic."""

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from mutated_models import mutated
from number_samples import normalised, picture, recurrent, sequences, weights
from onnx_samples import branching
from ortrim.buildspec import step_specs
from ortrim.errors import Diagnostic
from ortrim.models.full_runtime import FullRuntime
from ortrim.steps.step import Workplace
from ortrim.steps.table import PLAIN, take_step
from stepped_models import layered, with_branch

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
CHOICES: Final[tuple[step_specs.StepChoices, ...]] = (
    step_specs.Conv1dTo2d(use="conv1d-to-2d"),
    step_specs.FoldBatchNorm(use="fold-batch-norm"),
    step_specs.ExpandRecurrent(use="expand-recurrent"),
    step_specs.FoldInput(
        use="fold-input", mean=(0.1, 0.2, 0.3), std=(2.0,), swap_channels=True, channels_last=True, uint8=True
    ),
)


@settings(max_examples=60)
@given(st.sampled_from(SAMPLES), st.sampled_from(CHOICES), st.integers(0, 2**32), st.integers(1, 4))
def test_a_changed_model_gives_a_result_or_a_diagnostic(
    content: bytes, choices: step_specs.StepChoices, seed: int, times: int
) -> None:
    model = onnx.ModelProto.FromString(mutated(content, Random(seed), times))  # noqa: S311 - no secrets
    assume(model.HasField("graph"))  # without one a file is refused before any step
    with suppress(Diagnostic):
        made = PLAIN[type(choices)](model, choices).model  # without what the table does about other errors
        assert onnx.ModelProto.FromString(made.SerializeToString()).HasField("graph")


def test_an_attribute_without_a_value_is_not_taken_for_one_that_is_absent() -> None:
    """Padding that is named and not given is no reason to think that there is none."""
    model = picture()
    model.graph.node[0].attribute[0].ref_attr_name = "elsewhere"
    caught: list[str] = []
    for choices in CHOICES[1:]:
        try:
            PLAIN[type(choices)](model, choices)
        except Diagnostic as error:
            caught.append(error.what)
    assert caught == ["the attribute 'pads' of a node Conv cannot be read"]


STEPS: tuple[step_specs.StepChoices, ...] = (
    step_specs.Strip(use="strip", shapes=True, node_names=True),
    step_specs.Rename(use="rename", inputs={"x": "sound"}, outputs={"y": "voice"}, number_nodes=True),
    step_specs.ShareConstants(use="share-constants"),
    step_specs.RemoveDead(use="remove-dead", inputs=True),
    step_specs.NameDimensions(use="name-dimensions", names={"x:0": "N", "batch": "M"}),
)
NOWHERE = Path("/nonexistent")
PLACE = Workplace(
    runtime=FullRuntime(version="1.21.0", words=(), environment={}, packages=NOWHERE, library=NOWHERE),
    folder=NOWHERE,
    base=NOWHERE,
    where="step 1",
    cases={},
)


@pytest.mark.parametrize("choices", STEPS, ids=lambda each: each.use)
@pytest.mark.parametrize("content", [layered().SerializeToString(), with_branch().SerializeToString()], ids=("a", "b"))
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), times=st.integers(1, 8))
def test_an_odd_model_is_a_result_or_a_diagnostic(
    content: bytes, choices: step_specs.StepChoices, seed: int, times: int
) -> None:
    model = onnx.ModelProto.FromString(mutated(content, Random(seed), times))  # noqa: S311 - models, no secrets
    assume(model.HasField("graph"))  # without one a file is refused before any step
    with suppress(Diagnostic):
        made = take_step(model, choices, PLACE).model
        assert onnx.ModelProto.FromString(made.SerializeToString()).HasField("graph")
