"""`check-compat`: would models run on a runtime that users have, and what is the least that makes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.advise.answer import Answer, ModelAnswer, buildspec_lines, conversion_words, missing_lines
from ortrim.advise.compatibility import Judgement
from ortrim.advise.installed import InstalledRuntime
from ortrim.advise.smallest_change import smallest_change
from ortrim.console import Console
from ortrim.core.operator_config import render_config
from ortrim.core.operator_uses import ModelUses
from ortrim.errors import Diagnostic, ModelError, OperatorsError, UsageError
from ortrim.models.ort_uses import read_uses
from ortrim.pipeline.compatibility.installed_runtime import read_runtime
from ortrim.pipeline.compatibility.remedies import remedies, remedies_for_refused
from ortrim.pipeline.compatibility.trials import Trials, is_ort, model_name

TOO_NEW: Final = ("unsupported-opset", "unsupported-ir-version")
MOST_LINES: Final = 12


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """A model's answer, and what it was found out from; None when the model could not be converted."""

    path: Path
    answer: ModelAnswer
    found: tuple[ModelUses, Judgement] | None = None


def check_compatibility(
    runtime: Path, models: Sequence[Path], console: Console, *, ort_version: str | None = None
) -> Answer:
    """Return what a runtime makes of models; a model in ONNX format is converted as the runtime's own were.

    Raises `UsageError` (`no-model`), what `read_runtime` raises, `ModelError` for a model that cannot be read at all,
    and `ConvertError` for one that cannot be converted for another reason than an operator.
    """
    if not models:
        raise UsageError("no-model", "there is no model to check", hint="name one with --model")
    ready = [(path, is_ort(path)) for path in models]
    trials = Trials(read_runtime(runtime, ort_version))
    checked = [_check_ort(trials, path) if ort else _check_onnx(trials, path, console) for path, ort in ready]
    return _answer(trials, checked)


def failure_of(answer: Answer) -> Diagnostic | None:
    """Return the diagnostic with which the command ends; None when all models fit."""
    unfit = [model for model in answer.models if not model.fits]
    if not unfit:
        return None
    lines = [f"{model.model}: {line}" for model in unfit for line in missing_lines(model)]
    rest = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return OperatorsError(
        "model-does-not-fit",
        f"{len(unfit)} of {len(answer.models)} models would not run on it",
        where=f"{answer.runtime}, ONNX Runtime {answer.ort_version}",
        why="\n".join((*lines[:MOST_LINES], *rest)),
        hint=_hint(answer, unfit),
    )


def _hint(answer: Answer, unfit: list[ModelAnswer]) -> str:
    if all(model.remedies for model in unfit):
        return f"without a new runtime: {unfit[0].remedies[0]}"
    return "ship a runtime with the smallest change named above" if answer.change else "ship another model"


def _check_ort(trials: Trials, path: Path) -> _Checked:
    uses = read_uses(path)
    judgement = trials.judge(uses)
    return _Checked(path=path, answer=_model_answer(path, judgement, ()), found=(uses, judgement))


def _check_onnx(trials: Trials, path: Path, console: Console) -> _Checked:
    with console.step(f"convert {path.name}"):
        try:
            prepared = trials.prepare(path)
            uses = trials.convert(prepared, trials.usual)
        except ModelError as refusal:
            if refusal.reference not in TOO_NEW:
                raise
            tried = tuple(remedies_for_refused(trials, path, refusal))
            return _Checked(path=path, answer=_refused(path, refusal, tried))
        except OperatorsError as refusal:
            return _Checked(path=path, answer=_refused(path, refusal, ()))
        judgement = trials.judge(uses)
    found: tuple[str, ...] = ()
    if not judgement.fits:
        with console.step(f"try other conversions of {path.name}"):
            found = tuple(remedies(trials, prepared, judgement))
    answer = _model_answer(path, judgement, found, conversion_words(trials.usual))
    return _Checked(path=path, answer=answer, found=(uses, judgement))


def _refused(path: Path, refusal: Diagnostic, tried: tuple[str, ...]) -> ModelAnswer:
    return ModelAnswer(model=str(path), fits=False, obstacles=(f"{refusal.what}; {refusal.hint}",), remedies=tried)


def _model_answer(path: Path, judgement: Judgement, tried: tuple[str, ...], conversion: str = "") -> ModelAnswer:
    return ModelAnswer(
        model=str(path),
        fits=judgement.fits,
        conversion=conversion,
        operators=judgement.operators,
        obstacles=judgement.obstacles,
        unknowns=judgement.unknowns,
        remedies=tried,
    )


def _answer(trials: Trials, checked: list[_Checked]) -> Answer:
    runtime: InstalledRuntime = trials.installed
    change = smallest_change(runtime, [each.found for each in checked if each.found])
    lines = [
        buildspec_lines(model_name(each.path), each.path, trials.usual)
        for each in checked
        if each.answer.conversion and not each.answer.fits
    ]
    return Answer(
        runtime=runtime.label,
        ort_version=runtime.ort_version,
        targets=runtime.targets,
        fits=all(each.answer.fits for each in checked),
        models=tuple(each.answer for each in checked),
        change=render_config(change) if change else "",
        buildspec="\n".join(lines) if change else "",
    )
