"""`invoke bench`: how long a model takes, and with which settings it takes least."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from invoke.context import Context
from invoke.tasks import task

from ortrim.bench.axes import EACH
from ortrim.console import Console
from ortrim.core.bench import BenchReport, Goal
from ortrim.core.serialization import to_json
from ortrim.errors import Interrupted
from ortrim.pipeline.bench.files import write_markdown, write_session
from ortrim.pipeline.bench.planning import ROUNDS, SECONDS, SWEEP_ROUNDS, Wanted
from ortrim.pipeline.bench.run import bench as measure
from ortrim.report.bench_terminal import bench_tables
from ortrim.tasks.boundary import boundary
from ortrim.tasks.counts import count_option
from ortrim.tasks.options import bad_option, help_for
from ortrim.tasks.subjects import SUBJECT_HELP, asked_for
from ortrim.tasks.training import run_name

GOALS: Final[tuple[Goal, ...]] = ("latency", "cpu", "memory")
MOST: Final = 3600.0


@task(
    iterable=["sweep", "dim"],
    auto_shortflags=False,
    help={
        **SUBJECT_HELP,
        "sweep": f"vary settings: '{EACH}' alone in turn, or such as threads=1,2, all combined; may be repeated",
        "goal": "what the recommendation goes by: latency, cpu or memory (default: latency)",
        "period": "milliseconds in which an inference has to be over, such as 10 (default: the buildspec's)",
        "rounds": f"processes for each case and choice (default: {ROUNDS}, of a sweep {SWEEP_ROUNDS})",
        "seconds": f"how long each process runs its case, about (default: {SECONDS:g})",
        "resume": "go on with the same bench where it was stopped",
        "session": "write the recommended session.json to this file",
        "markdown": "also write the results to this file",
        **help_for("training-run"),
    },
)
def bench(
    _context: Context,
    sweep: Sequence[str],
    dim: Sequence[str],
    model: str = "",
    spec: str = "",
    library: str = "",
    goal: str = "latency",
    period: str = "",
    rounds: str = "",
    seconds: str = "",
    resume: bool = False,
    session: str = "",
    markdown: str = "",
    training_run: str = "",
    profile: str | None = None,
    cores: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Measure what models take, setting by setting."""
    with boundary(json_mode=json) as console:
        asked = asked_for(model, spec, library=library, dim=dim, profile=profile, cores=cores, output=output)
        wanted = Wanted(
            asked=asked,
            sweep=tuple(sweep),
            rounds=count_option(rounds, "rounds"),
            seconds=number_option(seconds, "seconds") or SECONDS,
            deadline_ms=number_option(period, "period"),
            training_run=run_name(training_run),
            goal=_goal(goal),
            resume=resume,
        )
        report = measure(wanted, console)
        if session:
            write_session(report, Path(session))
        if markdown:
            write_markdown(report, Path(markdown))
        _show(report, console, json=json)


def number_option(word: str, option: str) -> float | None:
    """Return a number above 0, None for an empty word. Raises `UsageError` (`bad-option`)."""
    if not word:
        return None
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if 0 < number <= MOST:
        return number
    raise bad_option(option, word[:100], f"give a number above 0, up to {MOST:g}")


def _goal(word: str) -> Goal:
    for goal in GOALS:
        if goal == word:
            return goal
    raise bad_option("goal", word[:100], f"choose {', '.join(GOALS)}")


def _show(report: BenchReport, console: Console, *, json: bool) -> None:
    if json:
        console.result(to_json(report))
    else:
        console.render(bench_tables(report))
        console.note(f"\nevery run is in {report.journal}")
    if report.done < report.total:
        what = f"stopped after {report.done} of {report.total} processes; what was measured is kept"
        raise Interrupted("bench-stopped", what, where=report.journal, hint="the same command with --resume goes on")
