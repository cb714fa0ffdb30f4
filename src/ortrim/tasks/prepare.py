"""`invoke prepare`: the steps of a buildspec's models, by themselves."""

from collections.abc import Sequence
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_json
from ortrim.pipeline.models.prepared import prepare_models, write_prepared
from ortrim.storage.files import require_writable
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for, request_from


@task(
    positional=[],
    iterable=["only"],
    help={
        **help_for("spec", "json"),
        "only": "model of the buildspec, may be repeated (default: all that have steps)",
        "output": "folder to write the prepared models and the reports of their steps to (default: none are written)",
    },
)
def prepare(
    _context: Context, only: Sequence[str], spec: str | None = None, output: str | None = None, json: bool = False
) -> None:
    """Do the steps of models, and show what each changed."""
    with boundary(json_mode=json) as console:
        if output is not None:
            require_writable(Path(output))
        prepared = prepare_models(request_from(spec), tuple(only), console)
        if output is not None:
            write_prepared(prepared, Path(output), console)
        if json:
            console.result(to_json(tuple(each.report for each in prepared)))
