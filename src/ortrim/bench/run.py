"""`bench`: models measured on this machine, warm, in turn, with one choice of settings or with many.

What is measured, the models, a library for this machine and a runner, is the same for `profile`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from ortrim.base.cache import is_kept
from ortrim.base.console import Console
from ortrim.base.files import require_writable, sha256_of, write_atomically
from ortrim.bench import points, scores
from ortrim.buildspec.buildspec import DEFAULTS, SessionSettings, session_json, session_of
from ortrim.compiling.plan import PlannedTarget
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.devices.host import Host
from ortrim.errors import UsageError, VerifyError
from ortrim.models.full_runtime import is_minimal
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import HostFacts, median
from ortrim.parity.runner import Repetition, RunnerOutput, RunRequest
from ortrim.pipeline.building import executor_for
from ortrim.pipeline.history import record_benches
from ortrim.planning.planned import Planned, planned_for, planned_here
from ortrim.planning.request import Request
from ortrim.verify.measure import DeviceRuns, alone, own_baseline

BUILT: Final = "built"
WHEEL: Final = "wheel"


@dataclass(frozen=True, kw_only=True)
class BenchedModel:
    """What runs here: the plan with models and cases, the library, and the runner that runs it."""

    planned: Planned
    target: PlannedTarget
    library: points.BenchLibrary
    path: Path
    runner: Path


def subject_of(request: Request, library: str, console: Console) -> BenchedModel:
    """Find the library (`built`, `wheel`, its path, or nothing), convert the models and compile the runner.

    Without a library being named that is the buildspec's finished build for this machine, else the official wheel.
    """
    planned = _planned(request, library, console)
    (target, *_) = planned.plan.targets
    found, path = _library(request, library, planned, target)
    with console.step("compile the runner") as step:
        runner = executor_for(planned, target, request, step).run_runner(target.runner)
    return BenchedModel(planned=planned, target=target, library=found, path=path, runner=runner)


def _planned(request: Request, library: str, console: Console) -> Planned:
    if library in {"", BUILT}:
        try:
            return planned_for(request, console)
        except UsageError as error:
            if error.code != "no-such-target" or library:
                raise
    return planned_here(request, console)


def _library(request: Request, word: str, planned: Planned, target: PlannedTarget) -> tuple[points.BenchLibrary, Path]:
    def described(kind: points.LibraryKind, name: str, path: Path) -> tuple[points.BenchLibrary, Path]:
        digest, version, full = sha256_of(path), planned.plan.ort_version, not is_minimal(path)
        return points.BenchLibrary(kind=kind, name=name, sha256=digest, ort_version=version, full=full), path

    folder = finished_build(target.job)
    if word not in {"", BUILT, WHEEL}:
        path = Path(word)
        if not path.is_file() or path.stat().st_size == 0:
            hint = f"give the path of a library, {BUILT} or {WHEEL}"
            raise UsageError("bad-option", f"'{word}' is no library", where="--library", hint=hint)
        return described("file", path.name, path)
    if word != WHEEL and is_kept(folder):
        name = f"the build of {planned.plan.spec_name}, profile {target.job.profile}"
        return described(BUILT, name, result_of(folder).library)
    if word == BUILT:
        hint = f"run: invoke build -s {request.spec}"
        raise UsageError("not-built", "it was not built for this machine", where=str(request.spec), hint=hint)
    runtime = planned.models.runtime
    return described(WHEEL, own_baseline(runtime).name, runtime.library)


ROUNDS: Final = 9
"""As verification has it: from nine on, the interval that holds the true median leaves out the extreme rounds."""
SWEEP_ROUNDS: Final = 5
SECONDS: Final = 1.0
FEWEST_RUNS: Final = 5
MOST_RUNS: Final = 1000
MOST_WARMUP: Final = 10
LONGEST_SECONDS: Final = 200.0
"""No run of a process is begun later, however slow a setting makes it."""
TRIAL: Final = Repetition(runs=5, warmup=2, seconds=5.0)
FOLDER: Final = "bench"
"""Where journals lie, in the folder of packages and reports."""
Run = Callable[[RunRequest], RunnerOutput]
Turn = tuple[int, points.BenchModel, points.BenchPoint, str]
"""One process that is to be run: its round, and its case, which is empty for one that only loads."""


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """What is to be measured, with which library, as `subject_of` has it; each process runs its case for some seconds.

    Without a `deadline_ms` the buildspec's holds. `resume` goes on with a run that was stopped.
    """

    request: Request
    library: str = ""
    sweep: tuple[str, ...] = ()
    rounds: int | None = None
    seconds: float = SECONDS
    deadline_ms: float | None = None
    training_run: str = ""
    goal: points.Goal = "latency"
    resume: bool = False


def plan_of(wanted: BenchRequest, subject: BenchedModel, machine: HostFacts, run: Run) -> points.BenchPlan:
    """Decide everything; each case is tried first, to know how often it can be run."""
    cores = len(machine.pinned_cores) or machine.cores
    sweeps = [
        points.sweep_points(base_point(subject, number), wanted.sweep, cores=cores, full=subject.library.full)
        for number in range(len(subject.planned.models.prepared))
    ]
    return points.BenchPlan(
        name=subject.planned.plan.spec_name,
        target=subject.target.identifier,
        providers=subject.target.job.provider_names,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ortrim_version=installed_version("ortrim"),
        training_run=wanted.training_run,
        library=subject.library,
        machine=machine,
        deadline_ms=wanted.deadline_ms or subject.target.budgets.deadline_ms,
        rounds=wanted.rounds or (SWEEP_ROUNDS if wanted.sweep else ROUNDS),
        models=tuple(_model(wanted, subject, number, sweep, run) for number, sweep in enumerate(sweeps)),
    )


def _model(
    wanted: BenchRequest, subject: BenchedModel, number: int, sweep: tuple[points.BenchPoint, ...], run: Run
) -> points.BenchModel:
    """Run each case a few times at the default, which shows whether it runs at all, and how often it can."""
    prepared, cases = subject.planned.models.prepared[number], []
    for case in subject.planned.cases[number]:
        request = replace(request_at(subject, number, sweep[0], (case,)), repetition=TRIAL)
        fits = wanted.seconds * 1e3 / median(run(request).cases[0].total_ms)
        runs = round(max(FEWEST_RUNS, min(MOST_RUNS, fits)))
        warmup = min(MOST_WARMUP, 1 + runs // 10)
        cases.append(points.BenchCase(name=case.name, digest=case.digest, runs=runs, warmup=warmup))
    return points.BenchModel(name=prepared.name, sha256=prepared.facts.sha256, cases=tuple(cases), points=sweep)


def request_at(subject: BenchedModel, number: int, point: points.BenchPoint, cases: tuple[Case, ...]) -> RunRequest:
    """Return the run of one model at one point, in the format that the library reads."""
    models, full = subject.planned.models, subject.library.full
    converted = models.converted[number]
    session = points.settings_at(point, style=converted.style, reads_in_place=converted.reads_in_place, onnx=full)
    providers = subject.target.job.provider_names if subject.library.kind == BUILT else ()
    return RunRequest(
        runner=subject.runner,
        library=subject.path,
        model=(models.prepared if full else models.converted)[number].path,
        cases=cases,
        session=replace(session, providers=providers),
    )


def base_point(subject: BenchedModel, number: int) -> points.BenchPoint:
    """Return what a model is measured with when nothing is varied: the session that goes with it, nothing left open.

    A model in ONNX format is loaded from its file unless the buildspec says otherwise, since it cannot stay in place.
    """
    loaded = subject.planned.models.loaded
    chosen = session_of(loaded, loaded.models[number])
    made = DEFAULTS.replaced_by(chosen)
    if subject.library.full:
        session = replace(made, in_place=False, load=chosen.load or "file")
        return points.BenchPoint(name=points.DEFAULT, session=session, level="all")
    reads_in_place = subject.planned.models.converted[number].reads_in_place
    in_place = reads_in_place if made.in_place is None else made.in_place
    return points.BenchPoint(name=points.DEFAULT, session=replace(made, in_place=in_place))


def bench(wanted: BenchRequest, console: Console) -> points.BenchReport:
    """Measure, and return what was measured, which is less than all when the user stopped it.

    Every sample is on the disk as soon as it is there; a finished bench is in the history.
    """
    output = wanted.request.output
    require_writable(output / FOLDER)
    subject = subject_of(wanted.request, wanted.library, console)
    console.note(f"measuring {subject.library.name}")
    host = Host(wanted.request.cores)
    with alone(console.note):
        journal = _journal(wanted, subject, host, console)
        _measured(journal, subject, host.run, console)
    done = scores.read_journal(journal.path)
    report = scores.report_of(done.plan, done.samples, wanted.goal, str(journal.path))
    if report.done == report.total:
        record_benches(points.entries_of(report), output, console.warn)
    return report


def _journal(wanted: BenchRequest, subject: BenchedModel, host: Host, console: Console) -> scores.Journal:
    folder = wanted.request.output / FOLDER
    with console.step("try the models"):
        plan = plan_of(wanted, subject, host.facts(), host.run)
    if not wanted.resume:
        return scores.new_journal(folder, plan)
    total = scores.process_count(plan)
    found = scores.unfinished(folder, plan, total)
    if found is None:
        what = "there is no interrupted bench of this kind"
        hint = "models, library, settings and machine must be the same; without --resume a new bench begins"
        raise UsageError("nothing-to-resume", what, where=str(folder), hint=hint)
    console.note(f"{len(found.samples)} of {total} processes were run before")
    return found


def _measured(journal: scores.Journal, subject: BenchedModel, run: Run, console: Console) -> None:
    known = {(each.round, each.model, each.point, each.case) for each in journal.samples}
    failed = {(each.model, each.point): each.failure for each in journal.samples if each.failure}
    with console.step("measure") as step:
        progress = DeviceRuns(scores.process_count(journal.plan), step.progress)
        try:
            for turn in _turns(journal.plan):
                number, model, point, case = turn
                with progress.one(f"{model.name}: {point.name}"):
                    if (number, model.name, point.name, case) not in known:
                        scores.add(journal.path, _one(turn, subject, run, failed))
        except KeyboardInterrupt:
            step.note("stopped; measurements are kept, and --resume continues")


def _turns(plan: points.BenchPlan) -> Iterator[Turn]:
    for number in range(plan.rounds):
        for model in plan.models:
            yield from ((number, model, point, case) for point, case in points.turns(model, number))


def _one(turn: Turn, subject: BenchedModel, run: Run, failed: dict[tuple[str, str], str]) -> points.Sample:
    """Run one process, unless its point is known to fail, and return what it took."""
    number, model, point, case = turn
    key = model.name, point.name
    nothing = points.Sample(round=number, model=model.name, point=point.name, case=case)
    if key not in failed:
        try:
            return _sample(turn, nothing, subject, run)
        except VerifyError as error:
            if point == model.points[0]:
                raise
            failed[key] = f"{error.what} ({error.code})"
    return replace(nothing, failure=failed[key])


def _sample(turn: Turn, nothing: points.Sample, subject: BenchedModel, run: Run) -> points.Sample:
    _, model, point, name = turn
    number = [each.name for each in subject.planned.models.prepared].index(model.name)
    cases = tuple(case for case in subject.planned.cases[number] if case.name == name)
    request, before = request_at(subject, number, point, cases), _children_seconds()
    wanted = next((case for case in model.cases if case.name == name), None)
    if wanted:
        repetition = Repetition(runs=wanted.runs, warmup=wanted.warmup, seconds=LONGEST_SECONDS)
        request = replace(request, repetition=repetition)
    output = run(request)
    loaded = replace(
        nothing,
        load_ms=output.load_ms,
        peak_rss_bytes=output.memory.peak_rss_bytes,
        cpu_seconds=_children_seconds() - before,
    )
    if not wanted:
        return loaded
    (case,) = output.cases
    return replace(
        loaded,
        first_run_ms=case.first_run_ms,
        inferences=1 + wanted.warmup + case.runs,
        input_ms=case.input_ms,
        inference_ms=case.inference_ms,
        output_ms=case.output_ms,
    )


def _children_seconds() -> float:
    import resource  # noqa: PLC0415 - Windows has no such module, and other tasks run there

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write_session(report: points.BenchReport, path: Path) -> None:
    """Write a `session.json` with the recommended settings of each model, its default's without one.

    It is about the converted model, wherever the settings were measured. Raises `StorageError`.
    """
    sessions: dict[str, SessionSettings] = {}
    for each in report.models:
        wanted = each.recommended or each.model.points[0].name
        point = next(point for point in each.model.points if point.name == wanted)
        in_place = bool(point.session.in_place)
        session = points.settings_at(point, style="fixed", reads_in_place=in_place, onnx=False)
        sessions[each.model.name] = replace(session, providers=report.plan.providers)
    write_atomically(path, session_json(report.plan.library.ort_version, sessions))
