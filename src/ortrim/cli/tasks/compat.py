"""`invoke check-compat`: would a model run on the runtime that users have."""

from pathlib import Path
from typing import Final

from ortrim.analysis.compat import CompatibilityAnswer, ModelAnswer, check_compatibility, failure_of
from ortrim.base.console import Console, printable
from ortrim.base.json import to_data, to_json
from ortrim.cli.boundary import as_data, reworded
from ortrim.cli.task import task
from ortrim.errors import UsageError
from ortrim.models.operators import GLOBAL_TYPES
from ortrim.models.prepare import files_of
from ortrim.pins.runtime import exact_version
from ortrim.report.table import Table, columns

HOW: Final = "name a file, a folder, or a pattern in quotes"
COMPAT_HELP = {
    "runtime": "package (.tar.gz, .aar, folder), manifest.json or operator configuration of the runtime",
    "model": "files, folders or patterns of .onnx and .ort models; also without --model",
    "ort-version": "version of ONNX Runtime, for an operator configuration (default: as in buildspecs)",
}


@task(name="check-compat", in_options=True, help=COMPAT_HELP)
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
    if failure := failure_of(answer):
        failure.why = reworded(failure.why)  # our own advice, where others have another program's words
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
