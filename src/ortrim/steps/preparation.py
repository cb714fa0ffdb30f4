"""All steps of a model's preparation, done once: what they made is kept under all that it depends on."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ortrim.base.cache import cached_folder
from ortrim.base.files import PACKAGE, code_digest, sha256_of, storage_errors
from ortrim.base.json import from_json, to_canonical_json, to_data, to_json
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.buildspec.step_specs import Batch, FixDimensions, StepChoices
from ortrim.errors import ConvertError, ModelError, ParityError, SpecError, VerifyError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import ModelFacts, PreparedModel, TensorInfo
from ortrim.models.prepare import FACTS_LAYOUT, MODEL_FILE, keep, read_facts
from ortrim.parity.inputs import DEFAULT_CASES, Case
from ortrim.pins.shipped import step_requirements
from ortrim.steps import parity as step_parity
from ortrim.steps.parity import Feeds, State, StepRuns, StepStage, checked
from ortrim.steps.report import PreparationReport, StepReport

if TYPE_CHECKING:
    from ortrim.steps.step import Stepped


def first_state(
    original: PreparedModel, cases: Mapping[str, Feeds], tolerances: Mapping[Any, Any], runs: StepRuns, where: str
) -> State:
    """Return the original in one file, its cases, and its outputs. Raises `VerifyError` and `ModelError`."""
    from ortrim.models.prepare import with_own_data  # noqa: PLC0415 - onnx takes a third of a second to import

    own = with_own_data(original.path, where)
    model, counts = checked(own, original.name, runs.folder / "original", runs, where)
    return State(
        model=model,
        counts=counts,
        cases=cases,
        reference=runs.outputs(model, cases, "original-run"),
        names={info.name: info.name for info in original.facts.outputs},
        tolerances=tolerances,
    )


def step_name(number: int, choices: StepChoices) -> str:
    """Return a step as diagnostics name it: `step 2 (opset)`."""
    return f"step {number} ({use_of(choices)})"


def use_of(choices: StepChoices) -> str:
    """Return the step's kind."""
    return str(getattr(choices, "use", ""))


def options_text(choices: StepChoices) -> str:
    """Return the keys that were given otherwise than by default, other than `use`: `version = 17`."""
    plain, given = to_data(choices), dict[str, Any]()
    for field in fields(choices):
        value = getattr(choices, field.name)
        is_given = bool(value) if isinstance(value, dict | tuple) else value != field.default
        if is_given and field.name != "use":
            given[field.name] = plain[field.name]
    return ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())


def step_files(steps: Iterable[StepChoices]) -> Iterator[Path]:
    """Yield the files that steps name, as written."""
    for choices in steps:
        for field in fields(choices):
            value = getattr(choices, field.name)
            yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Path))


OF_THE_MODEL: Final = (ModelError, ConvertError, VerifyError, ParityError)
"""Diagnostics for which an optional step is left out; others, such as a full disk, are nothing of the step's."""


def take(state: State, stage: StepStage) -> tuple[State, StepReport]:
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
        return state, _stepping_report(state, state, stage, reason=why)


def _taken(state: State, stage: StepStage) -> tuple[State, StepReport]:
    where = f"model '{state.model.name}', {step_name(stage.number, stage.choices)}"
    stepped = _stepped(state, stage, where)
    before = replace(state, tolerances={**state.tolerances, **stage.choices.tolerances})
    model, counts = checked(stepped.model, before.model.name, stage.folder, stage.runs, where)
    reference, feeds = step_parity.reference_for(before, stepped, stage, where)
    cases, left = step_parity.fitting(feeds, model.facts.inputs)
    if feeds and not cases:
        what = "the model no longer accepts any of its cases, so that it cannot be checked"
        why = "\n".join(f"case '{each.case}': {each.reason}" for each in left)
        raise ModelError("no-case-left", what, where=where, why=why, hint="add a case that fits the prepared model")
    names = step_parity.names_for(before, stepped, model)
    after = replace(before, model=model, counts=counts, cases=cases, reference=reference, names=names)
    try:
        outputs = stage.runs.outputs(model, cases, f"{stage.number}-after")
    except (ModelError, VerifyError) as error:
        what = "the full runtime cannot run the model that the step made"
        hint = "leave the step out, or give it optional = true"
        raise ModelError("step-breaks-model", what, where=where, why=error.why or error.what, hint=hint) from error
    parity = step_parity.compared(model.name, reference, outputs, names, after.tolerances)
    step_parity.require_parity(parity, where)
    return after, _stepping_report(state, after, stage, notes=stepped.notes, cases_left=left, parity=parity)


def _stepped(state: State, stage: StepStage, where: str) -> "Stepped":
    from ortrim.models.onnx_files import read_onnx  # noqa: PLC0415 - onnx takes a third of a second to import
    from ortrim.steps.step import Workplace  # noqa: PLC0415
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


def _stepping_report(before: State, after: State, stage: StepStage, *, reason: str = "", **found: Any) -> StepReport:
    same = before.model.facts.sha256 == after.model.facts.sha256
    return StepReport(
        number=stage.number,
        use=use_of(stage.choices),
        options=options_text(stage.choices),
        outcome="left out" if reason else "unchanged" if same else "changed",
        reason=reason,
        before=before.counts,
        after=after.counts,
        **found,
    )


REPORT: Final = "steps.json"
CASES: Final = "cases"
CODE: Final = ("steps/*.py", "resources/scripts/*.py", "buildspec/step_specs.py")
"""Our own modules that a result depends on."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """A model after its steps: `original` is as given, `cases` are those that the model still takes, for it."""

    original: PreparedModel
    model: PreparedModel
    cases: tuple[Case, ...]
    report: PreparationReport

    @property
    def steps_done(self) -> tuple[str, ...]:
        """The steps that were not left out, as `opset (version = 17)`."""
        done = (step for step in self.report.steps if step.outcome != "left out")
        return tuple(f"{step.use} ({step.options})" if step.options else step.use for step in done)


@dataclass(frozen=True, kw_only=True)
class Ingredients:
    """What a preparation starts from; paths in `spec` start at `base`, `where` is its place in the buildspec."""

    original: PreparedModel
    cases: tuple[Case, ...]
    spec: ModelSpec
    base: Path
    runtime: FullRuntime
    where: str


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """What is kept beside a prepared model: its facts, and its cases with the digests of what they are for."""

    facts: ModelFacts
    cases: tuple[tuple[str, str], ...]


def prepare_by_steps(
    given: Ingredients, root: Path, progress: Callable[[int, StepChoices], None] = lambda *_: None
) -> Preparation:
    """Do the model's steps, one after the other, each followed by a check of parity with the original.

    Folders below `root` are named by what the result depends on; one that is there is not made again.
    """
    folder = root / _digest(given)
    cached_folder(folder, lambda temporary: _fill(temporary, given, progress))
    return _read(folder, given.original)


def _fill(folder: Path, given: Ingredients, progress: Callable[[int, StepChoices], None]) -> None:
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder) as working:
        runs = StepRuns(runtime=given.runtime, folder=Path(working))
        feeds = {case.name: step_parity.read_feeds(case, given.original.facts.inputs) for case in given.cases}
        first = state = first_state(given.original, feeds, given.spec.tolerances, runs, given.where)
        reports = []
        for number, choices in enumerate(given.spec.steps, start=1):
            progress(number, choices)
            state, report = take(state, StepStage(number=number, choices=choices, base=given.base, runs=runs))
            reports.append(report)
        _keep(folder, given, first, state, tuple(reports))


def _keep(folder: Path, given: Ingredients, first: State, last: State, steps: tuple[StepReport, ...]) -> None:
    inputs = last.model.facts.inputs
    cases = [step_parity.write_feeds(name, feeds, inputs, folder / CASES) for name, feeds in last.cases.items()]
    with storage_errors(folder):
        (folder / MODEL_FILE).write_bytes(last.model.path.read_bytes())
        report = PreparationReport(
            model=given.original.name,
            ort_version=given.runtime.version,
            original_sha256=given.original.facts.sha256,
            sha256=last.model.facts.sha256,
            original=first.counts,
            prepared=last.counts,
            steps=steps,
        )
        (folder / REPORT).write_text(to_json(report), encoding="utf-8", newline="\n")
    keep(_Kept(facts=last.model.facts, cases=tuple((case.name, case.digest) for case in cases)), folder)


def _read(folder: Path, original: PreparedModel) -> Preparation:
    kept = read_facts(folder, _Kept)
    report = from_json(PreparationReport, (folder / REPORT).read_bytes())
    return Preparation(
        original=original,
        model=PreparedModel(name=original.name, path=folder / MODEL_FILE, facts=kept.facts),
        cases=tuple(Case(name=name, folder=folder / CASES / name, digest=digest) for name, digest in kept.cases),
        report=replace(report, model=original.name),
    )


def _digest(given: Ingredients) -> str:
    """Digest all that a result depends on."""
    spec = given.spec
    parts = [FACTS_LAYOUT, given.original.facts.sha256, to_canonical_json(spec.tolerances)]
    parts += map(to_canonical_json, spec.steps)
    parts += (f"{path} {sha256_of(_present(given.base / path, given.where))}" for path in step_files(spec.steps))
    parts += (f"{case.name} {case.digest}" for case in given.cases)
    parts += (given.runtime.version, installed_version("onnx"), *map(step_requirements, ("onnxslim", "onnxsim")))
    parts.append(code_digest(path for pattern in CODE for path in PACKAGE.glob(pattern)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _present(path: Path, where: str) -> Path:
    if not path.is_file():
        hint = "paths are relative to the buildspec's folder"
        raise SpecError("step-file-missing", f"'{path}' is not a file", where=where, hint=hint)
    return path


def with_default_case(spec: ModelSpec, original: PreparedModel) -> ModelSpec:
    """Return a model's spec whose default case, where it has no cases, has the sizes that its steps fix.

    Sizes of dimensions that a step before gave another name are not found.
    """
    inputs = original.facts.inputs
    sizes = _sizes(spec, inputs)
    fixed = {info.name: InputSpec(shape=shape) for info in inputs if (shape := _shape(info, sizes))}
    if spec.cases or not fixed:
        return spec
    return replace(spec, cases=(CaseSpec(name=DEFAULT_CASES[0].name, inputs=fixed),))


def _sizes(spec: ModelSpec, inputs: tuple[TensorInfo, ...]) -> dict[str, int]:
    """Return fixed sizes by the dimension's name, or `INPUT:AXIS`."""
    sizes: dict[str, int] = {}
    for step in spec.steps:
        if isinstance(step, FixDimensions):
            sizes |= step.sizes
        elif isinstance(step, Batch) and isinstance(step.size, int):
            sizes |= {f"{info.name}:0": step.size for info in inputs}
    return sizes


def _shape(info: TensorInfo, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the shape that the sizes give an input, None when they say nothing of it."""
    found = [
        size if isinstance(size, int) else sizes.get(f"{info.name}:{axis}", sizes.get(size or ""))
        for axis, size in enumerate(info.shape or ())
    ]
    is_told = any(
        isinstance(size, int) != isinstance(was, int) for size, was in zip(found, info.shape or (), strict=True)
    )
    return tuple(1 if size is None else size for size in found) if is_told else None
