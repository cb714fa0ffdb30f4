"""Outputs of a model between its steps, compared with the original's under the names that these have there."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ortrim.base.files import sha256_of, storage_errors
from ortrim.buildspec.step_specs import StepChoices
from ortrim.buildspec.tolerances import Tolerance
from ortrim.errors import ModelError, ParityError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import PreparedModel, TensorInfo
from ortrim.parity.compare import compare
from ortrim.parity.inputs import STRING, Case, load_array, numpy_type, save_array, shape_text
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.parity.runner import SavedOutput
from ortrim.pins.runtime import limits_of
from ortrim.steps.report import CaseLeft, ModelCounts

if TYPE_CHECKING:
    import onnx

    from ortrim.steps.step import Stepped

Feeds = Mapping[str, NDArray[Any]]
SUFFIXES: Final = (".npy", ".strings")


def read_feeds(case: Case, inputs: tuple[TensorInfo, ...]) -> Feeds:
    """Return a case's arrays by the names of the inputs."""
    stems = (case.folder / f"input_{index:03}" for index in range(len(inputs)))
    files = [stem.with_suffix(suffix) for stem in stems for suffix in SUFFIXES if stem.with_suffix(suffix).is_file()]
    return {info.name: load_array(file) for info, file in zip(inputs, files, strict=True)}


def write_feeds(name: str, feeds: Feeds, inputs: tuple[TensorInfo, ...], folder: Path) -> Case:
    """Write arrays in the order of the inputs; return the case, whose folder lies below `folder`."""
    place = folder / name
    with storage_errors(place):
        place.mkdir(parents=True)
        files = [save_array(place, f"input_{index:03}", feeds[info.name]) for index, info in enumerate(inputs)]
        listing = "\n".join(f"{file.name} {sha256_of(file)}" for file in files)
    return Case(name=name, folder=place, digest=hashlib.sha256(listing.encode()).hexdigest())


def fitting(
    cases: Mapping[str, Feeds], inputs: tuple[TensorInfo, ...]
) -> tuple[dict[str, Feeds], tuple[CaseLeft, ...]]:
    """Split cases into those that a model takes and those that it does not, with the reason."""
    reasons = {name: _misfit(feeds, inputs) for name, feeds in cases.items()}
    kept = {name: feeds for name, feeds in cases.items() if not reasons[name]}
    return kept, tuple(CaseLeft(case=name, reason=reason) for name, reason in reasons.items() if reason)


def _misfit(feeds: Feeds, inputs: tuple[TensorInfo, ...]) -> str:
    """Return why the arrays are not what the inputs take; empty when they are."""
    for info in inputs:
        if info.name not in feeds:
            return f"there is nothing for the input '{info.name}'"
        array = feeds[info.name]
        if array.dtype != numpy_type(info.element_type):
            return f"the input '{info.name}' is {array.dtype}, and the model takes {info.element_type}"
        if info.shape is not None and not _fits(array.shape, info.shape):
            return f"the input '{info.name}' is {list(array.shape)}, and the model takes {shape_text(info.shape)}"
    return ""


def _fits(given: tuple[int, ...], wanted: tuple[int | str | None, ...]) -> bool:
    pairs = zip(given, wanted, strict=False)
    return len(given) == len(wanted) and all(size == taken for size, taken in pairs if isinstance(taken, int))


FLOATS: Final = ("float16", "float32", "float64")
"""Types that a step may put in each other's place."""


@dataclass(frozen=True, kw_only=True)
class StepRuns:
    """Runs models on cases in the full runtime, optimizations off; what they need and leave lies below `folder`."""

    runtime: FullRuntime
    folder: Path

    def outputs(self, model: PreparedModel, cases: Mapping[str, Feeds], name: str) -> SavedOutputs:
        """Return the outputs of all cases; `name` is of files, another for each call. Raises `VerifyError`."""
        inputs = model.facts.inputs
        written = tuple(write_feeds(case, feeds, inputs, self.folder / name) for case, feeds in cases.items())
        return reference_outputs(model, written, self.runtime, self.folder / f"{name}-outputs")


def root_of(output: str) -> str:
    """Return the output of the model that a saved one is of, or is an element, the keys or the values of."""
    return output.removesuffix(".keys").removesuffix(".values").partition("[")[0]


def compared(
    model: str,
    reference: SavedOutputs,
    ours: SavedOutputs,
    names: Mapping[str, str],
    tolerances: Mapping[Any, Tolerance],
) -> tuple[OutputParity, ...]:
    """Compare the outputs that are left, under the reference's `names` by ours; cases that ours lack are left out."""
    cases = {case.name for case in ours.cases}
    looked_at = set(names.values())
    theirs = tuple(
        replace(case, outputs=tuple(each for each in case.outputs if looked_at & {each.name, root_of(each.name)}))
        for case in reference.cases
        if case.name in cases
    )
    types = {(case.name, each.name): each.element_type for case in theirs for each in case.outputs}
    mine = tuple(_renamed(case, names, types, ours.folder) for case in ours.cases)
    return compare(model, replace(reference, cases=theirs), replace(ours, cases=mine), tolerances, same_library=True)


def _renamed(
    case: CaseOutputs, names: Mapping[str, str], types: Mapping[tuple[str, str], str], folder: Path
) -> CaseOutputs:
    outputs = []
    for output in case.outputs:
        root = root_of(output.name)
        name = names.get(output.name) or names.get(root, root) + output.name.removeprefix(root)
        renamed = replace(output, name=name)
        wanted = types.get((case.name, renamed.name), output.element_type)
        outputs.append(_widened(renamed, wanted, folder / case.name))
    return replace(case, outputs=tuple(outputs))


def _widened(output: SavedOutput, wanted: str, folder: Path) -> SavedOutput:
    """Return a float output in another width, written anew, where that is what it is to be compared in."""
    if output.file is None or output.element_type == wanted or not {output.element_type, wanted} <= set(FLOATS):
        return output
    array = load_array(folder / output.file).astype(wanted)
    with storage_errors(folder):
        save_array(folder, Path(output.file).stem, array)
    return replace(output, element_type=wanted)


def arrays_of(outputs: SavedOutputs, case: str) -> dict[str, NDArray[Any]]:
    """Return a case's outputs that were saved, by name."""
    found = next(each for each in outputs.cases if each.name == case)
    return {each.name: load_array(outputs.folder / case / each.file) for each in found.outputs if each.file}


def joined(first: SavedOutputs, second: SavedOutputs, prefix: str, folder: Path) -> SavedOutputs:
    """Return the outputs of both, as far as the second has the case, those of the second with a prefix to their names.

    They lie in `folder`, which is made.
    """
    others = {case.name: case for case in second.cases}
    cases = []
    for case in (each for each in first.cases if each.name in others):
        mine = _copied(case, first.folder, folder, "")
        appended = _copied(others[case.name], second.folder, folder, "appended_")
        outputs = (*mine, *(replace(each, name=prefix + each.name) for each in appended))
        cases.append(CaseOutputs(name=case.name, outputs=outputs))
    return SavedOutputs(folder=folder, cases=tuple(cases), quantized=first.quantized)


def _copied(case: CaseOutputs, source: Path, destination: Path, stem: str) -> tuple[SavedOutput, ...]:
    with storage_errors(destination):
        (destination / case.name).mkdir(parents=True, exist_ok=True)
        for output in case.outputs:
            if output.file:
                content = (source / case.name / output.file).read_bytes()
                (destination / case.name / f"{stem}{output.file}").write_bytes(content)
    return tuple(replace(each, file=f"{stem}{each.file}" if each.file else None) for each in case.outputs)


MODEL_FILE: Final = "model.onnx"


@dataclass(frozen=True, kw_only=True)
class State:
    """A model between two steps.

    `reference` are the outputs that it is compared with, and `names` says under which name of them each of its outputs
    is found. `cases` are the feeds of the cases that it still takes.
    """

    model: PreparedModel
    counts: ModelCounts
    cases: Mapping[str, Feeds]
    reference: SavedOutputs
    names: Mapping[str, str]
    tolerances: Mapping[Any, Tolerance]


@dataclass(frozen=True, kw_only=True)
class StepStage:
    """A step to be done: its number from 1, its choices, where paths start, and what runs models."""

    number: int
    choices: StepChoices
    base: Path
    runs: StepRuns

    @property
    def folder(self) -> Path:
        """A folder of the step's own."""
        return self.runs.folder / f"step-{self.number}"


def checked(
    model: "onnx.ModelProto", name: str, folder: Path, runs: StepRuns, where: str
) -> tuple[PreparedModel, ModelCounts]:
    """Write a model and check it as one that a user gives."""
    from ortrim.models.onnx_files import least_ir_version  # noqa: PLC0415
    from ortrim.models.prepare import check_model  # noqa: PLC0415
    from ortrim.steps.report import counts_of  # noqa: PLC0415
    from ortrim.steps.step import save  # noqa: PLC0415

    path, version = folder / MODEL_FILE, runs.runtime.version
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    limits = limits_of(version)
    if limits and least_ir_version(model) <= limits.ir_version < model.ir_version:
        model.ir_version = limits.ir_version
    save(model, path, where)
    size = path.stat().st_size
    facts, _ = check_model(path, sha256=sha256_of(path), size_bytes=size, ort_version=version, where=where)
    return PreparedModel(name=name, path=path, facts=facts), counts_of(model, facts)


def reference_for(
    state: State, stepped: "Stepped", stage: StepStage, where: str
) -> tuple[SavedOutputs, dict[str, Feeds]]:
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
        return {name: np.asarray(array, order="C") for name, array in change(feeds).items()}
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        what, why = "the inputs of a case cannot be changed as the step does it", f"{type(error).__name__}: {error}"
        raise ModelError("step-failed", what, where=where, why=why, hint="leave the step out") from error


def _with_appended(state: State, stepped: "Stepped", reference: SavedOutputs, stage: StepStage) -> SavedOutputs:
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
    # The outputs to compare with may be those of the model just before the step, with its names.
    own = stepped.observed is not None or (stepped.feeding is not None and stepped.feeding.back is not None)
    old = {} if own else state.names
    sources = {info.name: stepped.outputs.get(info.name, info.name) for info in model.facts.outputs}
    return {new: old.get(source, source) for new, source in sources.items()}


EXACT_COSINE: Final = 0.9999
"""The cosine similarity that outputs have by default at the least."""


def require_parity(parity: tuple[OutputParity, ...], where: str) -> None:
    """Raise `ParityError` (`step-breaks-parity`) with the worst output, unless all are within tolerance."""
    failed = [each for each in parity if each.verdict is Verdict.FAIL]
    if not failed:
        return
    worst = max(failed, key=lambda each: each.max_absolute)
    what = f"output '{worst.output}' of case '{worst.case}' is no longer that of the original"
    numbers = f"largest difference {worst.max_absolute:.3g} (relative {worst.max_relative:.3g})"
    why = f"{worst.reason}\n{numbers}\n{len(failed)} of {len(parity)} outputs differ"
    allowed = tolerances_for(worst)
    hint = "leave the step out, or give it optional = true"
    hint += f"; or allow the difference from here on: {allowed}" if allowed else ""
    raise ParityError("step-breaks-parity", what, where=where, why=why, hint=hint)


def tolerances_for(worst: OutputParity) -> str:
    """Return the key of a buildspec that would let an output pass; empty where no bound makes sense.

    Texts and truth values are equal or not; what fails without a difference has another shape, or no number.
    """
    if worst.element_type in {STRING, "bool"} or worst.max_absolute == 0:
        return ""
    bounds = [f"absolute = {worst.max_absolute * 1.25:.2g}"]
    if worst.rms is not None and worst.rms > (worst.rms_allowed or 0):
        bounds.append(f"rms = {worst.rms * 1.25:.2g}")
    if worst.cosine is not None and worst.cosine < EXACT_COSINE:
        bounds.append(f"cosine = {math.floor(worst.cosine * 1000) / 1000 - 0.001:.3f}")
    return f"tolerances = {{ {worst.element_type} = {{ {', '.join(bounds)} }} }}"
