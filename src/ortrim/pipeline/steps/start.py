"""The model as its steps find it, and the outputs of the original."""

from collections.abc import Mapping
from typing import Any

from ortrim.core.models import PreparedModel
from ortrim.pipeline.steps.cases import Feeds
from ortrim.pipeline.steps.parity import Runs
from ortrim.pipeline.steps.state import State, checked


def first_state(
    original: PreparedModel, cases: Mapping[str, Feeds], tolerances: Mapping[Any, Any], runs: Runs, where: str
) -> State:
    """Return the original in one file, its cases, and its outputs. Raises `VerifyError` and `ModelError`."""
    from ortrim.models.one_file import with_own_data  # noqa: PLC0415 - onnx takes a third of a second to import

    own = with_own_data(original.path, where)
    model, counts = checked(own, original.name, runs.folder / "original", runs, where)
    return State(
        model=model,
        counts=counts,
        cases=cases,
        reference=runs.outputs(model, cases, "original-run"),
        names={info.name: info.name for info in original.facts.outputs},
        tolerances=tolerances,
    )
