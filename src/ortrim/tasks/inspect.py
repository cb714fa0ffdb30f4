"""`invoke inspect`: what is in a file."""

import json as json_module
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.pipeline.inspection.files import inspect_file
from ortrim.tasks.boundary import boundary
from ortrim.tasks.inspected import inspected_table
from ortrim.tasks.options import help_for


@task(
    help={
        "file": "an .onnx, .ort, .so, .dylib, .a, .aar, .xcframework or an operator configuration",
        **help_for("json"),
    }
)
def inspect(_context: Context, file: str, json: bool = False) -> None:
    """Show what is in a model, library, package or config."""
    with boundary(json_mode=json) as console:
        content = inspect_file(Path(file))
        if json:
            console.result(json_module.dumps(content, indent=2))
        else:
            console.render(inspected_table(content))
