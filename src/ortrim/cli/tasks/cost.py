"""`invoke cost`: what one inference of a model takes, by its shapes."""

from pathlib import Path
from typing import Final

from ortrim.analysis.cost.memory import ModelCost
from ortrim.analysis.cost.report import TOP, cost_tables, proportion_tables
from ortrim.analysis.cost.run import Expectation
from ortrim.base.console import Console
from ortrim.base.json import to_data
from ortrim.cli.options import (
    MODELS_OR_BUILDSPECS,
    GivenModels,
    count_option,
    request_from,
    require_named,
    size_option,
    version_option,
)
from ortrim.cli.task import task
from ortrim.planning.request import is_buildspec

SCHEMA: Final = "ortrim-cost/1"


@task(
    help={
        "model": f"{MODELS_OR_BUILDSPECS}, in each case",
        "spec": "a buildspec; also without --spec",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
        "target": "for a buildspec with a reference model: the target on which it was measured (default: this host's)",
    },
)
def cost(
    console: Console,
    models: GivenModels,
    dim: list[str],
    given: bool = False,
    top: str = "",
    target: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Count a model's arithmetic, parameters and memory."""
    from ortrim.analysis.cost.run import CostsAsked, check_sizes, costs_of, expectations_of, has_reference  # noqa: PLC0415 - imports onnx  # noqa: PLC0415 - imports onnx

    most = count_option(top, "top")
    words, sizes = models.required("cost").words, dict(map(size_option, dim))
    require_named(models.model or ())
    check_sizes(words, sizes)
    asked = CostsAsked(
        dimensions=sizes, cases=models.cases(), ort_version=version_option(models.ort_version), given=given
    )
    costs: list[ModelCost] = []
    expected: list[Expectation] = []
    for word in words:
        own = costs_of(word, asked, console)
        costs += own
        if not given and is_buildspec(Path(word)) and has_reference(Path(word)):
            request = request_from(word, target=target, profile=models.profile, output=output)
            expected += expectations_of(request, own, console)
    if json:
        data = {
            "schema": SCHEMA,
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
