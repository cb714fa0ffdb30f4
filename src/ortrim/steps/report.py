"""What the steps of a model's preparation did to it: the content of `<model>.steps.json`."""

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Literal

import onnx

from ortrim.models.graph_facts import weights_of
from ortrim.models.models import ModelFacts
from ortrim.models.onnx_files import nodes_of
from ortrim.parity.measurements import OutputParity

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


NO_PARAMETERS = ("int64", "int32", "bool", "string")
"""Types of constants that say where and how to work, such as shapes and axes."""


def counts_of(model: onnx.ModelProto, facts: ModelFacts) -> ModelCounts:
    """Return a model's numbers; its size is that of its files."""
    operators = Counter(f"{node.domain or 'ai.onnx'}:{node.op_type}" for node in nodes_of(model))
    weights = (weight for weight in weights_of(model) if weight.element_type not in NO_PARAMETERS)
    return ModelCounts(
        size_bytes=facts.size_bytes,
        nodes=facts.node_count,
        parameters=sum(max(0, prod(weight.dimensions)) for weight in weights),
        opsets=facts.opsets,
        operators=tuple(sorted(operators.items())),
    )
