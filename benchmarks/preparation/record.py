"""What was measured: `preparation.json`."""

from dataclasses import dataclass, replace
from typing import Self

from footprint.record import Record


@dataclass(frozen=True, kw_only=True)
class ModelFigures:
    """A model in numbers; `operator_types` are those that its required-operators configuration names."""

    onnx_bytes: int
    nodes: int
    operator_types: int
    ort_bytes: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """What its steps made of a model of a spec; `key` is that of the rounds in which both were measured."""

    spec: str
    model: str
    key: str
    given: ModelFigures
    prepared: ModelFigures
    outputs: int
    outputs_agree: int
    largest_difference: float | None


@dataclass(frozen=True, kw_only=True)
class PreparationRecord(Record):
    """A record of rounds and libraries as `footprint` has it, with what changed in the models of each spec."""

    changes: tuple[Change, ...] = ()

    def with_changes(self, spec: str, changes: tuple[Change, ...]) -> Self:
        others = tuple(each for each in self.changes if each.spec != spec)
        return replace(self, changes=(*others, *changes))

    def library_bytes(self, spec: str, contender: str) -> int | None:
        found = (each.file_bytes for each in self.libraries if (each.spec, each.contender) == (spec, contender))
        return next(found, None)
