"""`invoke lint`: what is wrong with a model."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.analysis.lint.rules import ModelFindings, lines_of
from ortrim.analysis.lint.run import LintRequest, failure_of, lint_models, write_sarif
from ortrim.base.console import Console, counted, printable
from ortrim.base.json import to_data
from ortrim.cli.boundary import as_data
from ortrim.cli.options import (
    MODELS_OR_BUILDSPECS,
    GivenModels,
    profile_option,
    request_from,
    require_named,
    version_option,
)
from ortrim.cli.task import task

SCHEMA: Final = "ortrim-lint/1"
MOST_PLACES: Final = 5


@task(
    help={
        "model": MODELS_OR_BUILDSPECS,
        "spec": "a buildspec; also without --spec",
        "case": "sizes at which models are run first, as NAME:INPUT=1x3x224x224; may be repeated",
        "data": "recorded inputs, at whose sizes models are run first, an .npz file keyed by input name",
        "no-run": "do not load or run the model",
        "library": "a library, or a buildspec with a build, for the size of operators (default: the buildspec's)",
        "sarif": "also write the findings to this file, for code review",
        "all": f"show all places of each finding (default: {MOST_PLACES} of each)",
    },
)
def lint(
    console: Console,
    models: GivenModels,
    given: bool = False,
    no_run: bool = False,
    library: str = "",
    sarif: str = "",
    all: bool = False,  # noqa: A002 - the option's name
    target: str | None = None,
    json: bool = False,
) -> None:
    """Check models for problems, and say how to fix them."""
    words = models.required("lint").words
    require_named(models.model or ())
    asked = LintRequest(
        models=words,
        request=replace(request_from(target=target), profile=profile_option(models.profile)),
        ort_version=version_option(models.ort_version),
        cases=models.cases(),
        library=library,
        given=given,
        run=not no_run,
    )
    linted = lint_models(asked, console)
    failure = failure_of(linted)
    if sarif:
        write_sarif(linted, Path(sarif))
    if json:
        data = [to_data(each) for each in linted]
        console.document({"schema": SCHEMA, "models": data, "errors": as_data(failure)})
    else:
        for number, each in enumerate(linted):
            _show(console, each, None if all else MOST_PLACES, apart=number > 0)
    if failure:
        raise failure


def _show(console: Console, model: ModelFindings, most: int | None, *, apart: bool) -> None:
    errors = len(model.errors)
    advice = len(model.findings) - errors
    state = ", after its steps" if model.steps else ""
    if apart:
        console.note("")
    console.note(printable(f"{model.model}{state}: {counted(errors, 'error')}, advice: {advice}"))
    for line in lines_of(model, most):
        console.note(printable(f"  {line}"))
