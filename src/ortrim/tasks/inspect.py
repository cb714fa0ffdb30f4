"""`invoke inspect`: what is in a file."""

import json as json_module
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.tasks import task
from rich.table import Table

from ortrim.pipeline.inspection import inspect_file
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for


@task(help={"file": "an .onnx, an .ort, a .so or an operator configuration", **help_for("json")})
def inspect(_context: Context, file: str, json: bool = False) -> None:
    """Show what is in a model, a library or an operator configuration."""
    with boundary(json_mode=json) as console:
        content = inspect_file(Path(file))
        if json:
            console.result(json_module.dumps(content, indent=2))
        else:
            console.render(_table(content))


def _table(content: Any) -> Table | str:
    """Nest tables as the data nests, one line for each plain value."""
    if isinstance(content, dict):
        table = Table(show_header=False, box=None, padding=(0, 1))
        for key, value in content.items():
            table.add_row(str(key).replace("_", " "), _table(value))
        return table
    if isinstance(content, list):
        if all(not isinstance(item, dict | list) for item in content):
            return ", ".join(map(str, content))
        table = Table(show_header=False, box=None, padding=(0, 1))
        for item in content:
            table.add_row(_row(item))
        return table
    return str(content)


def _row(item: Any) -> str:
    values = item.values() if isinstance(item, dict) else item if isinstance(item, list) else [item]
    return "  ".join(", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values)
