"""`invoke runs`, `invoke attach`: builds at GitHub that were dispatched before."""

import json as json_module
from datetime import UTC, datetime
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task
from rich.table import Column, Table

from ortrim.console import Console, duration_text, printable
from ortrim.core.serialization import to_data
from ortrim.github.records import Run
from ortrim.pipeline.github.attached import attach as attach_to
from ortrim.pipeline.github.attached import cancel as cancel_run
from ortrim.pipeline.github.attached import list_runs
from ortrim.tasks.asking import wants_cancel
from ortrim.tasks.boundary import boundary
from ortrim.tasks.github_options import remote_from, run_number
from ortrim.tasks.options import help_for
from ortrim.tasks.rendering import conclude


@task(help=help_for("repo", "token-file", "json"))
def runs(_context: Context, repo: str | None = None, token_file: str | None = None, json: bool = False) -> None:
    """Show the latest builds at GitHub."""
    with boundary(json_mode=json) as console:
        found = list_runs(remote_from(repo, token_file=token_file), console)
        if json:
            console.result(json_module.dumps([to_data(run) for run in found], indent=2))
        else:
            _show(console, found)


@task(
    help={
        "run": "number of the run, which invoke runs shows",
        "cancel": "end the run instead",
        **help_for("output", "repo", "token-file", "json"),
    }
)
def attach(
    _context: Context,
    run: str,
    cancel: bool = False,
    output: str = "artifacts",
    repo: str | None = None,
    token_file: str | None = None,
    json: bool = False,
) -> None:
    """Follow a build at GitHub again, and go on with it."""
    with boundary(json_mode=json) as console:
        number, remote = run_number(run), remote_from(repo, token_file=token_file)
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
