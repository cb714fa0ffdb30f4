"""`invoke runs`, `invoke attach`: builds at GitHub that were dispatched before.

- `invoke workflows`: GitHub's workflow files.
- The command line's words for builds at GitHub, checked.
- Questions to who sits at the terminal.
"""

import json as json_module
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Column, Table

from ortrim.base.console import Console, duration_text, printable
from ortrim.base.json import to_data
from ortrim.cli.options import RemoteOptions
from ortrim.cli.rendering import conclude
from ortrim.cli.task import task
from ortrim.errors import bad_option
from ortrim.github.client import Run
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
    """Return the number of a run. Raises `UsageError` (`bad-option`)."""
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
        _show(console, found)


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
    came = attach_to(number, Path(output), remote, console, wants_cancel)
    if came.reports:
        conclude(console, came.reports, json_mode=json)
    else:
        folders = [str(folder) for folder in came.folders]
        console.result(json_module.dumps({"folders": folders}) if json else "\n".join(folders))


def _show(console: Console, found: tuple[Run, ...]) -> None:
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
