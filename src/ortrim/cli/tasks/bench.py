"""`invoke bench`, `profile`, `hot`, `compare`: how long a model takes, by setting, by operator and in other engines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.base.json import to_data, to_json
from ortrim.bench.engines import ENGINES, USUAL, engine_tables
from ortrim.bench.points import EACH, BenchReport, Goal
from ortrim.bench.profile import (
    HOT_RUNS,
    RUNS,
    TOP,
    Profiled,
    find_hot,
    hot_table,
    profile_of_trace,
    profile_tables,
    profiles_of,
)
from ortrim.bench.report import bench_markdown, bench_tables
from ortrim.bench.run import ROUNDS, SECONDS, SWEEP_ROUNDS, BenchRequest, write_session
from ortrim.bench.run import bench as measure
from ortrim.cli import options
from ortrim.cli.task import task
from ortrim.errors import Interrupted, bad_option
from ortrim.planning.request import Request

LIBRARY_HELP: Final = (
    "built, wheel or the path of a library (default: the finished build of models or buildspec, else the wheel)"
)


def _request(models: options.GivenModels, cores: str | None, output: str, console: Console) -> Request:
    """Return what is to be run; of models without a buildspec, cases are found."""
    return models.request(options.request_from(verifying=options.Verifying(cores=cores), output=output), console)


GOALS: Final[tuple[Goal, ...]] = ("latency", "cpu", "memory")
MOST: Final = 3600.0


@task(
    help={
        "library": LIBRARY_HELP,
        "sweep": f"vary settings: '{EACH}' alone in turn, or such as threads=1,2, all combined; may be repeated",
        "goal": "what the recommendation goes by: latency, cpu or memory (default: latency)",
        "period": "milliseconds that an inference may take, such as 10 (default: the buildspec's)",
        "rounds": f"processes for each case and choice (default: {ROUNDS}, of a sweep {SWEEP_ROUNDS})",
        "seconds": f"about how many seconds each process runs its case (default: {SECONDS:g})",
        "resume": "continue the same bench where it was interrupted",
        "session": "write the recommended session.json to this file",
        "markdown": "also write the results to this file",
    },
)
def bench(
    console: Console,
    models: options.GivenModels,
    sweep: Sequence[str],
    library: str = "",
    goal: str = "latency",
    period: str = "",
    rounds: str = "",
    seconds: str = "",
    resume: bool = False,
    session: str = "",
    markdown: str = "",
    training_run: str = "",
    cores: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Measure latency and memory of models by setting."""
    wanted = BenchRequest(
        sweep=tuple(sweep),
        rounds=options.count_option(rounds, "rounds"),
        seconds=number_option(seconds, "seconds") or SECONDS,
        deadline_ms=number_option(period, "period"),
        training_run=options.run_name(training_run),
        goal=options.name_option("goal", goal[:100], GOALS, ", ".join(GOALS)),
        resume=resume,
        request=_request(models, cores, output, console),
        library=library,
    )
    report = measure(wanted, console)
    if session:
        write_session(report, Path(session))
    if markdown:
        write_atomically(Path(markdown), bench_markdown(report))
    _show(report, console, json=json)


def number_option(word: str, option: str) -> float | None:
    """Return a number above 0, None for an empty word."""
    if not word:
        return None
    number = options.number_in(word)
    if 0 < number <= MOST:
        return number
    raise bad_option(option, word[:100], f"give a number above 0, up to {MOST:g}")


def _show(report: BenchReport, console: Console, *, json: bool) -> None:
    if json:
        console.result(to_json(report))
    else:
        console.render(bench_tables(report))
        console.note(f"\nevery run is in {report.journal}")
    if report.done < report.total:
        what = f"stopped after {report.done} of {report.total} processes; measurements are kept"
        raise Interrupted("bench-stopped", what, where=report.journal, hint="the same command with --resume continues")


@task(
    help={
        "library": LIBRARY_HELP,
        "trace": "read this trace instead of making one, for example a device's trace from invoke verify --trace",
        "case": f"{options.CASE_HELP}; a NAME alone: only the case of this name",
        "runs": f"number of inferences, whose median is reported (default: {RUNS})",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
    },
)
def profile(
    console: Console,
    models: options.GivenModels,
    trace: str = "",
    library: str = "",
    runs: str = "",
    top: str = "",
    cores: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Show the time of each operator in an inference."""
    most = options.count_option(top, "top")
    if trace and (models.words or models.data or models.case or library):
        raise bad_option("trace", trace, "it is read by itself: leave out models, --spec, --library and --case")
    if trace:
        found: tuple[Profiled, ...] = (profile_of_trace(Path(trace), Path(output)),)
    else:
        names, models = models.chosen_cases()
        request = _request(models, cores, output, console)
        found = profiles_of(request, library, names, options.count_option(runs, "runs") or RUNS, console)
    if json:
        console.document({"profiles": [to_data(each) for each in found]})
        return
    for each in found:
        console.render(profile_tables(each.profile, most))
        console.note(f"\nopens in ui.perfetto.dev: {each.trace}\n")


@task(
    help={
        "runs": f"how often each process runs its case (default: {HOT_RUNS})",
        "output": "folder for the buildspec of models, beside which the file is written (default: artifacts)",
    }
)
def hot(
    console: Console, models: options.GivenModels, runs: str = "", output: str = "artifacts", json: bool = False
) -> None:
    """Find the operators that take the models' time."""
    request = models.request(options.request_from(output=output), console)
    found = find_hot(request, console, options.count_option(runs, "runs") or HOT_RUNS)
    if json:
        console.result(to_json(found))
    else:
        console.render(hot_table(found.operators))
        console.note(f"{found.file} names {sum(each.hot for each in found.operators)} of them as hot")


@task(
    help={
        "engine": f"one of {', '.join(ENGINES)}; may be repeated (default: {', '.join(USUAL)})",
        "only": "model by its name, may be repeated (default: all)",
        "case": f"{options.CASE_HELP}; a NAME alone: only the case of this name",
        "library": "trimmed library to compare (default: the buildspec's finished build)",
        "rounds": "how often each engine is run for each case (default: 5)",
        "threads": "threads of each engine (default: 1)",
    },
)
def compare(
    console: Console,
    models: options.GivenModels,
    engine: Sequence[str],
    only: Sequence[str],
    library: str = "",
    rounds: str = "",
    threads: str = "",
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Run models in other inference engines as well."""
    from ortrim.bench.comparison import ROUNDS, Compared, compare_engines, write_comparison  # noqa: PLC0415

    names, models = models.required("compare").chosen_cases()
    if library and not Path(library).is_file():
        raise bad_option("library", library, "give the path of a library")
    compared = Compared(
        engines=tuple(engine),
        models=tuple(only),
        cases=names,
        library=Path(library).absolute() if library else None,
        rounds=options.count_option(rounds, "rounds") or ROUNDS,
        threads=options.count_option(threads, "threads") or 1,
        request=models.request(options.request_from(output=output), console),
    )
    comparison = compare_engines(compared, console)
    folder = write_comparison(comparison, compared.request.output)
    if json:
        console.result(to_json(comparison).rstrip())
        return
    console.render(engine_tables(comparison))
    console.note(f"written to {folder}")
