"""What `invoke measure.build` does: plans the specs, lets their cases be measured, and shows what came of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from build_time.bench import Bench
from build_time.cases import Case, chosen_cases, graph_cases, schedule
from build_time.record import Record, commit_of
from build_time.session import Manner, Session, graph_points, median_processor, points_table
from build_time.subject import Pair, Subject, all_operators, planned_subject
from ortrim.base.cache import cache_folder, locked_if_free
from ortrim.base.console import Console, counted, duration_text
from ortrim.base.files import require_writable, write_atomically
from ortrim.compiling.workspace import choose_parallelism
from ortrim.errors import UsageError
from ortrim.report.charts import Canvas, ticks

WIDTH, HEIGHT = 760.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 740.0, 34.0, 350.0
LABEL: Final = 28.0
STYLE: Final = """\
<style>
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1f2328; } .faint { stroke: #d8dee4; } .axis { stroke: #57606a; }
.ours { stroke: #0969da; stroke-width: 2; fill: #0969da; } .upstream { stroke: #bc4c00; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .faint { stroke: #30363d; } .axis { stroke: #8b949e; }
  .ours { stroke: #4493f8; fill: #4493f8; } .upstream { stroke: #db6d28; }
}
</style>"""


def graph(points: Sequence[tuple[int, float]], upstream_seconds: float | None, caption: str) -> str:
    """Return the picture as SVG: minutes upward, operator types to the right, upstream's time as a level line."""
    canvas = Canvas(WIDTH, HEIGHT, f"build time against the number of operator types: {caption}")
    most = points[-1][0]
    longest = 1.08 * max(*(seconds for _, seconds in points), upstream_seconds or 0.0, 1.0)
    places = [(_x(number, most), _y(seconds, longest)) for number, seconds in points]
    _axes(canvas, most, longest, caption)
    if upstream_seconds:
        level = _y(upstream_seconds, longest)
        canvas.line(LEFT, level, RIGHT, level, "upstream")
        canvas.text(LEFT + 8, level - 7, f"upstream's recipe: {duration_text(upstream_seconds)}")
    _curve(canvas, points, places)
    opened = str(canvas.markup()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace(">", f">{STYLE}", 1) + "\n"


def _curve(canvas: Canvas, points: Sequence[tuple[int, float]], places: Sequence[tuple[float, float]]) -> None:
    for before, after in pairwise(places):
        canvas.line(*before, *after, "ours")
    written = 0.0
    for (number, seconds), (x, y) in zip(points, places, strict=True):
        canvas.dot(x, y, 4, "ours", tip=f"{counted(number, 'operator type')}: {duration_text(seconds)}")
        if x - written >= LABEL:
            canvas.text(x - 10, y + 22, f"{seconds / 60:.1f}")
            written = x


def _axes(canvas: Canvas, most: int, longest: float, caption: str) -> None:
    canvas.text(LEFT, 18, f"minutes of processor time from an empty build folder to the library ({caption})")
    for minutes in ticks(0, longest / 60, 6):
        y = _y(60 * minutes, longest)
        canvas.line(LEFT, y, RIGHT, y, "faint")
        canvas.text(LEFT - 34, y + 4.5, f"{minutes:g}")
    for number in ticks(0, most, 8):
        canvas.text(_x(number, most) - 8, BOTTOM + 20, f"{number:g}")
    canvas.line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis")
    canvas.text(LEFT, BOTTOM + 42, "operator types in the library")


def _x(number: float, most: int) -> float:
    return LEFT + (RIGHT - LEFT) * number / most


def _y(seconds: float, longest: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * seconds / longest


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
