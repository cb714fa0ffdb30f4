"""`invoke api`: the functions of ONNX Runtime's C API that an app calls, for a buildspec."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Final

from rich.table import Table

from ortrim.analysis.api import AppApi, api_of
from ortrim.base.console import Console, counted, printable
from ortrim.cli.task import task
from ortrim.errors import UsageError
from ortrim.pins.runtime import default_version, exact_version

SCHEMA: Final = "ortrim-api/1"


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
    version = exact_version(ort_version) if ort_version else default_version()
    found = api_of(tuple(map(Path, app)), Path(headers) if headers else None, version, console)
    if json:
        data = {
            "schema": SCHEMA,
            "files": found.files,
            "api": list(found.calls),
            "called_by": found.calls,
            "beyond_inference": list(found.beyond),
            "spare_of_inference": list(found.spare),
        }
        console.document(data)
    else:
        _show(console, found)


def _show(console: Console, found: AppApi) -> None:
    functions, files = counted(len(found.calls), "C function"), counted(found.files, "source file")
    console.note(f"{functions} of {len(found.known)} in {files}; for the buildspec, exactly these:")
    console.result(f"build_options = {{ api = {_array(found.calls)} }}")
    spare = f"and keeps {len(found.spare)} more, which are not called (--json names them)"
    if not found.beyond:
        console.note(f'api = "inference" has all of them, {spare}')
        return
    console.note(f"api = {_array(('inference', *found.beyond))} has all of them, too, {spare}")
    table = Table("not in inference", "called by", box=None, padding=(0, 2, 0, 0))
    for name in found.beyond:
        table.add_row(name, printable(found.calls[name]))
    console.render(table)


def _array(names: Iterable[str]) -> str:
    """Write an array of TOML, in several lines when it is long: these are allowed within an inline table's values."""
    line = ", ".join(f'"{name}"' for name in names)
    return f"[{line}]" if len(line) <= 80 else f"[\n{fill(line, 100, initial_indent='  ', subsequent_indent='  ')},\n]"
