"""`invoke build`, `invoke plan`: the main job."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.pipeline.github.build import build_on_github
from ortrim.pipeline.github.uploaded_build import build_uploaded
from ortrim.pipeline.planned import make_planned
from ortrim.pipeline.targets import build as build_targets
from ortrim.tasks.asking import wants_cancel
from ortrim.tasks.boundary import boundary
from ortrim.tasks.github_options import remote_from, require_possible
from ortrim.tasks.options import CONTAINERS, REMOTE, VERIFYING, container_options, help_for, request_from
from ortrim.tasks.rendering import conclude, show_plan


@task(
    iterable=["device", "mount", "engine_flag"],
    help=help_for(
        *(
            "spec",
            "target",
            *CONTAINERS,
            *REMOTE,
            "profile",
            "jobs",
            "output",
            "ndk",
            "verify-cache",
            "plan-only",
            "json",
            *VERIFYING,
        )
    ),
)
def build(
    _context: Context,
    device: list[str],
    mount: list[str],
    engine_flag: list[str],
    spec: str | None = None,
    target: str | None = None,
    executor: str = "native",
    engine: str | None = None,
    profile: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
    ndk: str | None = None,
    verify_cache: bool = False,
    plan_only: bool = False,
    json: bool = False,
    cores: str | None = None,
    least_memory: bool = False,
    trace: bool = False,
    training_run: str = "",
    repo: str | None = None,
    ref: str | None = None,
    token_file: str | None = None,
    upload_models: bool = False,
) -> None:
    """Build trimmed, verified runtimes for models."""
    with boundary(json_mode=json, verify_cache=verify_cache) as console:
        container = container_options(executor, engine, mount, engine_flag)
        here = {
            "device": device,
            "cores": cores,
            "least-memory": least_memory,
            "trace": trace,
            "training-run": training_run,
        }
        words = {"repo": repo, "ref": ref, "token_file": token_file}
        require_possible(executor, upload_models=upload_models, here=here, **words)
        remote = remote_from(repo, ref, token_file)
        request = request_from(
            spec,
            target=target,
            profile=profile,
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
        if plan_only:
            show_plan(console, make_planned(request, console).plan, json_mode=json)
        elif executor == "github":
            at_github = build_uploaded if upload_models else build_on_github
            conclude(console, at_github(request, remote, console, wants_cancel), json_mode=json)
        else:
            conclude(console, build_targets(request, console), json_mode=json)


@task(help=help_for("spec", "target", "profile", "json"))
def plan(
    _context: Context,
    spec: str | None = None,
    target: str | None = None,
    profile: str | None = None,
    json: bool = False,
) -> None:
    """Show what a build would do, without compiling anything."""
    with boundary(json_mode=json) as console:
        planned = make_planned(request_from(spec, target=target, profile=profile), console)
        show_plan(console, planned.plan, json_mode=json)
