"""`invoke build`, `invoke plan`: the main job.

- `invoke verify`, `invoke report`: proof, again.
- `invoke convert`, `invoke reduce`: the stages on models, each by itself.
- `invoke prepare`: the steps of a buildspec's models, by themselves.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from invoke.context import Context

from ortrim.base.build_bundle import chosen_bundle
from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.base.json import to_json
from ortrim.cli.boundary import boundary
from ortrim.cli.given_models import MODEL_HELP, GivenModels
from ortrim.cli.options import (
    CONTAINERS,
    PROFILES_IN_WORDS,
    REMOTE,
    VERIFYING,
    container_options,
    help_for,
    request_from,
)
from ortrim.cli.rendering import conclude, show_next, show_plan, show_reports
from ortrim.cli.task import task
from ortrim.github.remote_build import build_on_github
from ortrim.github.task import remote_from, require_possible, wants_cancel
from ortrim.github.workflow_files import called_program, calling_workflow
from ortrim.models.operators import render_config
from ortrim.pipeline.building import build as build_targets
from ortrim.pipeline.building import reports_of, verify_again
from ortrim.pipeline.planned import make_planned
from ortrim.pipeline.prediction import predictions
from ortrim.pipeline.preparing import prepare_models, write_prepared
from ortrim.pipeline.request import Request, convert_models


def _models(
    model: list[str] | None, case: list[str] | None, data: str | None, ort_version: str | None, profile: str | None
) -> GivenModels:
    return GivenModels(models=model or (), cases=case or (), data=data, version=ort_version, profile=profile)


def _show_plan(request: Request, console: Console, *, json_mode: bool) -> None:
    plan = make_planned(request, console).plan
    show_plan(console, plan, predictions(plan.targets, request), json_mode=json_mode)


@task(
    positional=[],
    iterable=["model", "device", "mount", "engine_flag", "case"],
    help={
        **MODEL_HELP,
        **help_for("spec", "target", *CONTAINERS, *REMOTE, "profile", "jobs", "output", "ndk", "bundle"),
        **help_for("verify-cache", "plan-only", "json", *VERIFYING),
    },
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
    model: list[str] | None = None,
    case: list[str] | None = None,
    data: str | None = None,
    ort_version: str | None = None,
) -> None:
    """Build trimmed, verified runtimes for models.

    For example:

        ortrim build model.onnx
        ortrim build app.toml --target android
        ortrim build app.toml --target ios --executor github
    """
    with boundary(json_mode=json, verify_cache=verify_cache) as console, chosen_bundle(bundle):
        container = container_options(executor, engine, mount, engine_flag)
        require_possible(executor, repo=repo, ref=ref, workflow=workflow, token_file=token_file)
        remote = remote_from(repo, ref, token_file, workflow)
        request = request_from(
            None,
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
        given = _models(model, case, data, ort_version, profile)
        request = given.request(spec, request, console, to_run=not plan_only and executor != "github")
        if plan_only:
            _show_plan(request, console, json_mode=json)
        elif executor == "github":
            conclude(console, build_on_github(request, remote, console, wants_cancel), json_mode=json)
        else:
            reports = build_targets(request, console)
            conclude(console, reports, json_mode=json)
            if not json:
                show_next(console, reports, request)


@task(
    positional=[],
    iterable=["model", "case"],
    help={**MODEL_HELP, **help_for("spec", "target", "profile", "output", "json")},
)
def plan(
    _context: Context,
    spec: str | None = None,
    target: str | None = None,
    profile: str | None = None,
    json: bool = False,
    output: str = "artifacts",
    model: list[str] | None = None,
    case: list[str] | None = None,
    data: str | None = None,
    ort_version: str | None = None,
) -> None:
    """Show what a build would do, without compiling anything."""
    with boundary(json_mode=json) as console:
        request = request_from(None, target=target, profile=profile, output=output)
        given = _models(model, case, data, ort_version, profile)
        _show_plan(given.request(spec, request, console), console, json_mode=json)


@task(
    positional=[],
    iterable=["model", "case"],
    help={
        **MODEL_HELP,
        "target": "targets to write down, as build takes them (default: none, so that build is for its own machine)",
        "profile": f"profile to write down: {PROFILES_IN_WORDS}",
        "output": "folder to write the buildspec to (default: this one)",
        "github": "also write a workflow that builds it on GitHub with ortrim of this repository: OWNER/NAME, or "
        "OWNER/NAME@REF for another version than v1",
    },
)
def init(
    _context: Context,
    target: str | None = None,
    profile: str | None = None,
    output: str = ".",
    github: str | None = None,
    model: list[str] | None = None,
    case: list[str] | None = None,
    data: str | None = None,
    ort_version: str | None = None,
) -> None:
    """Write a buildspec for models, with test cases.

    For example:

        ortrim init model.onnx --target android
        ortrim init nets/ --github OWNER/ortrim
    """
    with boundary() as console:
        program = called_program(github) if github else None
        given = _models(model, case, data, ort_version, profile)
        file, text = given.draft(Path(output), target, console)
        workflow = calling_workflow(file, program, target) if program else None
        write_atomically(file, text)
        console.note(f"{file}: edit it, then run: ortrim build {file}")
        if workflow:
            write_atomically(*workflow)
            console.note(f"{os.path.relpath(workflow[0])}: builds it on GitHub, once both are pushed with the models")


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
    """Verify an existing build again."""
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
    """Show the report of the last build."""
    with boundary(json_mode=json) as console:
        show_reports(
            console,
            reports_of(request_from(spec, target=target, profile=profile, output=output), console),
            json_mode=json,
        )


@task(help=help_for("spec", "output", "json"))
def convert(_context: Context, spec: str | None = None, output: str = "artifacts", json: bool = False) -> None:
    """Convert a buildspec's models to ORT format."""
    with boundary(json_mode=json) as console:
        require_writable(Path(output))
        models = convert_models(request_from(spec), console)
        folder = Path(output) / models.loaded.spec.name / "models"
        written = tuple(replace(model, path=folder / f"{model.name}.ort") for model in models.converted)
        for model, copy in zip(models.converted, written, strict=True):
            write_atomically(copy.path, model.path.read_bytes())
            console.note(f"{copy.path}: {model.size_bytes:,} bytes, style {model.style}, level {model.level}")
        if json:
            console.result(to_json(written))


@task(help=help_for("spec", "json"))
def reduce(_context: Context, spec: str | None = None, json: bool = False) -> None:
    """Print the operators and types that the models require."""
    with boundary(json_mode=json) as console:
        operators = convert_models(request_from(spec), console).operators
        console.result(to_json(operators) if json else render_config(operators))


@task(
    positional=[],
    iterable=["only"],
    help={
        **help_for("spec", "json"),
        "only": "model of the buildspec, may be repeated (default: all that have steps)",
        "output": "folder to write the prepared models and the reports of their steps to (default: none are written)",
    },
)
def prepare(
    _context: Context, only: Sequence[str], spec: str | None = None, output: str | None = None, json: bool = False
) -> None:
    """Run the steps of models, and show what each changed."""
    with boundary(json_mode=json) as console:
        if output is not None:
            require_writable(Path(output))
        prepared = prepare_models(request_from(spec), tuple(only), console)
        if output is not None:
            write_prepared(prepared, Path(output), console)
        if json:
            console.result(to_json(tuple(each.report for each in prepared)))
