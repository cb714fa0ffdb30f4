"""`invoke page`: everything about a model on one page."""

from collections.abc import Sequence

from invoke.context import Context

from ortrim.analysis.page import make_model_pages
from ortrim.cli.boundary import boundary
from ortrim.cli.given_models import GivenModels, models_task
from ortrim.cli.options import help_for, request_from


@models_task(
    iterable=["only"],
    help={
        "only": "model of the buildspec, may be repeated (default: all)",
        "no-run": "do not load or run the model for the advice",
        **help_for("target", "output", "json"),
    },
)
def page(
    _context: Context,
    models: GivenModels,
    only: Sequence[str],
    target: str | None = None,
    output: str = "artifacts",
    no_run: bool = False,
    json: bool = False,
) -> None:
    """Write a page about each model: content, cost, results."""
    with boundary(json_mode=json, in_options=models.in_options) as console:
        request = models.request(request_from(target=target, output=output), console)
        pages = make_model_pages(request, tuple(only), console, run=not no_run)
        if json:
            console.document({"pages": [str(path) for path in pages]})
        else:
            for path in pages:
                console.note(str(path))
