"""`invoke release.draft`, `invoke release.publish`: what was delivered, for everybody."""

from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from ortrim.cli.boundary import boundary
from ortrim.github.release import draft_release, publish_release


@task(help={"tag": "tag of the version, such as v1.2.0", "files": "folder with one folder for each delivery"})
def draft(_context: Context, tag: str, files: str) -> None:
    """Draft a release with notes, checksums and all files."""
    with boundary() as console:
        for name in draft_release(tag, Path(files), Path("CHANGELOG.md")):
            console.result(name)


@task(help={"tag": "tag of the version, such as v1.2.0"})
def publish(_context: Context, tag: str) -> None:
    """Publish the draft of a release."""
    with boundary() as console:
        for name in publish_release(tag):
            console.result(name)
