"""`invoke check-compat`, `api`: would a model run on the runtime that users have, and which functions an app calls."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Final

from ortrim.analysis.api import AppApi, api_of
from ortrim.analysis.compat import CompatibilityAnswer, ModelAnswer, check_compatibility, failure_of
from ortrim.base.console import Console, counted, printable
from ortrim.base.json import to_data, to_json
from ortrim.cli.boundary import as_data
from ortrim.cli.task import task
from ortrim.errors import UsageError
from ortrim.models.operators import GLOBAL_TYPES
from ortrim.models.prepare import files_of
from ortrim.pins.runtime import default_version, exact_version
from ortrim.report.table import Table, columns

HOW: Final = "name a file, a folder, or a pattern in quotes"
COMPAT_HELP = {
    "runtime": "package (.tar.gz, .aar, folder), manifest.json or operator configuration of the runtime",
    "model": "files, folders or patterns of .onnx and .ort models; also without --model",
    "ort-version": "version of ONNX Runtime, for an operator configuration (default: as in buildspecs)",
}


@task(name="check-compat", help=COMPAT_HELP)
def check_compat(
    console: Console,
    model: list[str] | None = None,
    runtime: str = "",
    ort_version: str | None = None,
    json: bool = False,
) -> None:
    """Say whether models would run on users' runtimes."""
    if not runtime:
        hint = "name the users' package: invoke check-compat MODEL.onnx --runtime PACKAGE"
        raise UsageError("bad-usage", "no runtime is named", where="--runtime", hint=hint)
    version = exact_version(ort_version) if ort_version else None
    files = [file for word in model or () for file in files_of(word, (".onnx", ".ort"), HOW)]
    answer = check_compatibility(Path(runtime), files, console, ort_version=version)
    failure = failure_of(answer)
    if json:
        console.result(to_json({**to_data(answer), "errors": as_data(failure)}))
    else:
        _show_answer(console, answer)
    if failure:
        raise failure


def _show_answer(console: Console, answer: CompatibilityAnswer) -> None:
    for model in answer.models:
        console.render(_answer_table(model).terminal(rule=False, padding=2))
        verdict = "fits" if model.fits else "does not fit"
        but = ", if it is loaded as follows" if model.conditions else ""
        converted = f", converted with {model.conversion}" if model.conversion else ""
        console.note(f"{model.model}: {verdict} {answer.runtime}, ONNX Runtime {answer.ort_version}{converted}{but}")
        for line in (
            *model.obstacles,
            *model.conditions,
            *(f"not known: {each}" for each in model.unknowns),
            *(f"tried, fits: {each}" for each in model.remedies),
        ):
            console.note(f"  {line}")
    for words, text in (
        ("smallest change, in the operator configuration, added at its end:", answer.change),
        (f"smallest change, in the operator configuration, in place of {GLOBAL_TYPES}:", answer.replacement),
        ("the same in a buildspec, where paths start at its folder:", answer.buildspec),
    ):
        if text:
            console.note(words)
            console.note(text.rstrip())


def _answer_table(model: ModelAnswer) -> Table:
    """Show what is missing first."""
    rows = []
    for each in sorted(model.operators, key=lambda finding: finding.missing is None):
        words = f"missing: {each.detail}" if each.missing else "is there"
        cells = (f"{each.operator.domain} {each.operator.name}", str(each.operator.opset), ", ".join(each.types), words)
        rows.append(tuple(map(printable, cells)))
    return Table(columns=columns("text", "operator", "opset", "types", "runtime"), rows=rows)


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


def _show_calls(console: Console, found: AppApi) -> None:
    functions, files = counted(len(found.calls), "C function"), counted(found.files, "source file")
    console.note(f"{functions} of {len(found.known)} in {files}; for the buildspec, exactly these:")
    console.result(f"build_options = {{ api = {_array(found.calls)} }}")
    spare = f"and keeps {len(found.spare)} more, which are not called (--json names them)"
    if not found.beyond:
        console.note(f'api = "inference" has all of them, {spare}')
        return
    console.note(f"api = {_array(('inference', *found.beyond))} has all of them, too, {spare}")
    rows = [(name, printable(found.calls[name])) for name in found.beyond]
    table = Table(columns=columns("text", "not in inference", "called by"), rows=rows)
    console.render(table.terminal(rule=False, padding=2))


def _array(names: Iterable[str]) -> str:
    """Write an array of TOML, in several lines when it is long: these are allowed within an inline table's values."""
    line = ", ".join(f'"{name}"' for name in names)
    return f"[{line}]" if len(line) <= 80 else f"[\n{fill(line, 100, initial_indent='  ', subsequent_indent='  ')},\n]"
