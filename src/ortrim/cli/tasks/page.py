"""`invoke page`: everything about a model on one page."""

from collections.abc import Sequence

from ortrim.analysis.page import make_model_pages
from ortrim.base.console import Console
from ortrim.cli.options import GivenModels, request_from
from ortrim.cli.task import task


@task(
    help={
        "only": "model of the buildspec, may be repeated (default: all)",
        "no-run": "do not load or run the model for the advice",
    },
)
def page(
    console: Console,
    models: GivenModels,
    only: Sequence[str],
    target: str | None = None,
    output: str = "artifacts",
    no_run: bool = False,
    json: bool = False,
) -> None:
    """Write a page about each model: content, cost, results."""
    request = models.request(request_from(target=target, output=output), console)
    pages = make_model_pages(request, tuple(only), console, run=not no_run)
    if json:
        console.document({"pages": [str(path) for path in pages]})
    else:
        for path in pages:
            console.note(str(path))
