"""All steps of a model's preparation, done once: what they made is kept under all that it depends on."""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

import ortrim
from ortrim.core.model_spec import ModelSpec
from ortrim.core.models import ModelFacts, PreparedModel
from ortrim.core.serialization import from_json, to_canonical_json, to_json
from ortrim.core.step_choices import StepChoices
from ortrim.core.steps_report import PreparationReport, StepReport
from ortrim.errors import SpecError
from ortrim.models.copies import MODEL_FILE, keep, read_facts
from ortrim.pins.tools import step_requirements
from ortrim.pipeline.steps.cases import read_feeds, write_feeds
from ortrim.pipeline.steps.parity import Runs
from ortrim.pipeline.steps.start import first_state
from ortrim.pipeline.steps.state import Stage, State
from ortrim.pipeline.steps.stepping import take
from ortrim.pipeline.steps.words import step_files
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.storage.records import cached_folder
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.cases import Case

REPORT: Final = "steps.json"
CASES: Final = "cases"
PACKAGE: Final = Path(ortrim.__file__).parent
CODE: Final = ("steps/*.py", "pipeline/steps/*.py", "data/scripts/*.py", "core/*step*.py")
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

    Folders below `root` are named by what the result depends on; one that is there is not made again. Raises what
    `stepping.take` does at the first step that cannot be done, `SpecError` (`step-file-missing`) and what installing
    tools raises; nothing is left behind then.
    """
    folder = root / _digest(given)
    cached_folder(folder, lambda temporary: _fill(temporary, given, progress))
    return _read(folder, given.original)


def _fill(folder: Path, given: Ingredients, progress: Callable[[int, StepChoices], None]) -> None:
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder) as working:
        runs = Runs(runtime=given.runtime, folder=Path(working))
        feeds = {case.name: read_feeds(case, given.original.facts.inputs) for case in given.cases}
        first = state = first_state(given.original, feeds, given.spec.tolerances, runs, given.where)
        reports = []
        for number, choices in enumerate(given.spec.steps, start=1):
            progress(number, choices)
            state, report = take(state, Stage(number=number, choices=choices, base=given.base, runs=runs))
            reports.append(report)
        _keep(folder, given, first, state, tuple(reports))


def _keep(folder: Path, given: Ingredients, first: State, last: State, steps: tuple[StepReport, ...]) -> None:
    """Move what was made to where it stays."""
    inputs = last.model.facts.inputs
    cases = [write_feeds(name, feeds, inputs, folder / CASES) for name, feeds in last.cases.items()]
    with storage_errors(folder):
        (folder / MODEL_FILE).write_bytes(last.model.path.read_bytes())
        (folder / REPORT).write_text(to_json(_report(given, first, last, steps)))
    keep(_Kept(facts=last.model.facts, cases=tuple((case.name, case.digest) for case in cases)), folder)


def _report(given: Ingredients, first: State, last: State, steps: tuple[StepReport, ...]) -> PreparationReport:
    return PreparationReport(
        model=given.original.name,
        ort_version=given.runtime.version,
        original_sha256=given.original.facts.sha256,
        sha256=last.model.facts.sha256,
        original=first.counts,
        prepared=last.counts,
        steps=steps,
    )


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
    steps = [to_canonical_json(each) for each in spec.steps]
    paths = tuple(step_files(spec.steps))
    files = [f"{path} {sha256_of(_present(given.base / path, given.where))}" for path in paths]
    cases = [f"{case.name} {case.digest}" for case in given.cases]
    versions = [given.runtime.version, installed_version("onnx"), *map(step_requirements, ("onnxslim", "onnxsim"))]
    code = [f"{path.name} {sha256_of(path)}" for pattern in CODE for path in sorted(PACKAGE.glob(pattern))]
    parts = [given.original.facts.sha256, to_canonical_json(spec.tolerances), *steps, *files, *cases, *versions, *code]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _present(path: Path, where: str) -> Path:
    if not path.is_file():
        hint = "paths are relative to the buildspec's folder"
        raise SpecError("step-file-missing", f"'{path}' is not a file", where=where, hint=hint)
    return path
