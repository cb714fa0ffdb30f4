"""`invoke inspect`: what is in a file."""

import json as json_module
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.tasks import task
from rich.table import Table

from ortrim.console import printable
from ortrim.pipeline.inspection import inspect_file
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for


@task(help={"file": "an .onnx, an .ort, a .so, an .aar or an operator configuration", **help_for("json")})
def inspect(_context: Context, file: str, json: bool = False) -> None:
    """Show what is in a model, a library, an AAR or a config."""
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
            table.add_row(printable(str(key)).replace("_", " "), _table(value))
        return table
    if isinstance(content, list):
        if all(not isinstance(item, dict | list) for item in content):
            return printable(", ".join(map(str, content)))
        table = Table(show_header=False, box=None, padding=(0, 1))
        for item in content:
            table.add_row(printable(_row(item)))
        return table
    return printable(str(content))


def _row(item: Any) -> str:
    """Write the values of an entry in one line, nested ones too; names of fields are left out."""
    if isinstance(item, dict):
        return "  ".join(_row(value) for value in item.values())
    if isinstance(item, list):
        return ", ".join(_row(value) for value in item)
    return "-" if item is None else str(item)
