"""`invoke pins.update`, `invoke pins.index`: the digests and the indices that builds rest on."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.errors import UsageError
from ortrim.pipeline.unit_index import make_unit_index
from ortrim.sources.update import update_pins
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for, request_from


@task(
    help={
        "version": "ONNX Runtime version, for example 1.21.0",
        "mirror": "read addresses that begin with FROM at TO instead (FROM=TO)",
    }
)
def update(_context: Context, version: str, mirror: str = "") -> None:
    """Pin a version's sources, checking upstream's digests first."""
    with boundary() as console:
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
            console.result(used)


def _mirrors(mirror: str) -> tuple[tuple[str, str], ...]:
    if not mirror:
        return ()
    prefix, found, replacement = mirror.partition("=")
    if not found:
        raise UsageError("bad-option", f"{mirror!r} is not of the form FROM=TO", where="--mirror")
    return ((prefix, replacement),)
