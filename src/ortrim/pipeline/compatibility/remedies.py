"""What makes a model fit a runtime without a new runtime: tried, never guessed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ortrim.advise.answer import conversion_words
from ortrim.advise.compatibility import Judgement
from ortrim.core.models import PreparedModel
from ortrim.core.operators import OperatorId
from ortrim.errors import ConvertError, ModelError, OperatorsError
from ortrim.models.limits import OLDEST_OPSET
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.compatibility.trials import Trials
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors

LEVELS: Final = (("fixed", "extended"), ("fixed", "basic"), ("fixed", "disable"))
MOST_OPSETS: Final = 2
"""Opsets that are tried: the nearest that could do."""


def remedies(trials: Trials, model: PreparedModel, judgement: Judgement) -> Iterator[str]:
    """Yield what makes a model fit that does not: another conversion, or else an older or newer opset."""
    others = dict.fromkeys((*trials.installed.conversions, *LEVELS))
    others.pop(trials.usual, None)
    found = False
    for conversion in others:
        if _fits(trials, model, conversion):
            found = True
            yield f"convert it with {conversion_words(conversion)}"
    if not found:
        yield from _opset_remedies(trials, model, judgement)


def remedies_for_refused(trials: Trials, path: Path, refusal: ModelError) -> Iterator[str]:
    """Yield what makes a model fit whose opset or IR version is too new for the runtime's ONNX Runtime."""
    from ortrim.models.rewriting import at_ir_version, at_opset  # noqa: PLC0415 - imports onnx

    pins = runtime_pins(trials.installed.ort_version)
    with _folder() as folder:
        changed = Path(folder) / "model.onnx"
        if refusal.reference == "unsupported-ir-version":
            written, words = at_ir_version(path, pins.max_ir_version, changed), f"IR version {pins.max_ir_version}"
        else:
            written, words = at_opset(path, pins.max_opset, changed), f"opset {pins.max_opset} of ai.onnx"
        if written and _fits_as_file(trials, changed):
            yield f"export it with {words}"


def _opset_remedies(trials: Trials, model: PreparedModel, judgement: Judgement) -> Iterator[str]:
    from ortrim.models.rewriting import at_opset  # noqa: PLC0415 - imports onnx

    for opset in _candidates(trials, model, judgement)[:MOST_OPSETS]:
        with _folder() as folder:
            changed = Path(folder) / "model.onnx"
            if at_opset(model.path, opset, changed) and _fits_as_file(trials, changed):
                yield f"export it with opset {opset} of ai.onnx"
                return


def _candidates(trials: Trials, model: PreparedModel, judgement: Judgement) -> list[int]:
    """Return the opsets, nearest first, in which every operator of ONNX's own is as the runtime has it."""
    own = dict(model.facts.opsets).get("ai.onnx", 0)
    names = {each.operator.name for each in judgement.operators if each.operator.domain == "ai.onnx"}
    wrong = any(each.missing in {"operator", "type"} for each in judgement.missing)
    if judgement.obstacles or wrong or not own:
        return []
    newest = runtime_pins(trials.installed.ort_version).max_opset
    fitting = [opset for opset in range(OLDEST_OPSET, newest + 1) if opset != own and _has_all(trials, names, opset)]
    return sorted(fitting, key=lambda opset: (abs(opset - own), opset))


def _has_all(trials: Trials, names: set[str], opset: int) -> bool:
    from ortrim.models.rewriting import since_versions  # noqa: PLC0415 - imports onnx

    versions = since_versions(names, opset)
    return versions is not None and all(
        trials.installed.has(OperatorId(domain="ai.onnx", opset=since, name=name), {})
        for name, since in versions.items()
    )


def _fits_as_file(trials: Trials, path: Path) -> bool:
    try:
        model = trials.prepare(path)
    except ModelError:
        return False
    return _fits(trials, model, trials.usual)


def _fits(trials: Trials, model: PreparedModel, conversion: tuple[str, str]) -> bool:
    """Whether a model fits when it is so converted; a conversion that fails is no remedy."""
    try:
        return trials.judge(trials.convert(model, conversion)).fits
    except (ConvertError, OperatorsError):
        return False


def _folder() -> tempfile.TemporaryDirectory[str]:
    with storage_errors(cache_folder("conversions")):
        return tempfile.TemporaryDirectory(dir=cache_folder("conversions"))
