"""`invoke hot`: the operators that deserve to be fast."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_json
from ortrim.pipeline.bench.hot import RUNS, find_hot
from ortrim.report.hot_terminal import hot_table
from ortrim.tasks.boundary import boundary
from ortrim.tasks.counts import count_option
from ortrim.tasks.options import help_for, request_from


@task(help={"runs": f"how often each process runs its case (default: {RUNS})", **help_for("spec", "json")})
def hot(_context: Context, spec: str | None = None, runs: str = "", json: bool = False) -> None:
    """Name the operators that take the models' time."""
    with boundary(json_mode=json) as console:
        found = find_hot(request_from(spec), console, count_option(runs, "runs") or RUNS)
        if json:
            console.result(to_json(found))
        else:
            console.render(hot_table(found.operators))
            console.note(f"{found.file} names {sum(each.hot for each in found.operators)} of them as hot")
