"""`invoke build`, `plan`, `verify`, `report`: libraries for models, and the proof.

What plans, compiles and verifies is imported when that is to be done: it takes longer than a build of which nothing is
left to do, or than showing a report.
"""

from collections.abc import Sequence
from pathlib import Path

from ortrim.base.build_bundle import chosen_bundle
from ortrim.base.cache import watched_cache
from ortrim.base.console import Console
from ortrim.cli import options
from ortrim.cli.rendering import conclude, show_next, show_plan, show_reports
from ortrim.cli.task import task
from ortrim.pipeline.finished import finished_reports, reports_of
from ortrim.planning.request import Request
from ortrim.report.write import report_of


def _show_plan(request: Request, console: Console, *, json_mode: bool) -> None:
    from ortrim.planning.planned import planned_for  # noqa: PLC0415 - see above
    from ortrim.planning.prediction import predictions  # noqa: PLC0415

    plan = planned_for(request, console).plan
    show_plan(console, plan, predictions(plan.targets, request), json_mode=json_mode)


@task()
def build(
    console: Console,
    models: options.GivenModels,
    verifying: options.Verifying,
    github: options.RemoteOptions,
    mount: Sequence[str],
    engine_flag: Sequence[str],
    package: Sequence[str],
    target: str | None = None,
    executor: str = "native",
    engine: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
    ndk: str | None = None,
    bundle: str | None = None,
    verify_cache: bool = False,
    plan_only: bool = False,
    json: bool = False,
) -> None:
    """Build trimmed, verified runtimes for models.

    For example:

        ortrim build model.onnx
        ortrim build app.toml --target android
        ortrim build app.toml --target ios --executor github
    """
    with watched_cache(console.warn, verify=verify_cache), chosen_bundle(bundle):
        container = options.container_options(executor, engine, mount, engine_flag)
        github.require_possible(executor)
        request = options.request_from(
            target=target, jobs=jobs, output=output, package=package, ndk=ndk, container=container, verifying=verifying
        )
        request = models.request(request, console, to_run=not plan_only and executor != "github")
        if plan_only:
            _show_plan(request, console, json_mode=json)
        elif executor == "github":
            from ortrim.cli.tasks.github import wants_cancel  # noqa: PLC0415 - see above
            from ortrim.github.remote_build import build_on_github  # noqa: PLC0415

            conclude(console, build_on_github(request, github.remote(), console, wants_cancel), json_mode=json)
        else:
            reports = finished_reports(request, console)
            if reports is None:
                from ortrim.pipeline import building  # noqa: PLC0415 - see above

                reports = building.build(request, console)
            conclude(console, reports, json_mode=json)
            if not json:
                show_next(console, reports, request)


@task()
def plan(
    console: Console,
    models: options.GivenModels,
    package: Sequence[str],
    target: str | None = None,
    json: bool = False,
    output: str = "artifacts",
) -> None:
    """Show what a build would do, without compiling anything."""
    request = options.request_from(target=target, output=output, package=package)
    _show_plan(models.request(request, console), console, json_mode=json)


@task()
def verify(
    console: Console,
    models: options.GivenModels,
    verifying: options.Verifying,
    package: Sequence[str],
    target: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Verify an existing build again."""
    request = options.request_from(target=target, output=output, package=package, verifying=verifying)
    from ortrim.pipeline.building import verify_again  # noqa: PLC0415 - see above

    conclude(console, verify_again(models.request(request, console), console), json_mode=json)


@task(help={"model": f"{options.MODEL_HELP}, or the name of what was built"})
def report(
    console: Console,
    models: options.GivenModels,
    package: Sequence[str],
    target: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Show the report of the last build.

    For example:

        ortrim report               # of the demo
        ortrim report model.onnx    # of these models, if they were built
        ortrim report model         # of the latest build of this name
    """
    folders = options.latest_folders(models.words, Path(output), target)
    found = tuple(map(report_of, folders.values()))
    if not found:
        found = reports_of(
            models.request(options.request_from(target=target, output=output, package=package), console), console
        )
    show_reports(console, found, json_mode=json)
