"""What `invoke measure.build` does: plans the specs, lets their cases be measured, and shows what came of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Final

from pictures import LEFT, RIGHT, Picture
from records import table_of

from build_time.bench import Bench
from build_time.cases import chosen_cases, graph_cases, schedule
from build_time.record import Record, commit_of
from build_time.session import Session, cpu_seconds, graph_points, median_cost
from build_time.subject import Pair, Subject, all_operators, planned_subject
from ortrim.base.cache import cache_folder, locked_if_free
from ortrim.base.console import Console, counted, duration_text
from ortrim.base.files import require_writable, write_atomically
from ortrim.compiling.workspace import choose_parallelism
from ortrim.errors import UsageError

LABEL: Final = 28.0
"""Pixels from one label to the next."""


def graph(points: Sequence[tuple[int, float]], upstream_seconds: float | None, caption: str) -> str:
    """Return the picture as SVG: minutes upward, operator types to the right, upstream's time as a level line."""
    longest = 1.08 * max(*(seconds for _, seconds in points), upstream_seconds or 0.0, 60.0) / 60
    picture = Picture(
        f"build time against the number of operator types: {caption}",
        upward=f"minutes of processor time from an empty build folder to the library ({caption})",
        rightward="operator types in the library",
        most=(points[-1][0], longest),
    )
    if upstream_seconds:
        level = picture.y(upstream_seconds / 60)
        picture.line(LEFT, level, RIGHT, level, "c0")
        picture.text(LEFT + 8, level - 7, f"upstream's recipe: {duration_text(upstream_seconds)}")
    places = [(picture.x(number), picture.y(seconds / 60)) for number, seconds in points]
    for before, after in pairwise(places):
        picture.line(*before, *after, "c1")
    written = 0.0
    for (number, seconds), (x, y) in zip(points, places, strict=True):
        picture.dot(x, y, 4, "c1", tip=f"{counted(number, 'operator type')}: {duration_text(seconds)}")
        if x - written >= LABEL:
            picture.text(x - 10, y + 22, f"{seconds / 60:.1f}")
            written = x
    return picture.svg()


CHECKOUT: Final = Path(__file__).resolve().parents[2]
SPECS: Final = tuple(CHECKOUT / "buildspecs" / f"{name}.toml" for name in ("silero-vad", "multi-model", "transformer"))


def measure(
    console: Console,
    *,
    specs: Sequence[Path],
    cases: str,
    graph: Path | None,
    rounds: int,
    jobs: int | None,
    output: Path,
    rest_seconds: float,
    again: bool,
    plan_only: bool,
) -> Record:
    """Measure cases (names with commas) of specs that are not measured yet, show the tables, and return the record."""
    chosen = () if graph and not cases else chosen_cases(cases)
    require_writable(output)
    with nullcontext() if plan_only else alone():
        session = Session(output, console, again=again, rest_seconds=rest_seconds, plan_only=plan_only)
        benches = _benches(specs or (SPECS if chosen else ()), output, jobs, console)
        for bench in benches:
            session.run(bench, tuple(schedule(chosen, rounds)))
        if graph is not None:
            _draw(graph, _benches(SPECS[:1], output, jobs, console)[0], session, console)
        session.conclude(tuple(bench.pair.own.name for bench in benches))
        return session.record


@contextmanager
def alone() -> Iterator[None]:
    """Hold the machine for one measurement at a time. Raises `UsageError` (`already-measuring`)."""
    with locked_if_free(cache_folder("benchmarks") / "session") as free:
        if not free:
            what = "another measurement is under way: two at once would measure each other"
            raise UsageError("already-measuring", what, hint="wait until it has ended")
        yield


def _benches(specs: Sequence[Path], output: Path, jobs: int | None, console: Console) -> tuple[Bench, ...]:
    """Plan all specs before anything is built: what is wrong with one should be known before hours have passed."""
    subjects = [planned_subject(spec, console) for spec in specs]
    others = [planned_subject(spec, console) for spec in (SPECS[1], SPECS[0])] if subjects else []
    commit, folder = commit_of(CHECKOUT), cache_folder("benchmarks")
    pairs = [Pair(own=own, other=_other(own, others), commit=commit) for own in subjects]
    return tuple(
        Bench(
            pair=pair,
            folder=folder / pair.own.name / pair.folder_name,
            output=output,
            jobs=choose_parallelism(jobs).jobs,
        )
        for pair in pairs
    )


def _other(own: Subject, others: list[Subject]) -> Subject:
    """Return the first spec that builds another library."""
    return next(each for each in others if each.job != own.job)


def _draw(file: Path, bench: Bench, session: Session, console: Console) -> None:
    """Measure the points of the graph, with the demo's plan, and draw it."""
    cases = graph_cases(len(all_operators()))
    session.run(bench, tuple(schedule(cases, 1)))
    points = graph_points(session.record, bench.pair.own.name)
    if not points:
        return
    if not session.plan_only:
        upstream = median_cost(session.record.latest(bench.pair.own.name, "upstream"), cpu_seconds)
        write_atomically(file, graph(points, upstream, session.record.machine.cpu))
    rows = [(str(number), duration_text(seconds)) for number, seconds in points]
    console.render(table_of(("operator types", "processor"), rows, texts=0).terminal(rule=False))
