"""`invoke release.check`, `invoke release.draft`, `invoke release.publish`: what was delivered, for everybody."""

from importlib.metadata import version
from pathlib import Path

from ortrim.base.console import Console
from ortrim.cli.task import task
from ortrim.errors import bad_option
from ortrim.github.release import draft_release, expected_deliveries, publish_release, require_signed
from ortrim.github.workflow_files import released_specs


@task(
    help={
        "tag": "tag of the version, such as v1.2.0",
        "files": "folder with one folder for each delivery",
        "attested": "whether the files are attested, which the notes say: true or false",
    }
)
def draft(console: Console, tag: str, files: str, attested: str = "true") -> None:
    """Draft a release with notes, checksums and all files."""
    if attested not in {"true", "false"}:
        raise bad_option("attested", attested[:100], "give true or false")
    expected = expected_deliveries(map(Path, released_specs(Path("buildspecs"))))
    is_attested = attested == "true"
    for name in draft_release(tag, Path(files), Path("CHANGELOG.md"), expected=expected, attested=is_attested):
        console.result(name)


@task(help={"tag": "tag of the version, such as v1.2.0"})
def check(console: Console, tag: str) -> None:
    """Check that a tag is signed and names this version."""
    require_signed(tag, version("ortrim"))
    console.result(tag)


@task(help={"tag": "tag of the version, such as v1.2.0"})
def publish(console: Console, tag: str) -> None:
    """Publish the draft of a release."""
    for name in publish_release(tag):
        console.result(name)
