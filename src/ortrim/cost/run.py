"""`cost`: what one inference of a model takes, for a model's file or for the cases of a buildspec's models."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ortrim.base.console import Console
from ortrim.cost.graph import CostRequest, cost_of, open_dimensions
from ortrim.cost.memory import ModelCost
from ortrim.errors import UsageError
from ortrim.models.models import PreparedModel
from ortrim.models.named import files_named
from ortrim.pins.versions import NEWEST, exact_version
from ortrim.pipeline.preparing import cases_of, ready_models
from ortrim.pipeline.request import Request, is_buildspec, load
from ortrim.spec.problems import nearest
from ortrim.verify.cases import Case, input_shapes


def check_sizes(words: Sequence[str], sizes: Mapping[str, int]) -> None:
    """Raise `UsageError` (`bad-option`) for the size of a dimension that no model leaves open, or beside a buildspec.

    Raises as `costs_of` does for what is no model.
    """
    if sizes and any(is_buildspec(Path(word)) for word in words):
        hint = "the buildspec's cases have the sizes; or give a model's file"
        raise UsageError("bad-option", "does not go with a buildspec", where="--dim", hint=hint)
    files = (each for word in words if sizes for each in files_named(word, exact_version(NEWEST)))
    known = tuple(dict.fromkeys(dim for name, file in files for dim in open_dimensions(file, name)))
    for name in sizes:
        if name not in known:
            hint = nearest(name, known, f"dynamic dimensions: {', '.join(known) or 'none'}")
            raise UsageError("bad-option", f"no model has a dynamic dimension {name!r}", where="--dim", hint=hint)


def costs_of(
    word: str, dimensions: Mapping[str, int], console: Console, *, given: bool = False
) -> tuple[ModelCost, ...]:
    """Return the costs of the models that a word names, for the sizes given, or of each case of a buildspec's models.

    A model with steps is counted after them, or as `given`. Cases whose inputs have the same shapes are counted once,
    for the first of them. Raises as `files_named` does, `ModelError`, or what reading a buildspec, its models' steps
    and making its cases raises.
    """
    if is_buildspec(Path(word)):
        return _costs_of_buildspec(Path(word), console, given=given)
    asked = CostRequest(dimensions=dimensions)
    files = files_named(word, exact_version(NEWEST))
    return tuple(cost_of(file, asked, name=name, where=name) for name, file in files)


def _costs_of_buildspec(path: Path, console: Console, *, given: bool) -> tuple[ModelCost, ...]:
    loaded = load(Request(spec=path))
    costs: list[ModelCost] = []
    for number, ready in enumerate(ready_models(loaded, console, given=given)):
        if ready.steps:
            console.note(f"{ready.model.name} is counted after its steps: {', '.join(ready.steps)}")
        costs += costs_of_cases(ready.model, cases_of(ready, number, loaded))
    return tuple(costs)


def costs_of_cases(model: PreparedModel, cases: tuple[Case, ...]) -> list[ModelCost]:
    """Return the cost of each case of a model; cases of the same shapes are counted once, for the first of them.

    Raises `ModelError`.
    """
    by_shapes: dict[tuple[tuple[int, ...], ...], Case] = {}
    for case in cases:
        by_shapes.setdefault(input_shapes(model.facts, case), case)
    names = [info.name for info in model.facts.inputs]
    return [
        cost_of(
            model.path,
            CostRequest(shapes=dict(zip(names, shapes, strict=True)), case=case.name),
            name=model.name,
            where=f"model '{model.name}', case '{case.name}'",
        )
        for shapes, case in by_shapes.items()
    ]
