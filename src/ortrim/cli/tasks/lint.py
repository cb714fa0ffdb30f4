"""`invoke lint`, `invoke cost`: what is wrong with a model, and what one inference takes by its shapes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.analysis.cost.memory import ModelCost
from ortrim.analysis.cost.report import TOP, cost_tables, proportion_tables
from ortrim.analysis.lint.rules import ModelFindings, lines_of
from ortrim.base.console import Console, counted, printable
from ortrim.base.json import to_data
from ortrim.cli import options
from ortrim.cli.boundary import as_data
from ortrim.cli.task import task
from ortrim.planning.request import is_buildspec

if TYPE_CHECKING:
    from ortrim.analysis.cost.run import Expectation

SCHEMA: Final = "ortrim-lint/1"
MOST_PLACES: Final = 5


@task(
    help={
        "model": options.MODELS_OR_BUILDSPECS,
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
    models: options.GivenModels,
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
    options.require_named(models.model or ())
    from ortrim.analysis.lint.run import LintRequest, failure_of, lint_models, write_sarif  # noqa: PLC0415 - for lint alone

    asked = LintRequest(
        models=words,
        request=replace(options.request_from(target=target), profile=options.profile_option(models.profile)),
        ort_version=options.version_option(models.ort_version),
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


COST_SCHEMA: Final = "ortrim-cost/1"


@task(
    help={
        "model": f"{options.MODELS_OR_BUILDSPECS}, in each case",
        "spec": "a buildspec; also without --spec",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
        "target": "for a buildspec with a reference model: the target on which it was measured (default: this host's)",
    },
)
def cost(
    console: Console,
    models: options.GivenModels,
    dim: list[str],
    given: bool = False,
    top: str = "",
    target: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Count a model's arithmetic, parameters and memory."""
    from ortrim.analysis.cost.run import CostsAsked, check_sizes, costs_of, expectations_of, has_reference  # noqa: PLC0415 - imports onnx

    most = options.count_option(top, "top")
    words, sizes = models.required("cost").words, dict(map(options.size_option, dim))
    options.require_named(models.model or ())
    check_sizes(words, sizes)
    asked = CostsAsked(
        dimensions=sizes, cases=models.cases(), ort_version=options.version_option(models.ort_version), given=given
    )
    costs: list[ModelCost] = []
    expected: list[Expectation] = []
    for word in words:
        own = costs_of(word, asked, console)
        costs += own
        if not given and is_buildspec(Path(word)) and has_reference(Path(word)):
            request = options.request_from(word, target=target, profile=models.profile, output=output)
            expected += expectations_of(request, own, console)
    if json:
        data = {
            "schema": COST_SCHEMA,
            "costs": [to_data(each) for each in costs],
            "expectations": [to_data(each) for each in expected],
        }
        console.document(data)
        return
    tables = [cost_tables(each, most) for each in costs]
    for number, table in enumerate([*tables, *([proportion_tables(expected)] if expected else [])]):
        if number:
            console.note("")
        console.render(table)
