"""`cost`: what one inference of a model takes, for a model's file or for the cases of a buildspec's models."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.model_cost import ModelCost
from ortrim.core.models import PreparedModel
from ortrim.errors import ModelError, UsageError
from ortrim.models.costs import Asked, cost_of, open_dimensions
from ortrim.pipeline.converted import Request, load, prepared_models
from ortrim.storage.cache import cache_folder
from ortrim.verify.arrays import load_array
from ortrim.verify.cases import Case, make_cases

BUILDSPEC: Final = ".toml"


def costs_of(path: Path, dimensions: Mapping[str, int], console: Console) -> tuple[ModelCost, ...]:
    """Return the cost of a model for the sizes given, or that of each case of each model of a buildspec.

    Cases whose inputs have the same shapes are counted once, for the first of them. Raises `UsageError`
    (`bad-option`), `ModelError`, or what reading a buildspec and making its cases raises.
    """
    if path.suffix == BUILDSPEC:
        if dimensions:
            hint = "the buildspec's cases say the sizes; or give a model's file"
            raise UsageError("bad-option", "does not go with a buildspec", where="--dim", hint=hint)
        return _costs_of_buildspec(path, console)
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", hint="check the path")
    _check_names(dimensions, open_dimensions(path, str(path)))
    return (cost_of(path, Asked(dimensions=dimensions), name=path.name, where=str(path)),)


def _costs_of_buildspec(path: Path, console: Console) -> tuple[ModelCost, ...]:
    loaded = load(Request(spec=path))
    costs: list[ModelCost] = []
    root = cache_folder("cases")
    for model, spec in zip(prepared_models(loaded, console), loaded.spec.models, strict=True):
        cases = make_cases(model, spec, loaded.file.parent, root)
        costs += costs_of_cases(model, cases)
    return tuple(costs)


def costs_of_cases(model: PreparedModel, cases: tuple[Case, ...]) -> list[ModelCost]:
    """Return the cost of each case of a model; cases of the same shapes are counted once, for the first of them.

    Raises `ModelError`.
    """
    by_shapes: dict[tuple[tuple[int, ...], ...], Case] = {}
    for case in cases:
        by_shapes.setdefault(_shapes(model, case), case)
    names = [info.name for info in model.facts.inputs]
    return [
        cost_of(
            model.path,
            Asked(shapes=dict(zip(names, shapes, strict=True)), case=case.name),
            name=model.name,
            where=f"model '{model.name}', case '{case.name}'",
        )
        for shapes, case in by_shapes.items()
    ]


def _shapes(model: PreparedModel, case: Case) -> tuple[tuple[int, ...], ...]:
    files = sorted(case.folder.glob("input_*"))[: len(model.facts.inputs)]
    return tuple(tuple(load_array(file).shape) for file in files)


def _check_names(dimensions: Mapping[str, int], known: tuple[str, ...]) -> None:
    for name in dimensions:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the model leaves open: {', '.join(known) or 'none'}"
            raise UsageError("bad-option", f"the model leaves no dimension {name!r} open", where="--dim", hint=hint)
