"""`invoke profile`: what each operator and node takes of one inference."""

import json as json_module
from collections.abc import Sequence
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_data
from ortrim.pipeline.bench.profile import RUNS, Profiled, profile_of_trace, profiles_of
from ortrim.report.profile_terminal import TOP, profile_tables
from ortrim.tasks.boundary import boundary
from ortrim.tasks.counts import count_option
from ortrim.tasks.options import bad_option
from ortrim.tasks.subjects import SUBJECT_HELP, asked_for


@task(
    iterable=["dim"],
    auto_shortflags=False,
    help={
        **SUBJECT_HELP,
        "trace": "read this trace, such as a device's that invoke verify --trace left, instead of making one",
        "case": "the case of this name alone",
        "runs": f"inferences of which the median is told (default: {RUNS})",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
    },
)
def profile(
    _context: Context,
    dim: Sequence[str],
    model: str = "",
    spec: str = "",
    trace: str = "",
    library: str = "",
    case: str = "",
    runs: str = "",
    top: str = "",
    profile: str | None = None,
    cores: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Show what operators and nodes take of an inference."""
    with boundary(json_mode=json) as console:
        most = count_option(top, "top")
        if trace and (model or spec or library or case or dim):
            raise bad_option(
                "trace", trace, "it is read by itself: leave out --model, --spec, --library, --case and --dim"
            )
        if trace:
            found: tuple[Profiled, ...] = (profile_of_trace(Path(trace), Path(output)),)
        else:
            asked = asked_for(model, spec, library=library, dim=dim, profile=profile, cores=cores, output=output)
            found = profiles_of(asked, case, count_option(runs, "runs") or RUNS, console)
        if json:
            console.result(json_module.dumps({"profiles": [to_data(each) for each in found]}, indent=2))
            return
        for each in found:
            console.render(profile_tables(each.profile, most))
            console.note(f"\nopens in ui.perfetto.dev: {each.trace}\n")
