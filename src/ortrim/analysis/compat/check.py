"""`check-compat`: would models run on a runtime that users have, and what is the least that makes them."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import onnx
from onnx import version_converter

from ortrim.analysis.compat.answer import (
    DEFAULT_CONVERSION,
    CompatibilityAnswer,
    Judgement,
    ModelAnswer,
    buildspec_lines,
    conversion_words,
    in_doubt,
    judge,
    missing_lines,
    smallest_change,
    written,
)
from ortrim.analysis.compat.installed import InstalledRuntime, read_runtime
from ortrim.base.cache import cache_folder
from ortrim.base.console import Console, first_lines
from ortrim.base.files import storage_errors
from ortrim.buildspec.buildspec import IN_PLACE, ModelSpec
from ortrim.buildspec.load import name_from
from ortrim.errors import ConvertError, Diagnostic, ExitCode, ModelError, OperatorsError, ToolError, UsageError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.kernels import kernel_versions, load_refusal, loads_in_place
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import OLDEST_OPSET
from ortrim.models.operators import ModelUses, OperatorId, parse_config, uses_of
from ortrim.models.ort_format import IDENTIFIER, read_uses
from ortrim.models.prepare import FACTS_LAYOUT, prepare
from ortrim.pins.runtime import limits_of, runtime_pins


class Trials:
    """Converts models as a build of one runtime would, and holds them against it."""

    def __init__(self, installed: InstalledRuntime) -> None:
        self.installed = installed

    @cached_property
    def full(self) -> FullRuntime:
        """The full runtime of the same version."""
        pins = runtime_pins(self.installed.ort_version)
        return full_runtime(pins.version, pins.converter_requirements)

    @property
    def usual(self) -> Conversion:
        """How the runtime's own models are converted."""
        return next(iter(self.installed.conversions), DEFAULT_CONVERSION)

    def prepare(self, path: Path) -> PreparedModel:
        """Return our own copy of a model."""
        root, version = cache_folder("models") / FACTS_LAYOUT, self.installed.ort_version
        spec = ModelSpec(name=name_from(path) or "model", path=Path(path.name))
        return prepare(spec, base=path.parent, root=root, ort_version=version, where=str(path))

    def convert(self, model: PreparedModel, conversion: Conversion) -> OrtModel:
        """Return a model, so converted."""
        return convert(model, conversion, runtime=self.full, root=cache_folder("conversions"))

    def uses(self, converted: OrtModel) -> ModelUses:
        """Return what a model requires of a runtime."""
        uses = read_uses(converted.path)
        return _with_saved(uses, converted) if uses.saved and self.installed.extended is not False else uses

    def loading(self, path: Path) -> tuple[str, bool]:
        """Return why the full runtime does not load a model in ORT format, empty if it does; and whether in place."""
        folder = cache_folder("conversions")
        in_place = loads_in_place(path, runtime=self.full, folder=folder)
        return "" if in_place else load_refusal(path, runtime=self.full, folder=folder), in_place

    def judge(self, model: ModelUses, *, converted: bool = True) -> Judgement:
        """Compare a model in ORT format with the runtime, one that `convert` made unless said otherwise."""
        doubt = {(each.domain, each.name) for each in in_doubt(self.installed, model)}
        kernels = kernel_versions(doubt, runtime=self.full, folder=cache_folder("conversions")) if doubt else {}
        return judge(self.installed, model, kernels, converted=converted)


def _with_saved(uses: ModelUses, converted: OrtModel) -> ModelUses:
    """Add what the saved optimizations make, with types: the converter's configuration has both, applied and not."""
    listed = uses_of(parse_config(converted.config, f"required operators of {converted.name}"))
    return replace(uses, uses=tuple(sorted({use: use for use in (*listed, *uses.uses)}.values())), saved=())


def is_ort(path: Path) -> bool:
    """Whether a file is in ORT format already."""
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", where="--model", hint="check the path")
    with storage_errors(path), path.open("rb") as file:
        return file.read(8)[4:] == IDENTIFIER


LARGEST_BYTES: Final = 1 << 30
"""A protobuf message has 2 GB at most, and both models are in memory."""


def at_opset(model: Path, opset: int, destination: Path) -> bool:
    """Write a model converted to another opset of `ai.onnx`; False when ONNX's converter cannot do it."""
    try:
        converted = version_converter.convert_version(onnx.load(model), opset)
    except Exception:  # noqa: BLE001 - it raises RuntimeError and its own kinds for whatever it has no adapter for
        return False
    if converted.ByteSize() > LARGEST_BYTES:
        return False
    destination.write_bytes(converted.SerializeToString())
    return True


def since_versions(names: Iterable[str], opset: int) -> dict[str, int] | None:
    """Return the opset since which each operator of `ai.onnx` is as it is in `opset`; None when one is not in it."""
    try:
        return {name: onnx.defs.get_schema(name, opset, "").since_version for name in names}
    except onnx.defs.SchemaError:
        return None


LEVELS: Final = (DEFAULT_CONVERSION, Conversion(level="basic"), Conversion(level="disable"))
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


def remedies_for_refused(trials: Trials, path: Path, refusal: Diagnostic) -> Iterator[str]:
    """Yield what makes a model fit whose opset is too new for the runtime's ONNX Runtime."""
    limits = limits_of(trials.installed.ort_version)
    if limits is None or refusal.code != "unsupported-opset":
        return
    with _folder() as folder:
        changed = Path(folder) / "model.onnx"
        if at_opset(path, limits.opset, changed) and _fits_as_file(trials, changed):
            yield f"export it with opset {limits.opset} of ai.onnx"


def _opset_remedies(trials: Trials, model: PreparedModel, judgement: Judgement) -> Iterator[str]:

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
    limits = limits_of(trials.installed.ort_version)
    if judgement.obstacles or wrong or not own or limits is None:
        return []
    others = (opset for opset in range(OLDEST_OPSET, limits.opset + 1) if opset != own)
    fitting = [opset for opset in others if _has_all(trials, names, opset)]
    return sorted(fitting, key=lambda opset: (abs(opset - own), opset))


def _has_all(trials: Trials, names: set[str], opset: int) -> bool:

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


def _fits(trials: Trials, model: PreparedModel, conversion: Conversion) -> bool:
    """Whether a model fits when it is so converted; a conversion that fails is no remedy."""
    try:
        return trials.judge(trials.uses(trials.convert(model, conversion))).fits
    except (ConvertError, ModelError, OperatorsError):
        return False


def _folder() -> tempfile.TemporaryDirectory[str]:
    with storage_errors(cache_folder("conversions")):
        return tempfile.TemporaryDirectory(dir=cache_folder("conversions"))


MOST_LINES: Final = 12


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """A model's answer, and what it was found out from; None when the model could not be converted."""

    path: Path
    answer: ModelAnswer
    found: tuple[ModelUses, Judgement] | None = None


def check_compatibility(
    runtime: Path, models: Sequence[Path], console: Console, *, ort_version: str | None = None
) -> CompatibilityAnswer:
    """Return what a runtime makes of models; a model in ONNX format is converted as the runtime's own were."""
    if not models:
        raise UsageError("no-model", "there is no model to check", hint="name one with --model")
    ready = [(path, is_ort(path)) for path in models]
    trials = Trials(read_runtime(runtime, ort_version))
    checked = [_check_ort(trials, path) if ort else _check_onnx(trials, path, console) for path, ort in ready]
    return _answer(trials, checked)


def failure_of(answer: CompatibilityAnswer) -> Diagnostic | None:
    """Return the diagnostic with which the command ends; None when all models fit.

    The code is that of the one cause for which all commands refuse a model, if it is that.
    """
    unfit = [model for model in answer.models if not model.fits]
    if not unfit:
        return None
    lines = [f"{model.model}: {line}" for model in unfit for line in missing_lines(model)]
    codes = {model.code for model in unfit}
    failure = OperatorsError(
        (codes.pop() if len(codes) == 1 else "") or "model-does-not-fit",
        f"{len(unfit)} of {len(answer.models)} models would not run on it",
        where=f"{answer.runtime}, ONNX Runtime {answer.ort_version}",
        why=first_lines(lines, MOST_LINES),
        hint=_hint(answer, unfit),
    )
    failure.exit_code = ExitCode(max(model.exit_code or ExitCode.OPERATORS for model in unfit))
    return failure


def _hint(answer: CompatibilityAnswer, unfit: list[ModelAnswer]) -> str:
    if all(model.remedies for model in unfit):
        return f"without a new runtime: {unfit[0].remedies[0]}"
    change = answer.change or answer.replacement
    if change:
        return "ship a runtime with the smallest change named above"
    return "change the model as it says" if any(model.code for model in unfit) else "ship another model"


def _check_ort(trials: Trials, path: Path) -> _Checked:
    uses = read_uses(path)
    judgement, in_place = trials.judge(uses, converted=False), True
    if judgement.fits:
        try:
            refusal, in_place = trials.loading(path)
        except ToolError as error:
            unknown = f"whether ONNX Runtime {trials.installed.ort_version} loads it: {error.what}"
            judgement = replace(judgement, unknowns=(*judgement.unknowns, unknown))
        else:
            obstacles = (f"the full runtime does not load it: {refusal.splitlines()[0]}",) if refusal else ()
            judgement = replace(judgement, obstacles=obstacles)
    answer = _model_answer(path, judgement, (), reads_in_place=in_place)
    return _Checked(path=path, answer=answer, found=(uses, judgement))


def _check_onnx(trials: Trials, path: Path, console: Console) -> _Checked:
    with console.step(f"convert {path.name}"):
        try:
            prepared = trials.prepare(path)
            converted = trials.convert(prepared, trials.usual)
        except (ConvertError, ModelError, OperatorsError) as refusal:
            tried = tuple(remedies_for_refused(trials, path, refusal))
            return _Checked(path=path, answer=_refused(path, refusal, tried))
        uses = trials.uses(converted)
        judgement = trials.judge(uses)
    found: tuple[str, ...] = ()
    if not judgement.fits:
        with console.step(f"try other conversions of {path.name}"):
            found = tuple(remedies(trials, prepared, judgement))
    conversion, in_place = conversion_words(trials.usual), converted.reads_in_place
    answer = _model_answer(path, judgement, found, conversion, reads_in_place=in_place)
    return _Checked(path=path, answer=answer, found=(uses, judgement))


def _refused(path: Path, refusal: Diagnostic, tried: tuple[str, ...]) -> ModelAnswer:
    return ModelAnswer(
        model=str(path),
        fits=False,
        obstacles=("; ".join(filter(None, (refusal.what, *refusal.why.strip().splitlines()[:1], refusal.hint))),),
        remedies=tried,
        code=refusal.code,
        exit_code=int(refusal.exit_code),
    )


COPIED: Final = (
    f"load it without {IN_PLACE[0]}, as its session.json does: sparse or misaligned weights cannot stay in place"
)


def _model_answer(
    path: Path, judgement: Judgement, tried: tuple[str, ...], conversion: str = "", *, reads_in_place: bool
) -> ModelAnswer:
    return ModelAnswer(
        model=str(path),
        fits=judgement.fits,
        conversion=conversion,
        operators=judgement.operators,
        obstacles=judgement.obstacles,
        conditions=() if reads_in_place else (COPIED,),
        unknowns=judgement.unknowns,
        remedies=tried,
    )


def _answer(trials: Trials, checked: list[_Checked]) -> CompatibilityAnswer:
    runtime: InstalledRuntime = trials.installed
    change = smallest_change(runtime, [each.found for each in checked if each.found])
    appended, replacement = written(runtime, change)
    lines = [
        buildspec_lines(name_from(each.path) or "model", each.path, trials.usual)
        for each in checked
        if each.answer.conversion and not each.answer.fits
    ]
    return CompatibilityAnswer(
        runtime=runtime.label,
        ort_version=runtime.ort_version,
        targets=runtime.targets,
        fits=all(each.answer.fits for each in checked),
        models=tuple(each.answer for each in checked),
        change=appended,
        replacement=replacement,
        buildspec="\n".join(lines) if change else "",
    )
