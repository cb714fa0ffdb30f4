"""Steps on models in which something is odd: a model or a diagnostic, never anything else."""

from contextlib import suppress
from pathlib import Path
from random import Random

import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mutated_models import mutated
from ortrim.buildspec.step_specs import NameDimensions, RemoveDead, Rename, ShareConstants, StepChoices, Strip
from ortrim.errors import Diagnostic
from ortrim.models.full_runtime import FullRuntime
from ortrim.steps.step import Workplace
from ortrim.steps.table import take_step
from stepped_models import layered, with_branch

STEPS: tuple[StepChoices, ...] = (
    Strip(use="strip", shapes=True, node_names=True),
    Rename(use="rename", inputs={"x": "sound"}, outputs={"y": "voice"}, number_nodes=True),
    ShareConstants(use="share-constants"),
    RemoveDead(use="remove-dead", inputs=True),
    NameDimensions(use="name-dimensions", names={"x:0": "N", "batch": "M"}),
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
def test_an_odd_model_is_a_result_or_a_diagnostic(content: bytes, choices: StepChoices, seed: int, times: int) -> None:
    model = onnx.ModelProto.FromString(mutated(content, Random(seed), times))  # noqa: S311 - models, no secrets
    assume(model.HasField("graph"))  # without one a file is refused before any step
    with suppress(Diagnostic):
        made = take_step(model, choices, PLACE).model
        assert onnx.ModelProto.FromString(made.SerializeToString()).HasField("graph")
