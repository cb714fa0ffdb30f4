"""What is measured by `bench` and `profile`: the models, a library for this machine, and a runner."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

from ortrim.base.cache import is_kept
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.bench import points
from ortrim.buildspec.buildspec import DEFAULTS, session_of
from ortrim.compiling.plan import PlannedTarget
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.errors import UsageError
from ortrim.models.full_runtime import is_minimal
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import HostFacts, median
from ortrim.parity.runner import Repetition, RunnerOutput, RunRequest
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for, planned_here
from ortrim.planning.request import Request
from ortrim.verify.measure import own_baseline

BUILT: Final = "built"
WHEEL: Final = "wheel"


@dataclass(frozen=True, kw_only=True)
class BenchSelection:
    """A request for a buildspec, and the library: `built`, `wheel`, its path, or nothing."""

    request: Request
    library: str = ""


@dataclass(frozen=True, kw_only=True)
class BenchedModel:
    """What runs here: the plan with models and cases, the library, and the runner that runs it."""

    planned: Planned
    target: PlannedTarget
    library: points.BenchLibrary
    path: Path
    runner: Path

    def model(self, number: int) -> Path:
        """Return the file of a model in the format that the library reads."""
        models = self.planned.models
        return (models.prepared if self.library.full else models.converted)[number].path


def subject_of(asked: BenchSelection, console: Console) -> BenchedModel:
    """Find the library, convert the models and compile the runner.

    Without a library being named that is the buildspec's finished build for this machine, else the official wheel.
    """
    planned = _planned(asked, console)
    (target, *_) = planned.plan.targets
    library, path = _library(asked, planned, target)
    with console.step("compile the runner") as step:
        runner = executor_for(planned, target, asked.request, step).run_runner(target.runner)
    return BenchedModel(planned=planned, target=target, library=library, path=path, runner=runner)


def _planned(asked: BenchSelection, console: Console) -> Planned:
    if asked.library in {"", BUILT}:
        try:
            return planned_for(asked.request, console)
        except UsageError as error:
            if error.code != "no-such-target" or asked.library:
                raise
    return planned_here(asked.request, console)


def _library(asked: BenchSelection, planned: Planned, target: PlannedTarget) -> tuple[points.BenchLibrary, Path]:
    spec, folder = asked.request.spec, finished_build(target.job)
    if asked.library not in {"", BUILT, WHEEL}:
        path = Path(asked.library)
        if not path.is_file() or path.stat().st_size == 0:
            hint = f"give the path of a library, {BUILT} or {WHEEL}"
            raise UsageError("bad-option", f"'{asked.library}' is no library", where="--library", hint=hint)
        return _described("file", path.name, path, planned), path
    if asked.library != WHEEL and is_kept(folder):
        path = result_of(folder).library
        return _described(
            BUILT, f"the build of {planned.plan.spec_name}, profile {target.job.profile}", path, planned
        ), path
    if asked.library == BUILT:
        hint = f"run: invoke build -s {spec}"
        raise UsageError("not-built", "it was not built for this machine", where=str(spec), hint=hint)
    runtime = planned.models.runtime
    return _described(WHEEL, own_baseline(runtime).name, runtime.library, planned), runtime.library


def _described(kind: points.LibraryKind, name: str, path: Path, planned: Planned) -> points.BenchLibrary:
    version = planned.plan.ort_version
    return points.BenchLibrary(
        kind=kind, name=name, sha256=sha256_of(path), ort_version=version, full=not is_minimal(path)
    )


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
Run = Callable[[RunRequest], RunnerOutput]


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """What is to be measured; `seconds` is about how long each process runs its case.

    Without a `deadline_ms` the buildspec's holds. `resume` goes on with a run that was stopped.
    """

    asked: BenchSelection
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
    models = [_model(wanted, subject, number, cores) for number in range(len(subject.planned.models.prepared))]
    return points.BenchPlan(
        name=subject.planned.plan.spec_name,
        target=subject.target.identifier,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ortrim_version=installed_version("ortrim"),
        training_run=wanted.training_run,
        library=subject.library,
        machine=machine,
        deadline_ms=wanted.deadline_ms or subject.target.budgets.deadline_ms,
        rounds=wanted.rounds or (SWEEP_ROUNDS if wanted.sweep else ROUNDS),
        models=tuple(_tried(wanted, subject, model, number, run) for number, model in enumerate(models)),
    )


def request_at(subject: BenchedModel, number: int, point: points.BenchPoint, cases: tuple[Case, ...]) -> RunRequest:
    """Return the run of one model at one point."""
    converted = subject.planned.models.converted[number]
    settings = points.settings_at(
        point, style=converted.style, reads_in_place=converted.reads_in_place, onnx=subject.library.full
    )
    return RunRequest(
        runner=subject.runner, library=subject.path, model=subject.model(number), cases=cases, session=settings
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


def _model(wanted: BenchRequest, subject: BenchedModel, number: int, cores: int) -> points.BenchModel:
    prepared = subject.planned.models.prepared[number]
    base = base_point(subject, number)
    return points.BenchModel(
        name=prepared.name,
        sha256=prepared.facts.sha256,
        cases=(),
        points=points.sweep_points(base, wanted.sweep, cores=cores, full=subject.library.full),
    )


def _tried(
    wanted: BenchRequest, subject: BenchedModel, model: points.BenchModel, number: int, run: Run
) -> points.BenchModel:
    """Run each case a few times at the default, which shows whether it runs at all."""
    request = request_at(subject, number, model.points[0], ())
    cases = subject.planned.cases[number]
    outputs = [run(replace(request, cases=(case,), repetition=TRIAL)) for case in cases]
    times = [median(output.cases[0].total_ms) for output in outputs]
    return replace(
        model, cases=tuple(_case(case, wanted.seconds * 1e3 / time) for case, time in zip(cases, times, strict=True))
    )


def _case(case: Case, fits: float) -> points.BenchCase:
    runs = round(max(FEWEST_RUNS, min(MOST_RUNS, fits)))
    return points.BenchCase(name=case.name, digest=case.digest, runs=runs, warmup=min(MOST_WARMUP, 1 + runs // 10))
