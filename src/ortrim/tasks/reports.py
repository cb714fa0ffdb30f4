"""`invoke verify`, `invoke report`: proof, again."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.pipeline.targets import reports_of, verify_again
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for, request_from
from ortrim.tasks.rendering import conclude, show_reports


@task(help=help_for("spec", "target", "profile", "output", "json"))
def verify(
    _context: Context,
    spec: str | None = None,
    target: str | None = None,
    profile: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Measure and judge what was built before, once more."""
    with boundary(json_mode=json) as console:
        reports = verify_again(request_from(spec, target=target, profile=profile, output=output), console)
        conclude(console, reports, json_mode=json)


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
