"""`invoke init`, `convert`, `reduce`, `prepare`, `bundle`, `page`: what is done with models without building."""

import os
from collections.abc import Sequence
from pathlib import Path

from ortrim.base.build_bundle import VARIABLE
from ortrim.base.console import Console, counted
from ortrim.base.files import require_writable, write_atomically
from ortrim.base.json import to_data, to_json
from ortrim.buildspec.step_specs import WITHOUT_KEYS
from ortrim.cli.options import WORDS, GivenModels, request_from, version_option
from ortrim.cli.task import PROFILES_IN_WORDS, task
from ortrim.errors import UsageError
from ortrim.github.workflow_files import called_program, calling_workflow
from ortrim.models.operators import render_config
from ortrim.package.package import SESSION
from ortrim.planning.models import converted_models, prepare_models, write_converted, write_prepared


@task(
    without=("spec",),
    help={
        "model": f"models: {WORDS}; also without --model",
        "ort-version": "version of ONNX Runtime to write down, such as 1.24.4 or newest (default: the newest "
        "proved one that reads the models and can be had)",
        "target": "targets to write down, as build takes them (default: none, so that build is for its own machine)",
        "profile": f"profile to write down: {PROFILES_IN_WORDS}",
        "output": "folder to write the buildspec to (default: this one)",
        "github": "also write a workflow that builds it on GitHub with ortrim of this repository: OWNER/NAME, or "
        "OWNER/NAME@REF for another version than v1",
    },
)
def init(
    console: Console, models: GivenModels, target: str | None = None, output: str = ".", github: str | None = None
) -> None:
    """Write a buildspec for models, with test cases.

    For example:

        ortrim init model.onnx --target android
        ortrim init nets/ --github OWNER/ortrim
    """
    program = called_program(github) if github else None
    file, text = models.draft(Path(output), target, console)
    workflow = calling_workflow(file, program, target) if program else None
    write_atomically(file, text)
    console.note(f"{file}: edit it, then run: invoke build {file}")
    if workflow:
        write_atomically(*workflow)
        console.note(f"{os.path.relpath(workflow[0])}: builds it on GitHub, once both are pushed with the models")


@task(
    help={
        "output": "folder to write the models and session.json to (default: this one)",
    }
)
def convert(console: Console, models: GivenModels, output: str = ".", json: bool = False) -> None:
    """Convert models to ORT format, with their session.json.

    For example:

        ortrim convert model.onnx
        ortrim convert nets/ --output converted
    """
    folder = Path(output)
    require_writable(folder)
    written = write_converted(converted_models(models.loaded(request_from(), console), console), folder)
    if json:
        console.result(to_json(written))
        return
    for model in written:
        console.note(f"{model.path}: {model.size_bytes:,} bytes, style {model.style}, level {model.level}")
    console.note(f"{folder / SESSION}: the settings of the session that loads them")
    if not models.words:
        console.note("no model was named, so these are the demo's; for yours: invoke convert MODEL.onnx")


@task(
    help={
        "output": "file to write the configuration to, such as required_operators.config (default: print it)",
    }
)
def reduce(console: Console, models: GivenModels, output: str | None = None, json: bool = False) -> None:
    """Print the operators and types that models require.

    For example:

        ortrim reduce model.onnx > required_operators.config
        ortrim reduce nets/ --output required_operators.config
    """
    told = Console(json_mode=True)  # standard output is for a file
    operators = converted_models(models.loaded(request_from(), told), told).operators
    text = to_json(operators) if json else render_config(operators)
    if output is None:
        console.result(text)
    else:
        write_atomically(Path(output), text)
        console.note(f"{output}: {counted(len(operators.operators), 'operator')}")


@task(
    help={
        "step": f"a step for models, by its defaults; may be repeated: {', '.join(WITHOUT_KEYS)}",
        "only": "model of the buildspec, may be repeated (default: all that have steps)",
        "output": "folder to write the prepared models and the reports of their steps to (default: none are written)",
    },
)
def prepare(
    console: Console,
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
    if output is not None:
        require_writable(Path(output))
    if models.in_options and not step:
        raise UsageError("no-steps", "no step is named", hint=f"add --step, one of {', '.join(WITHOUT_KEYS)}")
    prepared = prepare_models(models.loaded(request_from(), console, step), tuple(only), console)
    if output is not None:
        write_prepared(prepared, Path(output), console)
    if json:
        console.result(to_json(tuple(each.report for each in prepared)))


@task(
    without=("case", "data", "profile"),
    help={
        "model": f"models that are fetched, too: {WORDS}; or one buildspec (default: none, for all that are files)",
        "spec": "a buildspec; also without --spec",
        "output": "file to write (default: ortrim-bundle-VERSION.zip)",
    },
)
def bundle(
    console: Console,
    models: GivenModels,
    target: str | None = None,
    output: str | None = None,
    json: bool = False,
) -> None:
    """Write all that builds fetch into one file."""
    from ortrim.pipeline.bundling import make_bundle  # noqa: PLC0415 - it imports what fetches sources

    loaded, request = None, request_from(target=target)
    if models.words:
        in_options = models.in_options
        loaded = models.first_spec(console, request).loaded() if in_options else models.loaded(request, console)
    file, version = None if output is None else Path(output), version_option(models.ort_version)
    path, manifest = make_bundle(loaded, version, target, file, console)
    if json:
        console.document({"path": str(path), **to_data(manifest)})
    else:
        size = path.stat().st_size
        console.note(f"{path}: {counted(len(manifest.files), 'file')}, {counted(size, 'byte')}")
        built = " ".join(models.words or ("MODEL.onnx",))
        console.note(f"build with it where there is no network: {VARIABLE}={path.name} invoke build {built}")


@task(
    help={
        "only": "model of the buildspec, may be repeated (default: all)",
        "no-run": "do not load or run the model for the advice",
    },
)
def page(
    console: Console,
    models: GivenModels,
    only: Sequence[str],
    target: str | None = None,
    output: str = "artifacts",
    no_run: bool = False,
    json: bool = False,
) -> None:
    """Write a page about each model: content, cost, results."""
    from ortrim.analysis.page import make_model_pages  # noqa: PLC0415 - it imports all that is on a page

    request = models.request(request_from(target=target, output=output), console)
    pages = make_model_pages(request, tuple(only), console, run=not no_run)
    if json:
        console.document({"pages": [str(path) for path in pages]})
    else:
        for path in pages:
            console.note(str(path))
