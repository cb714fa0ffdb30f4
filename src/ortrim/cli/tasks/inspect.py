"""`invoke inspect`, `invoke page`: what is in a file, and everything about a model on one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeGuard

from rich.table import Column, Table

from ortrim.analysis.inspect import inspect_file
from ortrim.base.console import Console, printable
from ortrim.cli.options import GivenModels, request_from
from ortrim.cli.task import task

NOTHING: Final = "-"
MOST_COLUMNS: Final = 4
"""What a terminal of 80 columns has room for."""


def inspected_table(content: dict[str, Any]) -> Table:
    """Return the table of what was found in a file; tables nest as the data nests."""
    table = Table(show_header=False, box=None, padding=(0, 1))
    for key, value in content.items():
        table.add_row(_spoken(key), _shown(value))
    return table


def _shown(value: Any) -> Table | str:
    if isinstance(value, dict) and _are_records(list(value.values())):
        return _headed(("", *next(iter(value.values()))), [(name, *each.values()) for name, each in value.items()])
    if isinstance(value, dict):
        return inspected_table(value)
    if isinstance(value, list) and _are_records(value):
        if len(value[0]) > MOST_COLUMNS:
            return _lines([_described(each) for each in value])
        return _headed(tuple(value[0]), [tuple(each.values()) for each in value])
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return _lines([_text(each) for each in value])
    return _text(value)


def _are_records(values: list[Any]) -> TypeGuard[list[dict[str, Any]]]:
    """Whether values are tables with the same keys, so that one head fits all."""
    return bool(values) and all(isinstance(each, dict) and each.keys() == values[0].keys() for each in values)


def _lines(texts: list[str]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 1))
    for text in texts:
        table.add_row(text)
    return table


def _described(record: dict[str, Any]) -> str:
    """Write a record with more values than fit into columns as its first value and the names and values of others."""
    (_, first), *others = record.items()
    return f"{_text(first)}: " + "; ".join(f"{_spoken(name)} {_text(value)}" for name, value in others)


def _headed(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    """Return a table whose first column, a path or a name, is left in one piece."""
    columns = (Column(_spoken(name), overflow="fold", no_wrap=number == 0) for number, name in enumerate(names))
    table = Table(*columns, box=None, padding=(0, 1), header_style="dim")
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    return table


def _text(value: Any) -> str:
    """Write a value in one line, nested ones too."""
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return "  ".join(_text(each) for each in value.values())
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    return printable(str(value))


def _spoken(name: str) -> str:
    return printable(name).replace("_", " ")


@task(
    help={
        "file": "an .onnx, .ort, .so, .dylib, .a, .aar, .xcframework or an operator configuration",
    }
)
def inspect(console: Console, file: str, json: bool = False) -> None:
    """Show what is in a model, library, package or config."""
    content = inspect_file(Path(file))
    if json:
        console.document(content)
    else:
        console.render(inspected_table(content))


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
