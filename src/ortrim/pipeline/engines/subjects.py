"""What is compared in several engines: models with their cases, their reference outputs, and the trimmed runtime."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ortrim.bench.engine_answers import CannotRun, shortened
from ortrim.bench.engine_runs import Described, Job
from ortrim.console import Console
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.buildspec_choices import session_of
from ortrim.core.model_spec import ModelSpec
from ortrim.core.models import PreparedModel
from ortrim.core.sessions import SessionSettings, settings_of
from ortrim.errors import Diagnostic
from ortrim.executors.results import finished_build, result_of
from ortrim.pipeline.converted import Models, Request, converted_models, load
from ortrim.pipeline.models.choosing import require_known
from ortrim.pipeline.models.files import is_buildspec, refuse_sizes, spec_of_model
from ortrim.pipeline.models.ready import ReadyModel, cases_of
from ortrim.pipeline.planned import make_planned
from ortrim.storage.cache import cache_folder
from ortrim.storage.records import is_kept
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.arrays import STRING, load_array
from ortrim.verify.cases import Case
from ortrim.verify.reference import SavedOutputs, reference_outputs


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One model, after its steps, with its cases and what the full runtime without optimizations answers."""

    prepared: PreparedModel
    spec: ModelSpec
    cases: tuple[Case, ...]
    reference: SavedOutputs


@dataclass(frozen=True, kw_only=True)
class Trimmed:
    """A finished build for this machine: its library, and each model by name as converted, with its settings."""

    library: Path
    models: Mapping[str, tuple[Path, SessionSettings]] = field(default_factory=dict)


def loaded_of(request: Request, dimensions: Mapping[str, int]) -> LoadedSpec:
    """Return the buildspec, or one made of a model's file. Raises as `spec_of_model`, `refuse_sizes` and `load` do."""
    if not is_buildspec(request.spec):
        return spec_of_model(request.spec, dimensions)
    refuse_sizes(dimensions)
    return load(request)


def subject_of(
    loaded: LoadedSpec, number: int, ready: ReadyModel, runtime: FullRuntime, wanted: tuple[str, ...]
) -> Subject:
    """Return one model with the `wanted` cases, all without any. Raises as making cases and running them does."""
    cases = tuple(case for case in cases_of(ready, number, loaded) if not wanted or case.name in wanted)
    reference = reference_outputs(ready.model, cases, runtime, cache_folder("references"))
    return Subject(prepared=ready.model, spec=loaded.spec.models[number], cases=cases, reference=reference)


def check_names(loaded: LoadedSpec, models: tuple[str, ...], cases: tuple[str, ...]) -> None:
    """Refuse names of models and cases that the buildspec does not have.

    Raises `UsageError` (`no-such-model`, `no-such-case`).
    """
    require_known("no-such-model", "--only", models, [model.name for model in loaded.spec.models])
    known = [case.name for model in loaded.spec.models for case in model.cases] or ["default"]
    require_known("no-such-case", "--case", cases, list(dict.fromkeys(known)))


def job_of(subject: Subject, case: Case, trimmed: Trimmed | None = None) -> Job | CannotRun:
    """Return a case as an engine gets it; with `trimmed`, as the trimmed runtime does."""
    facts = subject.prepared.facts
    files = tuple(sorted(case.folder.glob("input_*")))
    if any(file.suffix != ".npy" for file in files) or len(files) != len(facts.inputs):
        return CannotRun(stage="start", reason="inputs of text, or that are not given, are not brought to the engines")
    if any(each.element_type in {STRING, "bfloat16"} or "(" in each.element_type for each in facts.outputs):
        return CannotRun(stage="start", reason="outputs of text, bfloat16, sequences and maps are not compared")
    arrays = tuple(load_array(file) for file in files)
    inputs = tuple(
        Described(name=info.name, shape=array.shape, element_type=array.dtype.name)
        for info, array in zip(facts.inputs, arrays, strict=True)
    )
    known = {
        each.name: each.shape for found in subject.reference.cases if found.name == case.name for each in found.outputs
    }
    outputs = tuple(
        Described(name=info.name, shape=known.get(info.name, ()), element_type=info.element_type)
        for info in facts.outputs
    )
    if trimmed is None:
        return Job(case=case.name, model=subject.prepared.path, files=files, inputs=inputs, outputs=outputs)
    model, session = trimmed.models[subject.prepared.name]
    return Job(
        case=case.name,
        model=model,
        files=files,
        inputs=inputs,
        outputs=outputs,
        library=trimmed.library,
        session=session,
    )


def trimmed_of(loaded: LoadedSpec, request: Request, library: Path | None, console: Console) -> Trimmed | CannotRun:
    """Return a trimmed library with the models for it: the one given, or the finished build for this machine.

    What stands in the way of converting the models or of planning is a reason, not an error.
    """
    try:
        if library is not None:
            return _with_models(library, converted_models(loaded, console))
        if not is_buildspec(request.spec):
            return CannotRun(stage="start", reason="a model's file has no build; name its buildspec, or --library")
        planned = make_planned(request, console)
    except Diagnostic as error:
        return CannotRun(stage="start", reason=shortened(f"{error.what} ({error.reference})"))
    (target, *_) = planned.plan.targets
    folder = finished_build(target.job)
    if not is_kept(folder):
        return CannotRun(stage="start", reason="it was not built for this machine: run invoke build")
    return _with_models(result_of(folder).library, planned.models)


def _with_models(library: Path, models: Models) -> Trimmed:
    spec = models.loaded.spec
    found = {}
    for converted, written in zip(models.converted, spec.models, strict=True):
        session = settings_of(session_of(spec, written), style=written.style, aligned=converted.aligned)
        found[converted.name] = (converted.path, session)
    return Trimmed(library=library, models=found)
