"""`invoke pins.update`, `invoke pins.index`: the digests and the indices that builds rest on."""

from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.errors import Diagnostic, UsageError
from ortrim.pipeline.unit_index import make_unit_index
from ortrim.report.step_summary import step_summary
from ortrim.report.write import read_report
from ortrim.sources.update import update_pins
from ortrim.sources.update_actions import update_action_pins
from ortrim.sources.update_images import update_image_pins
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import HELP, help_for, request_from
from ortrim.tools.containers_choice import first_that_works
from ortrim.workflows.proposal import propose as propose_pins
from ortrim.workflows.rendering import FOLDER, released_specs, render_workflows, require_rendered


@task(
    help={
        "version": "ONNX Runtime version, for example 1.21.0",
        "images": "pin the images for --executor container instead",
        "actions": "pin the actions of GitHub's workflows instead",
        "engine": HELP["engine"],
        "mirror": "read addresses that begin with FROM at TO instead (FROM=TO)",
    }
)
def update(
    _context: Context,
    version: str = "",
    images: bool = False,
    actions: bool = False,
    engine: str | None = None,
    mirror: str = "",
) -> None:
    """Pin sources, images or actions by their digests."""
    with boundary() as console:
        if [bool(version), images, actions].count(True) != 1:
            raise UsageError("bad-option", "give either a version, --images or --actions", where="pins.update")
        if actions:
            with console.step("pin the actions") as step:
                path = update_action_pins(mirrors=_mirrors(mirror), announce=step.note)
            console.result(str(path))
            return
        if images:
            with console.step("pin the images") as step:
                usable = first_that_works(engine, lambda _: None, step.note)
                path = update_image_pins(usable, mirrors=_mirrors(mirror), announce=step.note)
            console.result(str(path))
            return
        with console.step(f"pin ONNX Runtime {version}") as step:
            written = update_pins(version, mirrors=_mirrors(mirror), announce=step.note)
        for path in written:
            console.result(str(path))


@task(help=help_for("spec", "target", "jobs"))
def index(_context: Context, spec: str | None = None, target: str | None = None, jobs: str | None = None) -> None:
    """Build everything once to learn which files a library needs."""
    with boundary() as console:
        for made in make_unit_index(request_from(spec, target=target, jobs=jobs), console):
            console.result(str(made.path))
            used = f"{made.units.compiled} of {made.units.total} files give the same library as all of them"
            console.result(used if made.same_bytes else f"{used}, the order of the linker's own tables apart")


@task
def propose(_context: Context) -> None:
    """Open a pull request with the pins that were updated."""
    with boundary() as console:
        reports = tuple(read_report(path) for path in sorted(Path("artifacts").glob("*/*/*/report.json")))
        body = step_summary(reports) or "Nothing was built with these pins.\n"
        address = propose_pins(Path(), body + _rendering_note())
        console.result(address or "nothing to propose: the pins are as they were, or were proposed before")


def _rendering_note() -> str:
    """Return what is left to do for whoever may change workflows, empty when that is nothing."""
    try:
        require_rendered(render_workflows(released_specs(Path("buildspecs"))), FOLDER)
    except Diagnostic:
        return "\nThe workflows are still those of the old pins: run `invoke workflows` on this branch.\n"
    return ""


def _mirrors(mirror: str) -> tuple[tuple[str, str], ...]:
    if not mirror:
        return ()
    prefix, found, replacement = mirror.partition("=")
    if not found:
        raise UsageError("bad-option", f"{mirror!r} is not of the form FROM=TO", where="--mirror")
    return ((prefix, replacement),)
