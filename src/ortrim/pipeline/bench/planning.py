"""What a bench measures, decided before it begins: points, cases, how often, on which machine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from typing import Final

from ortrim.bench.settings import settings_at
from ortrim.bench.sweep import DEFAULT, sweep_points
from ortrim.core.bench import BenchCase, BenchModel, BenchPlan, BenchPoint, Goal
from ortrim.core.buildspec_choices import session_of
from ortrim.core.measurements import Host
from ortrim.core.sessions import DEFAULTS
from ortrim.core.statistics import median
from ortrim.pipeline.bench.subjects import Asked, Subject
from ortrim.verify.cases import Case
from ortrim.verify.devices.base import Repetition, RunnerOutput, RunRequest

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
class Wanted:
    """What is to be measured; `seconds` is about how long each process runs its case.

    Without a `deadline_ms` the buildspec's holds. `resume` goes on with a run that was stopped.
    """

    asked: Asked
    sweep: tuple[str, ...] = ()
    rounds: int | None = None
    seconds: float = SECONDS
    deadline_ms: float | None = None
    training_run: str = ""
    goal: Goal = "latency"
    resume: bool = False


def plan_of(wanted: Wanted, subject: Subject, machine: Host, run: Run) -> BenchPlan:
    """Decide everything; each case is tried first, to know how often it can be run. Raises what `run` raises."""
    cores = len(machine.pinned_cores) or machine.cores
    models = [_model(wanted, subject, number, cores) for number in range(len(subject.planned.models.prepared))]
    return BenchPlan(
        name=subject.planned.plan.spec_name,
        target=subject.target.job.target.identifier,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ortrim_version=installed_version("ortrim"),
        training_run=wanted.training_run,
        library=subject.library,
        machine=machine,
        deadline_ms=wanted.deadline_ms or subject.target.budgets.deadline_ms,
        rounds=wanted.rounds or (SWEEP_ROUNDS if wanted.sweep else ROUNDS),
        models=tuple(_tried(wanted, subject, model, number, run) for number, model in enumerate(models)),
    )


def request_at(subject: Subject, number: int, point: BenchPoint, cases: tuple[Case, ...]) -> RunRequest:
    """Return the run of one model at one point."""
    converted = subject.planned.models.converted[number]
    settings = settings_at(point, style=converted.style, aligned=converted.aligned, onnx=subject.library.full)
    return RunRequest(
        runner=subject.runner, library=subject.path, model=subject.model(number), cases=cases, session=settings
    )


def base_point(subject: Subject, number: int) -> BenchPoint:
    """Return what a model is measured with when nothing is varied: the session that goes with it, nothing left open.

    A model in ONNX format is loaded from its file unless the buildspec says otherwise, since it cannot stay in place.
    """
    loaded = subject.planned.models.loaded.spec
    chosen = session_of(loaded, loaded.models[number])
    made = DEFAULTS.replaced_by(chosen)
    if subject.library.full:
        session = replace(made, in_place=False, load=chosen.load or "file")
        return BenchPoint(name=DEFAULT, session=session, level="all")
    aligned = subject.planned.models.converted[number].aligned
    in_place = aligned if made.in_place is None else made.in_place
    return BenchPoint(name=DEFAULT, session=replace(made, in_place=in_place))


def _model(wanted: Wanted, subject: Subject, number: int, cores: int) -> BenchModel:
    prepared = subject.planned.models.prepared[number]
    base = base_point(subject, number)
    return BenchModel(
        name=prepared.name,
        sha256=prepared.facts.sha256,
        cases=(),
        points=sweep_points(base, wanted.sweep, cores=cores, full=subject.library.full),
    )


def _tried(wanted: Wanted, subject: Subject, model: BenchModel, number: int, run: Run) -> BenchModel:
    """Run each case a few times at the default, which shows whether it runs at all."""
    request = request_at(subject, number, model.points[0], ())
    cases = subject.planned.cases[number]
    outputs = [run(replace(request, cases=(case,), repetition=TRIAL)) for case in cases]
    times = [median(output.cases[0].total_ms) for output in outputs]
    return replace(
        model, cases=tuple(_case(case, wanted.seconds * 1e3 / time) for case, time in zip(cases, times, strict=True))
    )


def _case(case: Case, fits: float) -> BenchCase:
    runs = round(max(FEWEST_RUNS, min(MOST_RUNS, fits)))
    return BenchCase(name=case.name, digest=case.digest, runs=runs, warmup=min(MOST_WARMUP, 1 + runs // 10))
