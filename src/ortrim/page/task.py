"""`invoke page`: everything about a model on one page."""

import json as json_module
from collections.abc import Sequence

from invoke.context import Context

from ortrim.cli.boundary import boundary
from ortrim.cli.options import help_for, request_from
from ortrim.cli.task import task
from ortrim.page.run import make_model_pages


@task(
    positional=[],
    iterable=["only"],
    help={
        "only": "model of the buildspec, may be repeated (default: all)",
        "no-run": "do not load or run the model for the advice",
        **help_for("spec", "target", "profile", "output", "json"),
    },
)
def page(
    _context: Context,
    only: Sequence[str],
    spec: str | None = None,
    target: str | None = None,
    profile: str | None = None,
    output: str = "artifacts",
    no_run: bool = False,
    json: bool = False,
) -> None:
    """Write a page about each model: content, cost, results."""
    with boundary(json_mode=json) as console:
        request = request_from(spec, target=target, profile=profile, output=output)
        pages = make_model_pages(request, tuple(only), console, run=not no_run)
        if json:
            console.result(json_module.dumps({"pages": [str(path) for path in pages]}, indent=2))
        else:
            for path in pages:
                console.note(str(path))
