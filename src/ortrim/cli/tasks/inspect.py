"""`invoke inspect`, `invoke api`: what is in a file, and which functions of the runtime an app calls."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from rich.table import Column, Table

from ortrim.base.console import Console, counted, printable
from ortrim.cli.task import task
from ortrim.errors import UsageError
from ortrim.pins.runtime import default_version, exact_version
from ortrim.report import table as report_table

if TYPE_CHECKING:
    from ortrim.analysis.api import AppApi

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
    from ortrim.analysis.inspect import inspect_file  # noqa: PLC0415 - imports onnx, which api has no need of

    content = inspect_file(Path(file))
    if json:
        console.document(content)
    else:
        console.render(inspected_table(content))


API_SCHEMA: Final = "ortrim-api/1"


@task(
    help={
        "app": "sources of the app, files or folders: C, C++, Objective-C, Swift, Java, Kotlin; also without --app",
        "headers": "folder with ONNX Runtime's headers, as a package's include/onnxruntime (default: the version's)",
        "ort-version": "version of ONNX Runtime that the app is for (default: as in buildspecs)",
    },
)
def api(
    console: Console,
    app: list[str] | None = None,
    headers: str | None = None,
    ort_version: str | None = None,
    json: bool = False,
) -> None:
    """List the C functions that an app calls, for its buildspec."""
    if not app:
        raise UsageError("no-app-sources", "no sources are named", hint="name a folder: invoke api src")
    from ortrim.analysis.api import api_of  # noqa: PLC0415 - imports requests, which inspect has no need of

    version = exact_version(ort_version) if ort_version else default_version()
    found = api_of(tuple(map(Path, app)), Path(headers) if headers else None, version, console)
    if json:
        data = {
            "schema": API_SCHEMA,
            "files": found.files,
            "api": list(found.calls),
            "called_by": found.calls,
            "beyond_inference": list(found.beyond),
            "spare_of_inference": list(found.spare),
        }
        console.document(data)
    else:
        _show_calls(console, found)


def _show_calls(console: Console, found: "AppApi") -> None:
    functions, files = counted(len(found.calls), "C function"), counted(found.files, "source file")
    console.note(f"{functions} of {len(found.known)} in {files}; for the buildspec, exactly these:")
    console.result(f"build_options = {{ api = {_array(found.calls)} }}")
    spare = f"and keeps {len(found.spare)} more, which are not called (--json names them)"
    if not found.beyond:
        console.note(f'api = "inference" has all of them, {spare}')
        return
    console.note(f"api = {_array(('inference', *found.beyond))} has all of them, too, {spare}")
    rows = [(name, printable(found.calls[name])) for name in found.beyond]
    table = report_table.Table(columns=report_table.columns("text", "not in inference", "called by"), rows=rows)
    console.render(table.terminal(rule=False, padding=2))


def _array(names: Iterable[str]) -> str:
    """Write an array of TOML, in several lines when it is long: these are allowed within an inline table's values."""
    line = ", ".join(f'"{name}"' for name in names)
    return f"[{line}]" if len(line) <= 80 else f"[\n{fill(line, 100, initial_indent='  ', subsequent_indent='  ')},\n]"
