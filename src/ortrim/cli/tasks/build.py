"""`invoke build`, `plan`, `verify`, `report`: libraries for models, and the proof.

What plans, compiles and verifies is imported when that is to be done: it takes longer than a build of which nothing is
left to do, or than showing a report.
"""

from pathlib import Path

from invoke.context import Context

from ortrim.base.build_bundle import chosen_bundle
from ortrim.base.console import Console
from ortrim.cli.boundary import boundary
from ortrim.cli.given_models import MODEL_HELP, GivenModels, latest_folders, models_task
from ortrim.cli.options import (
    CONTAINERS,
    REMOTE,
    VERIFYING,
    container_options,
    help_for,
    request_from,
    require_possible,
)
from ortrim.cli.rendering import conclude, show_next, show_plan, show_reports
from ortrim.pipeline.finished import finished_reports, reports_of
from ortrim.planning.request import Request
from ortrim.report.write import report_of


def _show_plan(request: Request, console: Console, *, json_mode: bool) -> None:
    from ortrim.planning.planned import planned_for  # noqa: PLC0415 - see above
    from ortrim.planning.prediction import predictions  # noqa: PLC0415

    plan = planned_for(request, console).plan
    show_plan(console, plan, predictions(plan.targets, request), json_mode=json_mode)


@models_task(
    iterable=["device", "mount", "engine_flag"],
    help={
        **help_for("target", *CONTAINERS, *REMOTE, "jobs", "output", "ndk", "bundle"),
        **help_for("verify-cache", "plan-only", "json", *VERIFYING),
    },
)
def build(
    _context: Context,
    models: GivenModels,
    device: list[str],
    mount: list[str],
    engine_flag: list[str],
    target: str | None = None,
    executor: str = "native",
    engine: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
    token_file: str | None = None,
    ndk: str | None = None,
    bundle: str | None = None,
    verify_cache: bool = False,
    plan_only: bool = False,
    json: bool = False,
    cores: str | None = None,
    least_memory: bool = False,
    trace: bool = False,
    training_run: str = "",
    repo: str | None = None,
    ref: str | None = None,
    workflow: str | None = None,
) -> None:
    """Build trimmed, verified runtimes for models.

    For example:

        ortrim build model.onnx
        ortrim build app.toml --target android
        ortrim build app.toml --target ios --executor github
    """
    shown = boundary(json_mode=json, verify_cache=verify_cache, in_options=models.in_options)
    with shown as console, chosen_bundle(bundle):
        container = container_options(executor, engine, mount, engine_flag)
        require_possible(executor, repo=repo, ref=ref, workflow=workflow, token_file=token_file)
        request = request_from(
            target=target,
            jobs=jobs,
            output=output,
            ndk=ndk,
            container=container,
            devices=device,
            cores=cores,
            least_memory=least_memory,
            trace=trace,
            training_run=training_run,
        )
        request = models.request(request, console, to_run=not plan_only and executor != "github")
        if plan_only:
            _show_plan(request, console, json_mode=json)
        elif executor == "github":
            from ortrim.cli.tasks.github import remote_from, wants_cancel  # noqa: PLC0415 - see above
            from ortrim.github.remote_build import build_on_github  # noqa: PLC0415

            remote = remote_from(repo, ref, token_file, workflow)
            conclude(console, build_on_github(request, remote, console, wants_cancel), json_mode=json)
        else:
            reports = finished_reports(request, console)
            if reports is None:
                from ortrim.pipeline import building  # noqa: PLC0415 - see above

                reports = building.build(request, console)
            conclude(console, reports, json_mode=json)
            if not json:
                show_next(console, reports, request)


@models_task(help=help_for("target", "output", "json"))
def plan(
    _context: Context, models: GivenModels, target: str | None = None, json: bool = False, output: str = "artifacts"
) -> None:
    """Show what a build would do, without compiling anything."""
    with boundary(json_mode=json, in_options=models.in_options) as console:
        _show_plan(models.request(request_from(target=target, output=output), console), console, json_mode=json)


@models_task(iterable=["device"], help=help_for("target", "output", "json", *VERIFYING))
def verify(
    _context: Context,
    models: GivenModels,
    device: list[str],
    target: str | None = None,
    output: str = "artifacts",
    json: bool = False,
    cores: str | None = None,
    least_memory: bool = False,
    trace: bool = False,
    training_run: str = "",
) -> None:
    """Verify an existing build again."""
    with boundary(json_mode=json, in_options=models.in_options) as console:
        request = request_from(
            target=target,
            output=output,
            devices=device,
            cores=cores,
            least_memory=least_memory,
            trace=trace,
            training_run=training_run,
        )
        from ortrim.pipeline.building import verify_again  # noqa: PLC0415 - see above

        conclude(console, verify_again(models.request(request, console), console), json_mode=json)


@models_task(
    help={"model": f"{MODEL_HELP['model']}, or the name of what was built", **help_for("target", "output", "json")}
)
def report(
    _context: Context, models: GivenModels, target: str | None = None, output: str = "artifacts", json: bool = False
) -> None:
    """Show the report of the last build.

    For example:

        ortrim report               # of the demo
        ortrim report model.onnx    # of these models, if they were built
        ortrim report model         # of the latest build of this name
    """
    with boundary(json_mode=json, in_options=models.in_options) as console:
        folders = latest_folders(models.words, Path(output), target)
        found = tuple(map(report_of, folders.values()))
        if not found:
            found = reports_of(models.request(request_from(target=target, output=output), console), console)
        show_reports(console, found, json_mode=json)
