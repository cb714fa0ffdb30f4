"""One step of a model's preparation: done, checked, and held against the original."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.core.measurements import OutputParity
from ortrim.core.step_choices import StepChoices
from ortrim.core.steps_report import CaseLeft, StepReport
from ortrim.errors import ConvertError, ModelError, ParityError, VerifyError
from ortrim.pipeline.steps.cases import fitting
from ortrim.pipeline.steps.parity import compared
from ortrim.pipeline.steps.reference import names_for, reference_for
from ortrim.pipeline.steps.state import Stage, State, checked
from ortrim.pipeline.steps.verdict import no_case_left, require_parity
from ortrim.pipeline.steps.words import options_text, step_name, use_of
from ortrim.storage.files import storage_errors
from ortrim.verify.reference import SavedOutputs

if TYPE_CHECKING:
    from ortrim.steps.stepped import Stepped

OF_THE_MODEL: Final = (ModelError, ConvertError, VerifyError, ParityError)
"""Diagnostics for which an optional step is left out; others, such as a full disk, are nothing of the step's."""


def take(state: State, stage: Stage) -> tuple[State, StepReport]:
    """Do a step; return the model after it and what was done.

    A step that cannot be done, or that breaks parity, ends with a diagnostic, `ModelError`, `ConvertError`,
    `VerifyError` or `ParityError` (`step-breaks-parity`); an optional one is left out instead.
    """
    try:
        return _taken(state, stage)
    except OF_THE_MODEL as error:
        if not stage.choices.optional:
            raise
        why = f"{error.what}: {error.why}" if error.why else error.what
        return state, _report(state, state, stage, reason=why)


def _taken(state: State, stage: Stage) -> tuple[State, StepReport]:
    where = f"model '{state.model.name}', {step_name(stage.number, stage.choices)}"
    stepped = _stepped(state, stage, where)
    before = _with_tolerances(state, stage.choices)
    model, counts = checked(stepped.model, before.model.name, stage.folder, stage.runs, where)
    reference, feeds = reference_for(before, stepped, stage, where)
    cases, left = fitting(feeds, model.facts.inputs)
    if feeds and not cases:
        raise no_case_left(left, where)
    names = names_for(before, stepped, model)
    after = replace(before, model=model, counts=counts, cases=cases, reference=reference, names=names)
    outputs = _outputs(after, stage, where)
    parity = compared(model.name, reference, outputs, names, after.tolerances)
    require_parity(parity, where)
    return after, _report(state, after, stage, notes=stepped.notes, left=left, parity=parity)


def _stepped(state: State, stage: Stage, where: str) -> "Stepped":
    from ortrim.models.onnx_reading import read_onnx  # noqa: PLC0415 - onnx takes a third of a second to import
    from ortrim.steps.stepped import Workplace  # noqa: PLC0415
    from ortrim.steps.table import take_step  # noqa: PLC0415

    model = read_onnx(state.model.path, where)
    with storage_errors(stage.folder):
        stage.folder.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(dir=stage.folder))
    place = Workplace(runtime=stage.runs.runtime, folder=own, base=stage.base, where=where, cases=state.cases)
    try:
        return take_step(model, stage.choices, place)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _outputs(state: State, stage: Stage, where: str) -> SavedOutputs:
    """Run the model that a step made. Raises `ModelError` (`step-breaks-model`)."""
    try:
        return stage.runs.outputs(state.model, state.cases, f"{stage.number}-after")
    except VerifyError as error:
        what = "the full runtime does not run the model that the step made"
        hint = "leave the step out, or give it optional = true"
        raise ModelError("step-breaks-model", what, where=where, why=error.why or error.what, hint=hint) from error


def _with_tolerances(state: State, choices: StepChoices) -> State:
    return replace(state, tolerances={**state.tolerances, **choices.tolerances})


def _report(
    before: State,
    after: State,
    stage: Stage,
    *,
    reason: str = "",
    notes: tuple[str, ...] = (),
    left: tuple[CaseLeft, ...] = (),
    parity: tuple[OutputParity, ...] = (),
) -> StepReport:
    same = before.model.facts.sha256 == after.model.facts.sha256
    return StepReport(
        number=stage.number,
        use=use_of(stage.choices),
        options=options_text(stage.choices),
        outcome="left out" if reason else "unchanged" if same else "changed",
        reason=reason,
        before=before.counts,
        after=after.counts,
        notes=notes,
        cases_left=left,
        parity=parity,
    )
