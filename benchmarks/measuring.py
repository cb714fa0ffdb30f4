"""`invoke measure.*`: ortrim beside upstream and the wheel. A benchmark is imported when it is asked for."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ortrim.base.console import Console
from ortrim.base.json import to_json
from ortrim.cli.options import demo_spec, profile_named, whole_number
from ortrim.cli.task import task

DEFAULT_OUTPUT: Final = "artifacts/benchmarks"


def _measure(module: str, console: Console, json: bool, **wanted: Any) -> None:
    record = import_module(module).measure(console, **wanted)
    if json:
        console.result(to_json(record))


def _in_rounds(spec: list[str], rounds: str, jobs: str | None, output: str, rest: str) -> dict[str, Any]:
    """Return the options of every benchmark that builds libraries and lets them run in turn."""
    return {
        "specs": tuple(map(Path, spec)),
        "rounds": whole_number(rounds, "rounds"),
        "jobs": None if jobs is None else whole_number(jobs, "jobs"),
        "output": Path(output),
        "rest_seconds": whole_number(rest, "rest", least=0),
    }


@task(
    help={
        "spec": "buildspec to measure; may be repeated (default: demo, multi-model and transformer)",
        "cases": "what to measure, with commas: upstream,ortrim,three-more (default: all, which takes hours)",
        "rounds": "how often to measure, the cases in turn (default: 1)",
        "again": "measure also what is in the record",
        "graph": "draw the build time by number of operators into this SVG file",
        "output": f"folder for record, logs and libraries (default: {DEFAULT_OUTPUT})",
        "rest": "seconds that a case waits for the machine to be at rest (default: 180)",
        "plan-only": "say what would be measured and stop",
    },
)
def build(
    console: Console,
    spec: list[str],
    cases: str = "",
    rounds: str = "1",
    again: bool = False,
    graph: str = "",
    jobs: str | None = None,
    output: str = DEFAULT_OUTPUT,
    rest: str = "180",
    plan_only: bool = False,
    json: bool = False,
) -> None:
    """Measure build times beside upstream's own recipe."""
    manner = {"cases": cases, "graph": Path(graph) if graph else None, "again": again, "plan_only": plan_only}
    _measure("build_time.measure", console, json, **manner, **_in_rounds(spec, rounds, jobs, output, rest))


@task(
    help={
        "spec": "buildspec to measure; may be repeated (default: five models of different kinds)",
        "profiles": "profiles to build, such as balanced,upstream (default: all)",
        "rounds": "how often each library runs each model, the libraries in turn (default: 9)",
        "output": f"folder for record, report and picture (default: {DEFAULT_OUTPUT})",
        "rest": "seconds that a round waits for the machine to be at rest (default: 180)",
    },
)
def footprint(
    console: Console,
    spec: list[str],
    profiles: str = "",
    rounds: str = "9",
    jobs: str | None = None,
    output: str = DEFAULT_OUTPUT,
    rest: str = "180",
    json: bool = False,
) -> None:
    """Measure size, memory and speed of each profile."""
    _measure("footprint.measure", console, json, profiles=profiles, **_in_rounds(spec, rounds, jobs, output, rest))


@task(
    help={
        "spec": "buildspec that was built here; may be repeated (default: demo, multi-model and transformer)",
        "rounds": "how often each setting runs each model, the settings in turn (default: 9)",
        "output": f"folder for record and table (default: {DEFAULT_OUTPUT})",
    },
)
def session(
    console: Console, spec: list[str], rounds: str = "9", output: str = DEFAULT_OUTPUT, json: bool = False
) -> None:
    """Measure what each session setting costs and gains."""
    specs = tuple(map(Path, spec))
    _measure("session_settings", console, json, specs=specs, rounds=whole_number(rounds, "rounds"), output=Path(output))


@task(
    help={
        "target": "the target to build for (default: linux-x64)",
        "profile": "the profile whose build options are tried (default: balanced)",
        "output": f"folder for the table (default: {DEFAULT_OUTPUT})",
    }
)
def build_options(
    console: Console,
    spec: str | None = None,
    target: str = "linux-x64",
    profile: str = "balanced",
    jobs: str | None = None,
    output: str = DEFAULT_OUTPUT,
) -> None:
    """Measure what each build option brings in bytes."""
    _measure(
        "build_options",
        console,
        json=False,
        spec=Path(spec) if spec else demo_spec(),
        target=target,
        profile=profile_named(profile),
        jobs=None if jobs is None else whole_number(jobs, "jobs"),
        output=Path(output),
    )


@task(
    help={
        "models": "which of its models, with commas (default: all)",
        "output": f"folder for record and table (default: {DEFAULT_OUTPUT})",
    }
)
def memory(console: Console, models: str = "", output: str = DEFAULT_OUTPUT, json: bool = False) -> None:
    """Measure how near `cost` comes to a run's memory."""
    names = tuple(filter(None, models.split(",")))
    _measure("activation_memory.measure", console, json, names=names, output=Path(output))


@task(
    help={
        "spec": "buildspec to measure; may be repeated (default: the eight whose models have steps)",
        "rounds": "how often each library runs each model, the libraries in turn (default: 9)",
        "output": f"folder for record, table and outputs (default: {DEFAULT_OUTPUT})",
        "rest": "seconds that a round waits for the machine to be at rest (default: 180)",
    },
)
def preparation(
    console: Console,
    spec: list[str],
    rounds: str = "9",
    jobs: str | None = None,
    output: str = DEFAULT_OUTPUT,
    rest: str = "180",
    json: bool = False,
) -> None:
    """Measure what the steps of models bring."""
    _measure("preparation", console, json, **_in_rounds(spec, rounds, jobs, output, rest))


@task(
    help={
        "spec": "buildspec that was built here; its first model is run (default: the demo)",
        "number": "how many verdicts to ask for of each of two libraries (default: 100)",
        "case": "the one case to run (default: all)",
        "output": f"folder for record, table and libraries (default: {DEFAULT_OUTPUT})",
    }
)
def verdicts(
    console: Console,
    spec: str | None = None,
    number: str = "100",
    case: str = "",
    output: str = DEFAULT_OUTPUT,
    json: bool = False,
) -> None:
    """Measure how often verdicts on budgets are wrong."""
    _measure(
        "budget_verdicts.measure",
        console,
        json,
        spec=Path(spec) if spec else demo_spec(),
        number=whole_number(number, "number"),
        case_name=case,
        output=Path(output),
    )


@task(
    help={
        "parts": "what to measure, with commas: noise,mutants (default: both, which takes hours)",
        "mutants": "how many bytes of each library's code, and of its constants, are changed (default: 300)",
        "each": "how many mutations of every other kind, for each model (default: 40)",
        "output": f"folder for record and tables (default: {DEFAULT_OUTPUT})",
    }
)
def parity(
    console: Console,
    parts: str = "noise,mutants",
    mutants: str = "300",
    each: str = "40",
    output: str = DEFAULT_OUTPUT,
    json: bool = False,
) -> None:
    """Measure what tolerances have to allow and notice."""
    _measure(
        "parity.measure",
        console,
        json,
        parts=parts,
        count=whole_number(mutants, "mutants"),
        of_each_kind=whole_number(each, "each"),
        output=Path(output),
    )
