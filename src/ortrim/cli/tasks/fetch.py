"""`invoke fetch`: what was built, for an app that uses it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from ortrim.base.console import Console, counted, printable
from ortrim.buildspec.targets import with_identifiers
from ortrim.cli.options import RemoteOptions
from ortrim.cli.task import task
from ortrim.cli.tasks.github import run_number
from ortrim.errors import bad_option
from ortrim.github.fetch.offers import ASSEMBLED, Selection
from ortrim.github.fetch.placing import NAME, LockedFile
from ortrim.github.fetch.run import App, Fetched, FetchRequest, fetch_files
from ortrim.github.fetch.snippets import snippet as make_snippet
from ortrim.github.fetch.snippets import snippet_files


@task(
    without=("ref",),
    help={
        "release": "tag of the release to fetch",
        "run": "number of the run to fetch",
        "latest": "fetch the newest successful dispatched run that has the requested files",
        "workflow": "with --latest, a workflow that calls build.yml: its newest successful run on the default branch",
        "spec": "fetch only packages of the buildspec of this name",
        "target": "fetch only these targets: identifiers, globs or prefixes such as 'android', separated by commas",
        "output": "folder for the files (default: the lock file's, else ortrim-runtime)",
        "repo": "GitHub's repository, as [host/]owner/name (default: the lock file's, else this checkout's)",
        "offline": "send no request: take everything from the cache",
        "update": f"change {NAME}",
        "snippet": "print a few lines for an app's own build instead: gradle, cmake, spm or podfile",
    },
)
def fetch(
    console: Console,
    github: RemoteOptions,
    release: str = "",
    run: str | None = None,
    latest: bool = False,
    spec: str = "",
    target: str = "",
    output: str | None = None,
    offline: bool = False,
    update: bool = False,
    snippet: str | None = None,
    json: bool = False,
) -> None:
    """Fetch runtimes into an app, as its lock file says."""
    # What goes on is told on standard error where standard output is for a file.
    told = console if snippet is None else Console(json_mode=True)
    if github.workflow is not None and not latest:
        raise bad_option("workflow", github.workflow[:100], "it goes with --latest; a run's number says which workflow")
    wanted = FetchRequest(
        release=release,
        run=0 if run is None else run_number(run),
        latest=latest,
        selection=Selection(spec=spec, target=with_identifiers(target, ASSEMBLED, note=told.note)),
        offline=offline,
        update=update,
    )
    app = App(folder=Path(), output=None if output is None else Path(output))
    fetched = fetch_files(wanted, github.remote(), app, told)
    lines = "" if snippet is None else make_snippet(snippet, snippet_files(fetched.lock))
    if json:
        console.document({**_data(fetched), "snippet": lines or None})
    elif lines:
        console.result(lines)
    else:
        _show(console, fetched)


def _show(console: Console, fetched: Fetched) -> None:
    """Show what there is now, how large, of which commit, attested or not, locked where."""
    groups = {attestation.words: list[LockedFile]() for attestation in fetched.attestations.values()}
    for file in fetched.lock.files:
        groups[fetched.attestations[file.path].words].append(file)
    for words, files in groups.items():
        console.note(f"{words}:")
        console.render(_table(files))
    origin, size = fetched.lock.origin, sum(file.size for file in fetched.lock.files)
    there = "are in" if fetched.changed else "were in"
    console.note(f"{counted(len(fetched.lock.files), 'file')} of {counted(size, 'byte')} {there} {fetched.output}")
    console.note(f"{origin.host}/{origin.words}, commit {origin.commit}; locked in {NAME}")


def _table(files: Sequence[LockedFile]) -> Table:
    columns = (Column(justify="right"), Column(overflow="fold"))
    table = Table(*columns, box=None, padding=(0, 1), show_header=False)
    for file in files:
        table.add_row(counted(file.size, "byte"), printable(file.path))
    return table


def _data(fetched: Fetched) -> dict[str, Any]:
    origin = fetched.lock.origin
    files = [
        {
            "path": file.path,
            "size_bytes": file.size,
            "sha256": file.sha256,
            "signer": file.signer,
            "attestation": fetched.attestations[file.path].words,
        }
        for file in fetched.lock.files
    ]
    return {
        "repository": f"{origin.host}/{origin.repository}",
        "release": origin.release or None,
        "run": origin.run or None,
        "commit": origin.commit,
        "output": str(fetched.output),
        "changed": fetched.changed,
        "files": files,
    }
