"""One case in all engines, in turn: each round begins with another engine, and each run is a process of its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ortrim.bench.engine_answers import CannotRun, EngineConversion, EngineRun, shortened
from ortrim.bench.engine_catalogue import TRIMMED, Engine
from ortrim.bench.engine_rows import Attempt, rows_of
from ortrim.bench.engine_runs import Driver, Job, Place
from ortrim.core.engine_comparison import ComparedCase, EngineParity
from ortrim.core.measurements import OutputParity, Verdict
from ortrim.errors import VerifyError
from ortrim.pipeline.engines.subjects import Subject, Trimmed, job_of
from ortrim.verify.arrays import load_array
from ortrim.verify.cases import Case
from ortrim.verify.devices.base import SavedOutput
from ortrim.verify.parity import compare
from ortrim.verify.reference import CaseOutputs, SavedOutputs

OnTurn = Callable[[float, str], None]
"""Told which share of a case is done, and what is being done."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all cases have in common: the engines, where each is, the trimmed runtime, and what runs them."""

    engines: tuple[Engine, ...]
    places: Mapping[str, Place | CannotRun]
    trimmed: Trimmed | CannotRun | None
    driver: Driver
    rounds: int


@dataclass(frozen=True, kw_only=True)
class _Entrant:
    """One engine that takes part in one case."""

    place: Place
    job: Job
    attempt: Attempt


def compared_case(subject: Subject, case: Case, setting: Setting, tell: OnTurn) -> tuple[ComparedCase, dict[str, str]]:
    """Run one case in all engines; return it, and the version that each engine told.

    Raises `StorageError`, and `VerifyError` for damaged reference outputs.
    """
    attempts = {engine.name: _entered(engine, subject, case, setting) for engine in setting.engines}
    _convert(attempts, setting, tell)
    for number in range(setting.rounds):
        for place, name in enumerate(_order(attempts, number)):
            entrant = attempts[name]
            if isinstance(entrant, _Entrant):
                share = (number + 1 + place / len(attempts)) / (setting.rounds + 1)
                tell(share, f"{entrant.place.engine.title}, round {number + 1} of {setting.rounds}")
                attempts[name] = _run(entrant, subject, case, setting.driver)
    done = [each.attempt if isinstance(each, _Entrant) else each for each in attempts.values()]
    compared = ComparedCase(
        model=subject.prepared.name,
        model_sha256=subject.prepared.facts.sha256,
        case=case.name,
        shapes=_shapes(subject, case),
        rows=rows_of(done),
    )
    return compared, {attempt.engine: attempt.runs[0].version for attempt in done if attempt.runs}


def _shapes(subject: Subject, case: Case) -> tuple[tuple[str, tuple[int, ...]], ...]:
    files = sorted(case.folder.glob("input_*"))
    names = [info.name for info in subject.prepared.facts.inputs]
    return tuple((name, tuple(load_array(file).shape)) for name, file in zip(names, files, strict=False))


def _entered(engine: Engine, subject: Subject, case: Case, setting: Setting) -> _Entrant | Attempt:
    """Return an engine that is ready for a case, or the attempt that it already is."""
    place = setting.places[engine.name]
    if isinstance(place, CannotRun):
        return Attempt(engine=engine.name, failure=place)
    trimmed = setting.trimmed if engine.name == TRIMMED and isinstance(setting.trimmed, Trimmed) else None
    job = job_of(subject, case, trimmed)
    if isinstance(job, CannotRun):
        return Attempt(engine=engine.name, failure=job)
    return _Entrant(place=place, job=job, attempt=Attempt(engine=engine.name))


def _convert(attempts: dict[str, _Entrant | Attempt], setting: Setting, tell: OnTurn) -> None:
    """Have engines with a form of their own convert the model; one that cannot takes no part."""
    for number, (name, entrant) in enumerate(attempts.items()):
        if not isinstance(entrant, _Entrant) or not entrant.place.engine.converts:
            continue
        tell(number / len(attempts) / (setting.rounds + 1), f"{entrant.place.engine.title} converts")
        found = setting.driver.convert(entrant.place, entrant.job)
        if isinstance(found, EngineConversion):
            attempts[name] = replace(entrant, attempt=replace(entrant.attempt, conversion=found))
        else:
            attempts[name] = replace(entrant.attempt, failure=found)


def _order(names: Iterable[str], number: int) -> tuple[str, ...]:
    """Return the engines in the order of a round, each of which begins one further down."""
    listed = tuple(names)
    shift = number % len(listed)
    return (*listed[shift:], *listed[:shift])


def _run(entrant: _Entrant, subject: Subject, case: Case, driver: Driver) -> _Entrant | Attempt:
    found = driver.run(entrant.place, entrant.job)
    if isinstance(found, CannotRun):
        return replace(entrant.attempt, failure=found)
    attempt = entrant.attempt
    parity = attempt.parity or parity_of(found, driver.outputs(entrant.place), subject, case)
    return replace(entrant, attempt=replace(attempt, runs=(*attempt.runs, found), parity=parity))


def parity_of(run: EngineRun, folder: Path, subject: Subject, case: Case) -> EngineParity:
    """Hold a run's outputs, in a folder of the case below `folder`, against the full runtime's; return the worst."""
    names = [info.name for info in subject.prepared.facts.outputs]
    if len(run.outputs) != len(names):
        reason = f"it has {len(run.outputs)} outputs, not {len(names)}"
        return EngineParity(verdict=Verdict.FAIL, max_absolute=0.0, reason=reason)
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
        return EngineParity(verdict=Verdict.FAIL, max_absolute=0.0, reason=shortened(f"{error.what}: {error.why}"))


def _worst(outputs: tuple[OutputParity, ...]) -> EngineParity:
    failed = [output for output in outputs if output.verdict is Verdict.FAIL]
    judged = [output for output in outputs if output.verdict is not Verdict.NOT_JUDGED]
    verdict = Verdict.FAIL if failed else Verdict.PASS if judged else Verdict.NOT_JUDGED
    reasons = "; ".join(f"{output.output}: {output.reason}" for output in failed or outputs if output.reason)
    largest = max((output.max_absolute for output in outputs), default=0.0)
    return EngineParity(verdict=verdict, max_absolute=largest, reason=shortened(reasons))
