"""`cost`: what one inference of a model takes, for a model's file or for the cases of a buildspec's models."""

from collections.abc import Mapping
from pathlib import Path

from ortrim.base.console import Console
from ortrim.cost.graph import CostRequest, cost_of, open_dimensions
from ortrim.cost.memory import ModelCost
from ortrim.models.models import PreparedModel
from ortrim.pipeline.preparing import cases_of, ready_models
from ortrim.pipeline.request import Request, check_sizes, is_buildspec, load, refuse_sizes, require_model
from ortrim.verify.cases import Case, input_shapes


def costs_of(
    path: Path, dimensions: Mapping[str, int], console: Console, *, given: bool = False
) -> tuple[ModelCost, ...]:
    """Return the cost of a model for the sizes given, or that of each case of each model of a buildspec.

    A model with steps is counted after them, or as `given`. Cases whose inputs have the same shapes are counted once,
    for the first of them. Raises `UsageError` (`bad-option`), `ModelError`, or what reading a buildspec, its models'
    steps and making its cases raises.
    """
    if is_buildspec(path):
        refuse_sizes(dimensions)
        return _costs_of_buildspec(path, console, given=given)
    require_model(path)
    check_sizes(dimensions, open_dimensions(path, str(path)))
    return (cost_of(path, CostRequest(dimensions=dimensions), name=path.name, where=str(path)),)


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
