"""`invoke cost`: what one inference of a model takes, by its shapes."""

import json as json_module
from pathlib import Path
from typing import Final

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_data
from ortrim.errors import UsageError
from ortrim.report.cost_terminal import TOP, cost_tables
from ortrim.tasks.boundary import boundary
from ortrim.tasks.counts import count_option
from ortrim.tasks.options import help_for

LARGEST_SIZE: Final = 2**31 - 1


@task(
    positional=["model"],
    iterable=["dim"],
    help={
        "model": "an .onnx file, or a buildspec (each case of its models)",
        "dim": "size of a dimension that the model leaves open, as NAME=SIZE or INPUT:AXIS=SIZE; may be repeated",
        "top": f"how many operators and nodes to show (default: {TOP}; with --json: all)",
        **help_for("json"),
    },
)
def cost(_context: Context, model: str, dim: list[str], top: str = "", json: bool = False) -> None:
    """Count a model's arithmetic, parameters and memory."""
    from ortrim.pipeline.costs import costs_of  # noqa: PLC0415 - imports onnx

    with boundary(json_mode=json) as console:
        most = count_option(top, "top")
        costs = costs_of(Path(model), dict(map(_size, dim)), console)
        if json:
            console.result(json_module.dumps({"costs": [to_data(each) for each in costs]}, indent=2))
            return
        for each in costs:
            console.render(cost_tables(each, most))


def _size(word: str) -> tuple[str, int]:
    """Read `NAME=SIZE`. Raises `UsageError` (`bad-option`)."""
    name, _, size = word.rpartition("=")
    if not (name and len(size) <= 10 and size.isascii() and size.isdecimal() and int(size) <= LARGEST_SIZE):
        raise UsageError(
            "bad-option", f"{word[:100]!r} is not possible here", where="--dim", hint="write --dim batch=1"
        )
    return name, int(size)
