"""`invoke profile`: what each operator and node takes of one inference."""

import json as json_module
from collections.abc import Sequence
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_data
from ortrim.pipeline.bench_subjects import Asked
from ortrim.pipeline.profile import RUNS, Profiled, profile_of_trace, profiles_of
from ortrim.report.profile_terminal import TOP, profile_tables
from ortrim.tasks.bench import DIM_HELP, LIBRARY_HELP, subject_option
from ortrim.tasks.boundary import boundary
from ortrim.tasks.counts import count_option, size_option
from ortrim.tasks.options import help_for, request_from


@task(
    iterable=["dim"],
    auto_shortflags=False,
    help={
        "model": "an .onnx file",
        "spec": "buildspec whose models and cases are profiled (default: the demo)",
        "trace": "read this trace, such as a device's that invoke verify --trace left, instead of making one",
        "library": LIBRARY_HELP,
        "case": "the case of this name alone",
        "dim": DIM_HELP,
        "runs": f"inferences of which the median is told (default: {RUNS})",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
        **help_for("profile", "cores", "output", "json"),
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
        if trace:
            found: tuple[Profiled, ...] = (profile_of_trace(Path(trace), Path(output)),)
        else:
            request = request_from(subject_option(model, spec), profile=profile, cores=cores, output=output)
            asked = Asked(request=request, library=library, dimensions=dict(map(size_option, dim)))
            found = profiles_of(asked, case, count_option(runs, "runs") or RUNS, console)
        if json:
            console.result(json_module.dumps({"profiles": [to_data(each) for each in found]}, indent=2))
            return
        for each in found:
            console.render(profile_tables(each.profile, most))
            console.note(f"\nopens in ui.perfetto.dev: {each.trace}\n")
