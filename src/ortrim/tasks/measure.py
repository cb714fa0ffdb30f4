"""`invoke measure.build`: ortrim beside upstream; the benchmarks travel with the checkout, not with the wheel."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_json
from ortrim.errors import UsageError
from ortrim.storage.shipped import shipped_folder
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import HELP

DEFAULT_OUTPUT: Final = "artifacts/benchmarks"


@task(
    iterable=["spec"],
    help={
        "spec": "buildspec to measure; may be repeated (default: demo, multi-model and transformer)",
        "cases": "what to measure, with commas: upstream,ortrim,three-more (default: all, which takes hours)",
        "rounds": "how often to measure, the cases in turn (default: 1)",
        "again": "measure also what is in the record",
        "graph": "draw the build time by number of operators into this SVG file",
        "jobs": HELP["jobs"],
        "output": f"folder for record, logs and libraries (default: {DEFAULT_OUTPUT})",
        "rest": "seconds that a case waits for the machine to be at rest (default: 180)",
        "plan-only": "say what would be measured and stop",
        "json": HELP["json"],
    },
)
def build(
    _context: Context,
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
    with boundary(json_mode=json) as console:
        benchmark = _benchmark()
        wanted = benchmark.Wanted(
            specs=tuple(map(Path, spec)),
            cases=cases,
            rounds=_number(rounds, "rounds"),
            graph=Path(graph) if graph else None,
            jobs=None if jobs is None else _number(jobs, "jobs"),
            manner=benchmark.Manner(
                output=Path(output), again=again, rest_seconds=_number(rest, "rest", least=0), plan_only=plan_only
            ),
        )
        record = benchmark.measure(wanted, console)
        if json:
            console.result(to_json(record))


def _number(word: str, option: str, least: int = 1) -> int:
    if len(word) <= 4 and word.isascii() and word.isdecimal() and int(word) >= least:
        return int(word)
    hint = f"give a whole number from {least} to 9999"
    raise UsageError("bad-option", f"{word!r} is not possible here", where=f"--{option}", hint=hint)


def _benchmark() -> Any:
    """Return the module `build_time.measure` of `benchmarks`; raises `UsageError` (`no-benchmarks`) in a wheel."""
    folder = shipped_folder("benchmarks")
    if not (folder / "build_time" / "measure.py").is_file():
        what, hint = "measurements need ortrim's source tree", "run: invoke measure.build in a checkout of ortrim"
        raise UsageError("no-benchmarks", what, where=str(folder), hint=hint)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return import_module("build_time.measure")
