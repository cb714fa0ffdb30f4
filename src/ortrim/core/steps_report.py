"""What the steps of a model's preparation did to it: the content of `<model>.steps.json`."""

from dataclasses import dataclass
from typing import Literal

from ortrim.core.measurements import OutputParity

Outcome = Literal["changed", "unchanged", "left out"]


@dataclass(frozen=True, kw_only=True)
class ModelCounts:
    """A model in numbers. `parameters` are the elements of its initializers and constants that are no shapes.

    `nodes` counts those of inner graphs and functions too; `operators` are (domain:OpType, nodes), in order; `opsets`
    are (domain, version); the default domain is `ai.onnx`.
    """

    size_bytes: int
    nodes: int
    parameters: int
    opsets: tuple[tuple[str, int], ...]
    operators: tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True)
class CaseLeft:
    """A case that the model does not take any more since a step, and why."""

    case: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """One step: its number from 1, its `use` and the keys given for it as the buildspec writes them.

    `reason` says why a step was left out. `after` is the same as `before` then. `parity` holds the outputs against the
    original model's, all steps until then together; `cases_left` are cases that cannot be checked any more.
    """

    number: int
    use: str
    options: str
    outcome: Outcome
    reason: str = ""
    before: ModelCounts
    after: ModelCounts
    notes: tuple[str, ...] = ()
    cases_left: tuple[CaseLeft, ...] = ()
    parity: tuple[OutputParity, ...] = ()

    @property
    def largest_difference(self) -> float | None:
        """The largest absolute difference of any element from the original's; None when nothing was compared."""
        compared = [each.max_absolute for each in self.parity if each.nan_mismatch is not None]
        return max(compared, default=None)


@dataclass(frozen=True, kw_only=True)
class PreparationReport:
    """All steps of one model, with the digests of the original and of what they made of it."""

    schema: Literal["ortrim-preparation/1"] = "ortrim-preparation/1"
    model: str
    ort_version: str
    original_sha256: str
    sha256: str
    original: ModelCounts
    prepared: ModelCounts
    steps: tuple[StepReport, ...]
