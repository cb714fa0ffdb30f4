"""`invoke cost`: what one inference of a model takes, by its shapes."""

import json as json_module
from pathlib import Path
from typing import Final

from invoke.context import Context

from ortrim.base.json import to_data
from ortrim.cli.boundary import boundary
from ortrim.cli.options import count_option, help_for, request_from, size_option
from ortrim.cli.task import task
from ortrim.cost.proportion import Expectation
from ortrim.cost.report import TOP, cost_tables, proportion_tables
from ortrim.pipeline.request import is_buildspec

SCHEMA: Final = "ortrim-cost/1"


@task(
    positional=["model"],
    iterable=["dim"],
    help={
        "model": "an .onnx file, or a buildspec (each case of its models)",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
        "target": "for a buildspec with a reference model: the target on which it was measured (default: this host's)",
        **help_for("dim", "given", "profile", "output", "json"),
    },
)
def cost(
    _context: Context,
    model: str,
    dim: list[str],
    given: bool = False,
    top: str = "",
    target: str | None = None,
    profile: str | None = None,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Count a model's arithmetic, parameters and memory."""
    from ortrim.cost.proportion import expectations_of, has_reference  # noqa: PLC0415 - imports onnx
    from ortrim.cost.run import costs_of  # noqa: PLC0415 - imports onnx

    with boundary(json_mode=json) as console:
        most = count_option(top, "top")
        costs = costs_of(Path(model), dict(map(size_option, dim)), console, given=given)
        expected: tuple[Expectation, ...] = ()
        if not given and is_buildspec(Path(model)) and has_reference(Path(model)):
            request = request_from(model, target=target, profile=profile, output=output)
            expected = expectations_of(request, costs, console)
        if json:
            data = {
                "schema": SCHEMA,
                "costs": [to_data(each) for each in costs],
                "expectations": [to_data(each) for each in expected],
            }
            console.result(json_module.dumps(data, indent=2))
            return
        for each in costs:
            console.render(cost_tables(each, most))
        if expected:
            console.render(proportion_tables(expected))
