"""The outputs that a model is held against after a step, its feeds, and which output is which."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ortrim.core.models import PreparedModel
from ortrim.errors import ModelError
from ortrim.pipeline.steps.cases import Feeds, as_feeds
from ortrim.pipeline.steps.parity import arrays_of, joined
from ortrim.pipeline.steps.state import Stage, State, checked
from ortrim.verify.reference import SavedOutputs

if TYPE_CHECKING:
    from ortrim.steps.stepped import Stepped


def reference_for(state: State, stepped: "Stepped", stage: Stage, where: str) -> tuple[SavedOutputs, dict[str, Feeds]]:
    """Return the outputs to hold the new model against, and all feeds for it."""
    number, runs = stage.number, stage.runs
    reference, arrays = state.reference, {name: dict(feeds) for name, feeds in state.cases.items()}
    if stepped.observed is not None:
        observed, _ = checked(stepped.observed, state.model.name, stage.folder / "observed", runs, where)
        reference = runs.outputs(observed, state.cases, f"{number}-observed")
        arrays = {case: {**feeds, **arrays_of(reference, case)} for case, feeds in arrays.items()}
    feeding = stepped.feeding
    new = {case: _fed(feeding.forward, feeds, where) if feeding else feeds for case, feeds in arrays.items()}
    if feeding and feeding.back:
        old = {case: {**arrays[case], **_fed(feeding.back, feeds, where)} for case, feeds in new.items()}
        reference = runs.outputs(state.model, old, f"{number}-before")
    if stepped.appended is not None:
        reference = _with_appended(state, stepped, reference, stage)
    return reference, new


def _fed(change: Callable[[Feeds], Feeds], feeds: Feeds, where: str) -> Feeds:
    """Change feeds; they are of the user's model and cases, which may not be what the step takes them for."""
    try:
        return as_feeds(change(feeds))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        what, why = "the inputs of a case cannot be changed as the step does it", f"{type(error).__name__}: {error}"
        raise ModelError("step-failed", what, where=where, why=why, hint="leave the step out") from error


def _with_appended(state: State, stepped: "Stepped", reference: SavedOutputs, stage: Stage) -> SavedOutputs:
    """Add the outputs of a model that is fed with the reference's."""
    appended = stepped.appended
    assert appended is not None
    name = state.model.name
    model, _ = checked(appended.model, name, stage.folder / "appended", stage.runs, f"the model appended to '{name}'")
    sources = {given: state.names.get(source, source) for given, source in appended.connect.items()}
    feeds = {case.name: arrays_of(reference, case.name) for case in reference.cases}
    cases = {case: {given: feeds[case][source] for given, source in sources.items()} for case in feeds}
    outputs = stage.runs.outputs(model, cases, f"{stage.number}-appended")
    return joined(reference, outputs, appended.prefix, stage.folder / "joined")


def names_for(state: State, stepped: "Stepped", model: PreparedModel) -> dict[str, str]:
    """Return under which names of the reference's outputs the new model's are found."""
    old = {} if _is_own_reference(stepped) else state.names
    sources = {info.name: stepped.outputs.get(info.name, info.name) for info in model.facts.outputs}
    return {new: old.get(source, source) for new, source in sources.items()}


def _is_own_reference(stepped: "Stepped") -> bool:
    """Whether the outputs to hold against are those of the model just before the step, with its names."""
    return stepped.observed is not None or (stepped.feeding is not None and stepped.feeding.back is not None)
