"""`compare`: the same models and cases in several inference engines, in turn."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, is_kept
from ortrim.base.console import Console
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import to_json
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.bench import engines
from ortrim.bench.engine_processes import (
    OTHERS,
    Attempt,
    CannotRun,
    Driver,
    EngineEnvironment,
    EngineJob,
    EngineRun,
    rows_of,
    shortened,
)
from ortrim.buildspec.buildspec import LoadedSpec, ModelSpec, SessionSettings, session_of, settings_of
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.devices.host import Host
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.models.full_runtime import DISTRIBUTION, FullRuntime, full_runtime
from ortrim.models.models import PreparedModel, TensorInfo
from ortrim.parity.compare import compare
from ortrim.parity.inputs import STRING, Case, input_shapes, load_array
from ortrim.parity.measurements import OutputParity, Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs, reference_outputs
from ortrim.parity.runner import DEFAULT_REPETITION, Repetition, SavedOutput
from ortrim.pins.runtime import runtime_pins
from ortrim.planning.models import Models, ReadyModel, cases_of, converted_models, ready_models
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request, load, require_known
from ortrim.verify.measure import alone


def place_of(engine: engines.Engine, runtime: FullRuntime, library: Path | None) -> EngineEnvironment | CannotRun:
    """Return where an engine is, or why it cannot be had; that the disk is full or the index away is one reason more.

    The full runtime is there already; the trimmed one is a `library` that is opened in the full runtime's Python.
    """
    if not engine.package:
        libraries = runtime.packages / DISTRIBUTION if engine.name == engines.ONNXRUNTIME else library
        assert libraries is not None
        return EngineEnvironment(
            engine=engine,
            words=runtime.words,
            environment=runtime.environment,
            packages=runtime.packages,
            libraries=libraries,
        )
    try:
        converter = _installed(engine, engine.converter) if engine.converter else None
        return _installed(engine, engine.package, converter)
    except Diagnostic as error:
        why = error.why.splitlines()[-1:] or [""]
        return CannotRun(stage="install", reason=shortened(f"{error.what} ({error.code}). {why[0]}".strip()))


def _installed(engine: engines.Engine, name: str, converter: EngineEnvironment | None = None) -> EngineEnvironment:
    packages = packages_folder(f"engine-{name}", engines.engine_requirements(name))
    return EngineEnvironment(
        engine=engine,
        words=ISOLATED_PYTHON,
        environment=environment_with(packages),
        packages=packages,
        libraries=packages,
        converter=converter,
    )


def installed_bytes(place: EngineEnvironment) -> int:
    """Return the bytes of all native libraries of an engine, whether a run opens them or not."""
    if place.libraries.is_file():
        return place.libraries.stat().st_size
    files = (file for file in place.libraries.rglob("*.so*") if file.is_file() and not file.is_symlink())
    parts = ((file, file.relative_to(place.libraries).parts[0].partition(".")[0]) for file in files)
    return sum(file.stat().st_size for file, package in parts if package not in OTHERS)


@dataclass(frozen=True, kw_only=True)
class ComparedModel:
    """One model, after its steps, with its cases and what the full runtime without optimizations answers."""

    prepared: PreparedModel
    spec: ModelSpec
    cases: tuple[Case, ...]
    reference: SavedOutputs


Trimmed = tuple[Path, Mapping[str, tuple[Path, SessionSettings]]]
"""A finished build for this machine: its library, and each model by name as converted, with its settings."""


def subject_of(
    loaded: LoadedSpec, number: int, ready: ReadyModel, runtime: FullRuntime, wanted: tuple[str, ...]
) -> ComparedModel:
    """Return one model with the `wanted` cases, all without any."""
    cases = tuple(case for case in cases_of(ready, number, loaded) if not wanted or case.name in wanted)
    reference = reference_outputs(ready.model, cases, runtime, cache_folder("references"))
    return ComparedModel(prepared=ready.model, spec=loaded.models[number], cases=cases, reference=reference)


def check_names(loaded: LoadedSpec, models: tuple[str, ...], cases: tuple[str, ...]) -> None:
    """Refuse names of models and cases that the buildspec does not have."""
    require_known("no-such-model", "--only", models, [model.name for model in loaded.models])
    known = [case.name for model in loaded.models for case in model.cases] or ["default"]
    require_known("no-such-case", "--case", cases, list(dict.fromkeys(known)))


def job_of(subject: ComparedModel, case: Case, trimmed: Trimmed | None = None) -> EngineJob | CannotRun:
    """Return a case as an engine gets it; with `trimmed`, as the trimmed runtime does."""
    facts = subject.prepared.facts
    files = tuple(sorted(case.folder.glob("input_*")))
    if any(file.suffix != ".npy" for file in files) or len(files) != len(facts.inputs):
        return CannotRun(stage="start", reason="text inputs, and inputs that are left out, are not supported")
    if any(each.element_type in {STRING, "bfloat16"} or "(" in each.element_type for each in facts.outputs):
        return CannotRun(stage="start", reason="outputs of text, bfloat16, sequences and maps are not compared")
    arrays = tuple(load_array(file) for file in files)
    inputs = tuple(
        TensorInfo(name=info.name, shape=array.shape, element_type=array.dtype.name)
        for info, array in zip(facts.inputs, arrays, strict=True)
    )
    known = {
        each.name: each.shape for found in subject.reference.cases if found.name == case.name for each in found.outputs
    }
    outputs = tuple(
        TensorInfo(name=info.name, shape=known.get(info.name, ()), element_type=info.element_type)
        for info in facts.outputs
    )
    job = EngineJob(case=case.name, model=subject.prepared.path, files=files, inputs=inputs, outputs=outputs)
    if trimmed is None:
        return job
    library, models = trimmed
    model, session = models[subject.prepared.name]
    return replace(job, model=model, library=library, session=session)


def trimmed_of(loaded: LoadedSpec, request: Request, library: Path | None, console: Console) -> Trimmed | CannotRun:
    """Return a trimmed library with the models for it: the one given, or the finished build for this machine.

    What stands in the way of converting the models or of planning is a reason, not an error.
    """
    try:
        if library is not None:
            # One made elsewhere may have another NCHWc block size, with which outputs are wrong.
            return _with_models(library, converted_models(loaded, console))
        planned = planned_for(request, console)
    except Diagnostic as error:
        return CannotRun(stage="start", reason=shortened(f"{error.what} ({error.code})"))
    (target, *_) = planned.plan.targets
    folder = finished_build(target.job)
    if not is_kept(folder):
        return CannotRun(stage="start", reason="it was not built for this machine: run invoke build")
    return _with_models(result_of(folder).library, planned.models, target.job.provider_names)


def _with_models(library: Path, models: Models, providers: tuple[str, ...] = ()) -> Trimmed:
    spec = models.loaded
    found = {}
    for converted, written in zip(models.converted, spec.models, strict=True):
        session = settings_of(session_of(spec, written), style=written.style, reads_in_place=converted.reads_in_place)
        found[converted.name] = (converted.path, replace(session, providers=providers))
    return library, found


OnTurn = Callable[[float, str], None]
"""Told which share of a case is done, and what is being done."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all cases have in common: the engines, where each is, the trimmed runtime, and what runs them."""

    engines: tuple[engines.Engine, ...]
    places: Mapping[str, EngineEnvironment | CannotRun]
    trimmed: Trimmed | CannotRun | None
    driver: Driver
    rounds: int


Entrant = tuple[EngineEnvironment, EngineJob, Attempt]
"""One engine that takes part in one case: where it is, what it gets, and what came of it so far."""


def compared_case(
    subject: ComparedModel, case: Case, setting: Setting, tell: OnTurn
) -> tuple[engines.ComparedCase, dict[str, str]]:
    """Run one case in all engines; return it, and the version that each engine reports."""
    attempts = {engine.name: _entered(engine, subject, case, setting) for engine in setting.engines}
    _convert(attempts, setting, tell)
    for number in range(setting.rounds):
        for place, name in enumerate(_order(attempts, number)):
            entrant = attempts[name]
            if isinstance(entrant, tuple):
                share = (number + 1 + place / len(attempts)) / (setting.rounds + 1)
                tell(share, f"{entrant[0].engine.title}, round {number + 1} of {setting.rounds}")
                attempts[name] = _run(entrant, subject, case, setting.driver)
    done = [each[2] if isinstance(each, tuple) else each for each in attempts.values()]
    facts = subject.prepared.facts
    names = [info.name for info in facts.inputs]
    compared = engines.ComparedCase(
        model=subject.prepared.name,
        model_sha256=facts.sha256,
        case=case.name,
        shapes=tuple(zip(names, input_shapes(facts, case), strict=False)),
        rows=rows_of(done),
    )
    return compared, {attempt.engine: attempt.runs[0].version for attempt in done if attempt.runs}


def _entered(engine: engines.Engine, subject: ComparedModel, case: Case, setting: Setting) -> Entrant | Attempt:
    place = setting.places[engine.name]
    trimmed = setting.trimmed if engine.name == engines.TRIMMED and isinstance(setting.trimmed, tuple) else None
    job = place if isinstance(place, CannotRun) else job_of(subject, case, trimmed)
    if isinstance(place, CannotRun) or isinstance(job, CannotRun):
        return Attempt(engine=engine.name, failure=job if isinstance(job, CannotRun) else None)
    return place, job, Attempt(engine=engine.name)


def _convert(attempts: dict[str, Entrant | Attempt], setting: Setting, tell: OnTurn) -> None:
    """Have engines with a form of their own convert the model; one that cannot takes no part."""
    for number, (name, entrant) in enumerate(attempts.items()):
        if not isinstance(entrant, tuple) or not entrant[0].engine.converts:
            continue
        place, job, attempt = entrant
        tell(number / len(attempts) / (setting.rounds + 1), f"{place.engine.title} converts")
        found = setting.driver.convert(place, job)
        if isinstance(found, CannotRun):
            attempts[name] = replace(attempt, failure=found)
        else:
            attempts[name] = place, job, replace(attempt, convert_ms=found.convert_ms)


def _order(names: Iterable[str], number: int) -> tuple[str, ...]:
    """Return the engines in the order of a round, each of which begins one further down."""
    listed = tuple(names)
    shift = number % len(listed)
    return (*listed[shift:], *listed[:shift])


def _run(entrant: Entrant, subject: ComparedModel, case: Case, driver: Driver) -> Entrant | Attempt:
    place, job, attempt = entrant
    found = driver.run(place, job)
    if isinstance(found, CannotRun):
        return replace(attempt, failure=found)
    parity = attempt.parity or parity_of(found, driver.outputs(place), subject, case)
    return place, job, replace(attempt, runs=(*attempt.runs, found), parity=parity)


def parity_of(run: EngineRun, folder: Path, subject: ComparedModel, case: Case) -> engines.EngineParity:
    """Compare a run's outputs, in a folder of the case below `folder`, with the full runtime's; return the worst."""
    names = [info.name for info in subject.prepared.facts.outputs]
    if len(run.outputs) != len(names):
        reason = f"it has {len(run.outputs)} outputs, not {len(names)}"
        return engines.EngineParity(verdict=Verdict.FAIL, max_absolute=0.0, reason=reason)
    outputs = tuple(
        SavedOutput(name=name, element_type=each.element_type, shape=each.shape, file=each.file)
        for name, each in zip(names, run.outputs, strict=True)
    )
    ours = SavedOutputs(folder=folder, cases=(CaseOutputs(name=case.name, outputs=outputs),))
    theirs = tuple(each for each in subject.reference.cases if each.name == case.name)
    reference = replace(subject.reference, cases=theirs)
    try:
        return _worst(compare(subject.prepared.name, reference, ours, subject.spec.tolerances))
    except VerifyError as error:
        return engines.EngineParity(
            verdict=Verdict.FAIL, max_absolute=0.0, reason=shortened(f"{error.what}: {error.why}")
        )


def _worst(outputs: tuple[OutputParity, ...]) -> engines.EngineParity:
    failed = [output for output in outputs if output.verdict is Verdict.FAIL]
    judged = [output for output in outputs if output.verdict is not Verdict.NOT_JUDGED]
    verdict = Verdict.FAIL if failed else Verdict.PASS if judged else Verdict.NOT_JUDGED
    reasons = "; ".join(f"{output.output}: {output.reason}" for output in failed or outputs if output.reason)
    largest = max((output.max_absolute for output in outputs), default=0.0)
    return engines.EngineParity(verdict=verdict, max_absolute=largest, reason=shortened(reasons))


FOLDER: Final = "compare"
"""Where comparisons are written, in the folder of packages and reports."""
JSON_NAME: Final = "compare.json"
MARKDOWN_NAME: Final = "compare.md"
ROUNDS: Final = 5
"""How often each engine is run for each case, in a process of its own each time."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What is to be compared: a buildspec, and which of its models and cases, in which engines.

    Without any named, these are the usual engines and all models and cases. `library` is a trimmed one to take in
    place of the buildspec's finished build.
    """

    request: Request
    engines: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    rounds: int = ROUNDS
    threads: int = 1
    library: Path | None = None
    repetition: Repetition = DEFAULT_REPETITION


def compare_engines(compared: Compared, console: Console) -> engines.EngineComparison:
    """Run all cases in all engines. What an engine cannot do is a row that says why, and fails nothing."""
    chosen = engines.engines_named(compared.engines)
    loaded = load(compared.request)
    check_names(loaded, compared.models, compared.cases)
    pins = runtime_pins(loaded.onnxruntime.version)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    subjects = _subjects(compared, loaded, runtime, console)
    machine, load_average = Host(compared.request.cores).facts(), os.getloadavg()[0]
    with _working_folder() as folder:
        wanted = any(engine.name == engines.TRIMMED for engine in chosen)
        trimmed = trimmed_of(loaded, compared.request, compared.library, console) if wanted else None
        setting = Setting(
            engines=chosen,
            places=_places(chosen, runtime, trimmed, console),
            trimmed=trimmed,
            driver=Driver(folder=folder, threads=compared.threads, repetition=compared.repetition),
            rounds=compared.rounds,
        )
        with alone(console.note):
            cases, versions = _measured(subjects, setting, console)
    return engines.EngineComparison(
        name=loaded.name,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ortrim_version=installed_version("ortrim"),
        reference=f"ONNX Runtime {runtime.version}, optimizations off",
        machine=machine,
        load_average=load_average,
        threads=compared.threads,
        rounds=compared.rounds,
        engines=tuple(_facts(engine, setting.places[engine.name], versions) for engine in chosen),
        cases=cases,
    )


def write_comparison(comparison: engines.EngineComparison, output: Path) -> Path:
    """Write `compare.json` and `compare.md` below `output` and return their folder. Raises `StorageError`."""
    folder = output / FOLDER / comparison.name
    texts = {JSON_NAME: to_json(comparison), MARKDOWN_NAME: engines.engine_markdown(comparison)}
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return folder


@contextmanager
def _working_folder() -> Iterator[Path]:
    root = cache_folder("compare")
    with storage_errors(root), tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _subjects(
    compared: Compared, loaded: LoadedSpec, runtime: FullRuntime, console: Console
) -> tuple[ComparedModel, ...]:
    ready = ready_models(loaded, console)
    numbers = [n for n, each in enumerate(ready) if not compared.models or each.model.name in compared.models]
    with console.step("run the models without optimizations"):
        made = (subject_of(loaded, number, ready[number], runtime, compared.cases) for number in numbers)
        subjects = tuple(subject for subject in made if subject.cases)
    if not subjects:
        raise UsageError("no-such-case", "none of these models has such a case", where="--case", hint="leave one out")
    return subjects


def _places(
    chosen: tuple[engines.Engine, ...], runtime: FullRuntime, trimmed: Trimmed | CannotRun | None, console: Console
) -> dict[str, EngineEnvironment | CannotRun]:
    """Return where each engine is, after installing what is not there yet."""
    library = trimmed[0] if isinstance(trimmed, tuple) else None
    places: dict[str, EngineEnvironment | CannotRun] = {}
    with console.step("install the engines") as step:
        for number, engine in enumerate(chosen):
            step.progress(number, len(chosen), engine.title)
            absent = trimmed if engine.name == engines.TRIMMED and isinstance(trimmed, CannotRun) else None
            places[engine.name] = absent or place_of(engine, runtime, library)
    return places


def _measured(
    subjects: tuple[ComparedModel, ...], setting: Setting, console: Console
) -> tuple[tuple[engines.ComparedCase, ...], Mapping[str, str]]:
    """Return all cases, fewer when the user stopped it, and the version that each engine reports."""
    pairs = [(subject, case) for subject in subjects for case in subject.cases]
    cases: list[engines.ComparedCase] = []
    versions: dict[str, str] = {}
    with console.step("compare") as step:
        try:
            for number, (subject, case) in enumerate(pairs):

                def tell(done: float, text: str, number: int = number, name: str = case.name) -> None:
                    step.progress(number + done, len(pairs), f"{name}: {text}")

                found, told = compared_case(subject, case, setting, tell)
                cases.append(found)
                versions.update(told)
        except KeyboardInterrupt:
            if not cases:
                raise
            step.note("stopped; the cases that were finished are shown")
    return tuple(cases), versions


def _facts(
    engine: engines.Engine, place: EngineEnvironment | CannotRun, versions: Mapping[str, str]
) -> engines.EngineFacts:
    return engines.EngineFacts(
        name=engine.name,
        title=engine.title,
        version=versions.get(engine.name, ""),
        use=engine.use,
        installed_bytes=None if isinstance(place, CannotRun) else installed_bytes(place),
    )
