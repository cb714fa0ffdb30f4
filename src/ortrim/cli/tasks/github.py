"""`invoke runs`, `attach`, `fetch`, `workflows`: builds at GitHub, what they left, and the workflows that make them."""

import json as json_module
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from ortrim.base.console import Console, counted, duration_text, printable
from ortrim.base.json import to_data
from ortrim.buildspec.targets import with_identifiers
from ortrim.cli.options import RemoteOptions
from ortrim.cli.rendering import conclude
from ortrim.cli.task import task
from ortrim.errors import bad_option
from ortrim.github.client import Run
from ortrim.github.fetch.offers import ASSEMBLED, Selection
from ortrim.github.fetch.placing import NAME, LockedFile
from ortrim.github.fetch.run import App, Fetched, FetchRequest, fetch_files
from ortrim.github.fetch.snippets import KINDS, fetched_snippet, require_kind
from ortrim.github.remote_build import attach as attach_to
from ortrim.github.remote_build import cancel as cancel_run
from ortrim.github.remote_build import list_runs
from ortrim.github.workflow_files import (
    FOLDER,
    released_specs,
    render_workflows,
    require_rendered,
    write_workflows,
)


def run_number(text: str) -> int:
    """Return the number of a run."""
    if text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0:
        return int(text)
    raise bad_option("run", text[:100], "give the number of a run, which invoke runs shows")


def wants_cancel(run: Run) -> bool:
    """Ask whether a run is to be cancelled; no, when nobody is there or the answer is anything but yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"\nCancel the run {run.id}? Otherwise it continues. [y/N]  ")
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip().lower() in {"y", "yes"}
    except KeyboardInterrupt:
        return False


@task(without=("ref",))
def runs(console: Console, github: RemoteOptions, json: bool = False) -> None:
    """Show the latest builds at GitHub."""
    found = list_runs(github.remote(), console)
    if json:
        console.document([to_data(run) for run in found])
    else:
        _show_runs(console, found)


@task(
    without=("ref", "workflow"),
    help={
        "run": "number of the run, which invoke runs shows",
        "cancel": "cancel the run instead",
    },
)
def attach(
    console: Console,
    run: str,
    github: RemoteOptions,
    cancel: bool = False,
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Follow a build at GitHub again, and continue it."""
    number, remote = run_number(run), github.remote()
    if cancel:
        asked = cancel_run(number, Path(output), remote, console)
        console.note(f"the run {number} is being cancelled" if asked else f"the run {number} had ended already")
        return
    reports, folders = attach_to(number, Path(output), remote, console, wants_cancel)
    if reports:
        conclude(console, reports, json_mode=json)
    else:
        words = [str(folder) for folder in folders]
        console.result(json_module.dumps({"folders": words}) if json else "\n".join(words))


def _show_runs(console: Console, found: tuple[Run, ...]) -> None:
    if not found:
        console.note("no build was dispatched yet")
        return
    columns = (Column(name, no_wrap=name != "url") for name in ("run", "status", "target", "age", "url"))
    table = Table(*columns, box=None, padding=(0, 1))
    for run in found:
        state = run.conclusion or run.status or "unknown"
        table.add_row(str(run.id), *map(printable, (state, _target(run), _age(run.created_at), run.html_url)))
    console.render(table)


def _target(run: Run) -> str:
    """Return what a run builds, by its title, which is `build TARGET [mark]`."""
    return run.display_title.removeprefix("build ").partition(" [")[0]


def _age(created: str) -> str:
    """Return how long ago a run was started, empty when that cannot be said."""
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return ""
    return duration_text(max((datetime.now(UTC) - then).total_seconds(), 0.0)) if then.tzinfo else ""


@task(help={"check": "write nothing; fail if a committed workflow differs from the rendered one"})
def workflows(console: Console, check: bool = False) -> None:
    """Render .github/workflows from its templates."""
    texts = render_workflows(released_specs(Path("buildspecs")))
    if check:
        require_rendered(texts, FOLDER)
        return
    for path in write_workflows(texts, FOLDER):
        console.result(str(path))


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
        "snippet": f"print a few lines for an app's own build instead: {', '.join(KINDS)}",
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
    if snippet is not None:
        require_kind(snippet)
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
    lines = "" if snippet is None else fetched_snippet(snippet, fetched.lock, fetched.output)
    if json:
        console.document({**_fetched_data(fetched), "snippet": lines or None})
    elif lines:
        console.result(lines)
    else:
        _show_fetched(console, fetched)


def _show_fetched(console: Console, fetched: Fetched) -> None:
    """Show what there is now, how large, of which commit, attested or not, locked where."""
    groups = {attestation.words: list[LockedFile]() for attestation in fetched.attestations.values()}
    for file in fetched.lock.files:
        groups[fetched.attestations[file.path].words].append(file)
    for words, files in groups.items():
        console.note(f"{words}:")
        console.render(_fetched_table(files))
    origin, size = fetched.lock.origin, sum(file.size for file in fetched.lock.files)
    there = "are in" if fetched.changed else "were in"
    console.note(f"{counted(len(fetched.lock.files), 'file')} of {counted(size, 'byte')} {there} {fetched.output}")
    console.note(f"{origin.host}/{origin.words}, commit {origin.commit}; locked in {NAME}")


def _fetched_table(files: Sequence[LockedFile]) -> Table:
    columns = (Column(justify="right"), Column(overflow="fold"))
    table = Table(*columns, box=None, padding=(0, 1), show_header=False)
    for file in files:
        table.add_row(counted(file.size, "byte"), printable(file.path))
    return table


def _fetched_data(fetched: Fetched) -> dict[str, Any]:
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
