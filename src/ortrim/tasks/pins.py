"""`invoke pins.update`: the digests that builds rest on."""

from invoke.context import Context
from invoke.tasks import task

from ortrim.errors import UsageError
from ortrim.sources.update import update_pins
from ortrim.tasks.boundary import boundary


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


def _mirrors(mirror: str) -> tuple[tuple[str, str], ...]:
    if not mirror:
        return ()
    prefix, found, replacement = mirror.partition("=")
    if not found:
        raise UsageError("bad-option", f"{mirror!r} is not of the form FROM=TO", where="--mirror")
    return ((prefix, replacement),)
