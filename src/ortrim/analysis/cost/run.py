"""`cost`: what one inference of a model takes, for a model's file or for the cases of a buildspec's models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ortrim.analysis.cost.graph import CostRequest, cost_of, open_dimensions
from ortrim.analysis.cost.memory import ModelCost
from ortrim.base.cache import cache_folder
from ortrim.base.console import Console
from ortrim.buildspec.buildspec import CaseSpec, ModelSpec, RuntimeSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import nearest
from ortrim.errors import ModelError, OperatorsError, ToolError, UsageError, VerifyError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.named import files_named
from ortrim.models.prepare import FACTS_LAYOUT, prepare
from ortrim.parity.inputs import Case, input_shapes
from ortrim.parity.reference import cases_made
from ortrim.pins.runtime import NEWEST, exact_version, runtime_pins
from ortrim.planning.models import found_for
from ortrim.planning.preparing import cases_of, ready_models
from ortrim.planning.request import Request, is_buildspec, load


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


@dataclass(frozen=True, kw_only=True)
class CostsAsked:
    """How models are counted: with these sizes of open dimensions, or in the user's own cases, or in those found.

    `ort_version` is the version in which cases are found. A model with steps is counted after them, or as `given`.
    """

    dimensions: Mapping[str, int]
    cases: tuple[CaseSpec, ...] = ()
    ort_version: str | None = None
    given: bool = False


def costs_of(word: str, asked: CostsAsked, console: Console) -> tuple[ModelCost, ...]:
    """Return the costs of the models that a word names: of each case, or of the one run that its inputs allow.

    Cases whose inputs have the same shapes are counted once, for the first of them. Raises as `files_named` does,
    `ModelError`, or what reading a buildspec, its models' steps and making cases raises.
    """
    if is_buildspec(Path(word)):
        return _costs_of_buildspec(Path(word), asked, console)
    found: list[ModelCost] = []
    for name, file in files_named(word, exact_version(NEWEST)):
        own = _cases(name, file, asked, console)
        request = CostRequest(dimensions=asked.dimensions)
        found += costs_of_cases(*own, name=name) if own else [cost_of(file, request, name=name, where=name)]
    return tuple(found)


def _cases(name: str, file: Path, asked: CostsAsked, console: Console) -> tuple[PreparedModel, tuple[Case, ...]] | None:
    """Return a model with its cases: the user's own, or else those found if it leaves sizes open and none is given.

    None where there are none: it is then counted as far as that goes.
    """
    if not asked.cases and (asked.dimensions or not open_dimensions(file, name)):
        return None
    version = asked.ort_version or RuntimeSpec().version
    spec, root = ModelSpec(name=name_from(file) or "model", path=file, cases=asked.cases), cache_folder("models")

    def runtime() -> FullRuntime:
        pins = runtime_pins(version)
        return full_runtime(pins.version, pins.converter_requirements)

    try:
        model = prepare(spec, base=Path(), root=root / FACTS_LAYOUT, ort_version=version, where=name)
        if not asked.cases:
            spec = replace(spec, cases=found_for(model, runtime(), console).cases)
    except (ModelError, OperatorsError, ToolError, VerifyError) as error:
        if asked.cases or error.code == "not-onnx":
            raise
        console.warn(f"no sizes were found for {name} ({error.what}): give --dim or --case")
        return None
    return model, cases_made(model, spec, Path(), runtime)


def _costs_of_buildspec(path: Path, asked: CostsAsked, console: Console) -> tuple[ModelCost, ...]:
    loaded = load(Request(spec=path, version=asked.ort_version))
    costs: list[ModelCost] = []
    for number, ready in enumerate(ready_models(loaded, console, given=asked.given)):
        if ready.steps:
            console.note(f"{ready.model.name} is counted after its steps: {', '.join(ready.steps)}")
        costs += costs_of_cases(ready.model, cases_of(ready, number, loaded))
    return tuple(costs)


def costs_of_cases(model: PreparedModel, cases: tuple[Case, ...], *, name: str = "") -> list[ModelCost]:
    """Return the cost of each case of a model; cases of the same shapes are counted once, for the first of them.

    It is shown by `name`, or else by its own.

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
            name=name or model.name,
            where=f"model '{model.name}', case '{case.name}'",
        )
        for shapes, case in by_shapes.items()
    ]
