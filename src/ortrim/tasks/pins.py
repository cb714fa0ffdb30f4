"""`invoke pins.update`, `invoke pins.index`: the digests and the indices that builds rest on."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.errors import UsageError
from ortrim.pipeline.unit_index import make_unit_index
from ortrim.sources.update import update_pins
from ortrim.sources.update_images import update_image_pins
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import HELP, help_for, request_from
from ortrim.tools.containers_choice import first_that_works


@task(
    help={
        "version": "ONNX Runtime version, for example 1.21.0",
        "images": "pin the images for --executor container instead",
        "engine": HELP["engine"],
        "mirror": "read addresses that begin with FROM at TO instead (FROM=TO)",
    }
)
def update(
    _context: Context, version: str = "", images: bool = False, engine: str | None = None, mirror: str = ""
) -> None:
    """Pin a version's sources, or the images, by their digests."""
    with boundary() as console:
        if images == bool(version):
            raise UsageError("bad-option", "give either a version or --images", where="pins.update")
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


def _mirrors(mirror: str) -> tuple[tuple[str, str], ...]:
    if not mirror:
        return ()
    prefix, found, replacement = mirror.partition("=")
    if not found:
        raise UsageError("bad-option", f"{mirror!r} is not of the form FROM=TO", where="--mirror")
    return ((prefix, replacement),)
