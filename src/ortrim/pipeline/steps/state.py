"""A model between two steps of its preparation, and a step to be done."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ortrim.core.models import PreparedModel
from ortrim.core.step_choices import StepChoices
from ortrim.core.steps_report import ModelCounts
from ortrim.core.tolerance_spec import Tolerance
from ortrim.pipeline.steps.cases import Feeds
from ortrim.pipeline.steps.parity import Runs
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.verify.reference import SavedOutputs

if TYPE_CHECKING:
    import onnx

MODEL_FILE: Final = "model.onnx"


@dataclass(frozen=True, kw_only=True)
class State:
    """A model between two steps.

    `reference` are the outputs that it is held against, and `names` says under which name of them each of its outputs
    is found. `cases` are the feeds of the cases that it still takes.
    """

    model: PreparedModel
    counts: ModelCounts
    cases: Mapping[str, Feeds]
    reference: SavedOutputs
    names: Mapping[str, str]
    tolerances: Mapping[Any, Tolerance]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A step to be done: its number from 1, its choices, where paths start, and what runs models."""

    number: int
    choices: StepChoices
    base: Path
    runs: Runs

    @property
    def folder(self) -> Path:
        """A folder of the step's own."""
        return self.runs.folder / f"step-{self.number}"


def checked(
    model: "onnx.ModelProto", name: str, folder: Path, runs: Runs, where: str
) -> tuple[PreparedModel, ModelCounts]:
    """Write a model and check it as one that a user gives."""
    from ortrim.models.checks import check_model  # noqa: PLC0415
    from ortrim.models.counts import counts_of  # noqa: PLC0415
    from ortrim.steps.isolation import save  # noqa: PLC0415

    path = folder / MODEL_FILE
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    save(model, path, where)
    version, size = runs.runtime.version, path.stat().st_size
    facts, _ = check_model(path, sha256=sha256_of(path), size_bytes=size, ort_version=version, where=where)
    return PreparedModel(name=name, path=path, facts=facts), counts_of(model, facts)
