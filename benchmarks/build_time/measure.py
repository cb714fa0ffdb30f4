"""What `invoke measure.build` does: plans the specs, lets their cases be measured, and shows what came of it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from build_time.bench import Bench
from build_time.cases import Case, chosen_cases, graph_cases, schedule
from build_time.graph import graph
from build_time.machine import commit_of
from build_time.record import Record
from build_time.session import Manner, Session
from build_time.subject import Pair, Subject, all_operators, planned_subject
from build_time.table import graph_points, median_processor, points_table
from ortrim.base.cache import cache_folder, locked_if_free
from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.compiling.execution import choose_parallelism
from ortrim.errors import UsageError

__all__ = ["SPECS", "Manner", "Wanted", "measure"]

CHECKOUT: Final = Path(__file__).resolve().parents[2]
SPECS: Final = tuple(CHECKOUT / "buildspecs" / f"{name}.toml" for name in ("silero-vad", "multi-model", "transformer"))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to measure: cases (names with commas) of specs (`SPECS` when there are none)."""

    specs: tuple[Path, ...] = ()
    cases: str = ""
    rounds: int = 1
    graph: Path | None = None
    jobs: int | None = None
    manner: Manner = field(default_factory=Manner)


def measure(wanted: Wanted, console: Console) -> Record:
    """Measure what is wanted and not measured yet, show the tables, and return the record."""
    cases = () if wanted.graph and not wanted.cases else chosen_cases(wanted.cases)
    require_writable(wanted.manner.output)
    with nullcontext() if wanted.manner.plan_only else alone():
        return _measured(wanted, cases, console)


@contextmanager
def alone() -> Iterator[None]:
    """Hold the machine for one measurement at a time. Raises `UsageError` (`already-measuring`)."""
    with locked_if_free(cache_folder("benchmarks") / "session") as free:
        if not free:
            what = "another measurement is under way: two at once would measure each other"
            raise UsageError("already-measuring", what, hint="wait until it has ended")
        yield


def _measured(wanted: Wanted, cases: tuple[Case, ...], console: Console) -> Record:
    session = Session(wanted.manner, console)
    specs = wanted.specs or (SPECS if cases else ())
    benches = _benches(specs, wanted, console)
    for bench in benches:
        session.run(bench, tuple(schedule(cases, wanted.rounds)))
    if wanted.graph is not None:
        _draw(wanted.graph, _benches(SPECS[:1], wanted, console)[0], session, console)
    session.conclude(tuple(bench.pair.own.name for bench in benches))
    return session.record


def _benches(specs: tuple[Path, ...], wanted: Wanted, console: Console) -> tuple[Bench, ...]:
    """Plan all specs before anything is built: what is wrong with one should be known before hours have passed."""
    subjects = [planned_subject(spec, console) for spec in specs]
    others = [planned_subject(spec, console) for spec in (SPECS[1], SPECS[0])] if subjects else []
    commit = commit_of(CHECKOUT)
    return tuple(_bench(Pair(own=own, other=_other(own, others), commit=commit), wanted) for own in subjects)


def _bench(pair: Pair, wanted: Wanted) -> Bench:
    return Bench(
        pair=pair,
        folder=cache_folder("benchmarks") / pair.own.name / pair.folder_name,
        output=wanted.manner.output,
        jobs=choose_parallelism(wanted.jobs).jobs,
    )


def _other(own: Subject, others: list[Subject]) -> Subject:
    """Return the first spec that builds another library."""
    return next(each for each in others if each.job != own.job)


def _draw(file: Path, bench: Bench, session: Session, console: Console) -> None:
    """Measure the points of the graph, with the demo's plan, and draw it."""
    cases = graph_cases(len(all_operators()))
    session.run(bench, tuple(schedule(cases, 1)))
    points = graph_points(session.record, bench.pair.own.name)
    if points and not session.manner.plan_only:
        upstream = median_processor(session.record.latest(bench.pair.own.name, "upstream"))
        machine = session.record.machine
        write_atomically(file, graph(points, upstream, machine.cpu))
    if points:
        console.render(points_table(points))
