"""`invoke build`, `invoke plan`: the main job.

- `invoke verify`, `invoke report`: proof, again.
- `invoke convert`, `invoke reduce`: the stages on models, each by itself.
- `invoke prepare`: the steps of a buildspec's models, by themselves.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from invoke.context import Context

from ortrim.base.build_bundle import chosen_bundle
from ortrim.base.console import Console, counted
from ortrim.base.files import require_writable, write_atomically
from ortrim.base.json import to_json
from ortrim.buildspec.step_specs import WITHOUT_KEYS
from ortrim.cli.boundary import boundary
from ortrim.cli.given_models import MODEL_HELP, WORDS, GivenModels, latest_folders, models_task
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
from ortrim.cli.tasks.github import remote_from, require_possible, wants_cancel
from ortrim.errors import UsageError
from ortrim.github.remote_build import build_on_github
from ortrim.github.workflow_files import called_program, calling_workflow
from ortrim.models.operators import render_config
from ortrim.package.package import SESSION
from ortrim.pipeline.building import build as build_targets
from ortrim.pipeline.building import reports_of, verify_again
from ortrim.planning.planned import make_planned
from ortrim.planning.prediction import predictions
from ortrim.planning.preparing import prepare_models, write_converted, write_prepared
from ortrim.planning.request import Request, converted_models
from ortrim.report.write import JSON_NAME, read_report


def _show_plan(request: Request, console: Console, *, json_mode: bool) -> None:
    plan = make_planned(request, console).plan
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
        remote = remote_from(repo, ref, token_file, workflow)
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
            conclude(console, build_on_github(request, remote, console, wants_cancel), json_mode=json)
        else:
            reports = build_targets(request, console)
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


@models_task(
    without=("spec",),
    help={
        "model": f"models: {WORDS}; also without --model",
        "ort-version": "version of ONNX Runtime to write down, such as 1.24.4 or newest (default: none)",
        "target": "targets to write down, as build takes them (default: none, so that build is for its own machine)",
        "profile": f"profile to write down: {PROFILES_IN_WORDS}",
        "output": "folder to write the buildspec to (default: this one)",
        "github": "also write a workflow that builds it on GitHub with ortrim of this repository: OWNER/NAME, or "
        "OWNER/NAME@REF for another version than v1",
    },
)
def init(
    _context: Context, models: GivenModels, target: str | None = None, output: str = ".", github: str | None = None
) -> None:
    """Write a buildspec for models, with test cases.

    For example:

        ortrim init model.onnx --target android
        ortrim init nets/ --github OWNER/ortrim
    """
    with boundary(in_options=models.in_options) as console:
        program = called_program(github) if github else None
        file, text = models.draft(Path(output), target, console)
        workflow = calling_workflow(file, program, target) if program else None
        write_atomically(file, text)
        console.note(f"{file}: edit it, then run: ortrim build {file}")
        if workflow:
            write_atomically(*workflow)
            console.note(f"{os.path.relpath(workflow[0])}: builds it on GitHub, once both are pushed with the models")


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
        found = tuple(read_report(folder / JSON_NAME) for folder in folders.values())
        if not found:
            found = reports_of(models.request(request_from(target=target, output=output), console), console)
        show_reports(console, found, json_mode=json)


@models_task(
    help={
        "output": "folder to write the models and session.json to (default: this one)",
        **help_for("json"),
    }
)
def convert(_context: Context, models: GivenModels, output: str = ".", json: bool = False) -> None:
    """Convert models to ORT format, with their session.json.

    For example:

        ortrim convert model.onnx
        ortrim convert nets/ --output converted
    """
    with boundary(json_mode=json, in_options=models.in_options) as console:
        folder = Path(output)
        require_writable(folder)
        written = write_converted(converted_models(models.loaded(request_from(), console), console), folder)
        if json:
            console.result(to_json(written))
            return
        for model in written:
            console.note(f"{model.path}: {model.size_bytes:,} bytes, style {model.style}, level {model.level}")
        console.note(f"{folder / SESSION}: how to load them, see docs/reference/session.md")
        if not models.words:
            console.note("no model was named, so these are the demo's; for yours: ortrim convert MODEL.onnx")


@models_task(
    help={
        "output": "file to write the configuration to, such as required_operators.config (default: print it)",
        **help_for("json"),
    }
)
def reduce(_context: Context, models: GivenModels, output: str | None = None, json: bool = False) -> None:
    """Print the operators and types that models require.

    For example:

        ortrim reduce model.onnx > required_operators.config
        ortrim reduce nets/ --output required_operators.config
    """
    with boundary(json_mode=json, in_options=models.in_options) as console:
        told = Console(json_mode=True)  # standard output is for a file
        operators = converted_models(models.loaded(request_from(), told), told).operators
        text = to_json(operators) if json else render_config(operators)
        if output is None:
            console.result(text)
        else:
            write_atomically(Path(output), text)
            console.note(f"{output}: {counted(len(operators.operators), 'operator')}")


@models_task(
    iterable=["only", "step"],
    help={
        "step": f"a step for models, by its defaults; may be repeated: {', '.join(WITHOUT_KEYS)}",
        "only": "model of the buildspec, may be repeated (default: all that have steps)",
        "output": "folder to write the prepared models and the reports of their steps to (default: none are written)",
        **help_for("json"),
    },
)
def prepare(
    _context: Context,
    models: GivenModels,
    only: Sequence[str],
    step: Sequence[str],
    output: str | None = None,
    json: bool = False,
) -> None:
    """Run the steps of models, and show what each changed.

    For example:

        ortrim prepare model.onnx --step simplify --step strip --output .
        ortrim prepare app.toml
    """
    with boundary(json_mode=json, in_options=models.in_options) as console:
        if output is not None:
            require_writable(Path(output))
        if models.in_options and not step:
            raise UsageError("no-steps", "no step is named", hint=f"add --step, one of {', '.join(WITHOUT_KEYS)}")
        prepared = prepare_models(models.loaded(request_from(), console, step), tuple(only), console)
        if output is not None:
            write_prepared(prepared, Path(output), console)
        if json:
            console.result(to_json(tuple(each.report for each in prepared)))
