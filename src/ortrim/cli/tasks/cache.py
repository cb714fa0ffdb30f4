"""`invoke cache.push` and `cache.pull`: compiled objects as one file."""

from pathlib import Path

from ortrim.base.console import Console, counted
from ortrim.base.json import to_data
from ortrim.cli.task import task
from ortrim.pipeline.object_archive import TOP, ObjectArchive, take_objects, write_objects


@task(help={"output": f"file to write (default: {TOP}.tar.gz)"})
def push(console: Console, output: str = f"{TOP}.tar.gz", json: bool = False) -> None:
    """Write all objects that were compiled here into one file.

    Machines that take it need not compile them again.
    """
    with console.step("write compiled objects"):
        archive = write_objects(Path(output).absolute())
    _show(console, archive, json=json)
    if not json:
        console.note(f"elsewhere: invoke cache.pull FILE-OR-URL {archive.sha256}")


@task(
    help={
        "source": "file that cache.push wrote, or its address",
        "sha256": "its digest, which cache.push printed",
    }
)
def pull(console: Console, source: str, sha256: str, json: bool = False) -> None:
    """Take objects that were compiled elsewhere, by digest.

    Builds find them as if they had been compiled here.
    """
    with console.step("take compiled objects"):
        archive = take_objects(source, sha256)
    _show(console, archive, json=json)


def _show(console: Console, archive: ObjectArchive, *, json: bool) -> None:
    if json:
        console.document(to_data(archive))
        return
    new = f", {archive.added} of them new" if archive.added else ""
    console.note(f"{archive.path}: {counted(archive.objects, 'object')}{new}")
    console.note(f"toolchain's libraries: {', '.join(archive.targets) or 'none'}")
