"""`invoke convert`, `invoke reduce`: the stages on models, each by itself."""

from dataclasses import replace
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.operator_config import render_config
from ortrim.core.serialization import to_json
from ortrim.pipeline.converted import convert_models
from ortrim.storage.files import require_writable, write_atomically
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for, request_from


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
