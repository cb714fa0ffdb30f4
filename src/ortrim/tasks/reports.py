"""`invoke verify`, `invoke report`: proof, again."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.pipeline.targets import reports_of, verify_again
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import VERIFYING, help_for, request_from
from ortrim.tasks.rendering import conclude, show_reports


@task(iterable=["device"], help=help_for("spec", "target", "profile", "output", "json", *VERIFYING))
def verify(
    _context: Context,
    device: list[str],
    spec: str | None = None,
    target: str | None = None,
    profile: str | None = None,
    output: str = "artifacts",
    json: bool = False,
    cores: str | None = None,
    least_memory: bool = False,
    trace: bool = False,
    training_run: str = "",
) -> None:
    """Measure and judge what was built before once more."""
    with boundary(json_mode=json) as console:
        request = request_from(
            spec,
            target=target,
            profile=profile,
            output=output,
            devices=device,
            cores=cores,
            least_memory=least_memory,
            trace=trace,
            training_run=training_run,
        )
        conclude(console, verify_again(request, console), json_mode=json)


@task(help=help_for("spec", "target", "profile", "output", "json"))
def report(
    _context: Context,
    spec: str | None = None,
    target: str | None = None,
    profile: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Show the report of what was built before."""
    with boundary(json_mode=json) as console:
        show_reports(
            console,
            reports_of(request_from(spec, target=target, profile=profile, output=output), console),
            json_mode=json,
        )
