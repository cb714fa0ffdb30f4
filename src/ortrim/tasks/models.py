"""`invoke convert`, `invoke reduce`: the stages on models, each by itself."""

import shutil
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.operator_config import render_config
from ortrim.core.serialization import to_json
from ortrim.pipeline.planned import convert_models
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for, request_from


@task(help=help_for("spec", "output", "json"))
def convert(_context: Context, spec: str | None = None, output: str = "artifacts", json: bool = False) -> None:
    """Convert a buildspec's models to ORT format."""
    with boundary(json_mode=json) as console:
        models = convert_models(request_from(spec), console)
        folder = Path(output) / models.loaded.spec.name / "models"
        folder.mkdir(parents=True, exist_ok=True)
        for model in models.converted:
            shutil.copyfile(model.path, folder / f"{model.name}.ort")
            console.note(
                f"{folder / model.name}.ort: {model.size_bytes:,} bytes, style {model.style}, level {model.level}"
            )
        if json:
            console.result(to_json(models.converted))


@task(help=help_for("spec", "json"))
def reduce(_context: Context, spec: str | None = None, json: bool = False) -> None:
    """Print the operators and types that a buildspec's models require."""
    with boundary(json_mode=json) as console:
        operators = convert_models(request_from(spec), console).operators
        console.result(to_json(operators) if json else render_config(operators))
