"""A run from its dispatch to what it left: followed before the user's eyes, taken up again, or given up."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.console import Console, Step
from ortrim.core.plan import BuildPlan
from ortrim.errors import Diagnostic, ExitCode, Interrupted
from ortrim.github.following import follow, kept_in_sight
from ortrim.github.progress import Progress, changes
from ortrim.github.records import Run
from ortrim.github.runs import cancel_run
from ortrim.pipeline.github.connection import Connection
from ortrim.pipeline.github.dispatch_records import Kept
from ortrim.pipeline.github.run_artifacts import fetch_compiled, fetch_there
from ortrim.tools.command import Terminated

UNCERTAIN: Final = frozenset({"run-left", "run-not-found", "run-ambiguous", "github-unexpected-answer"})
"""Diagnostics of a dispatch that may have been carried out all the same."""

WantsCancel = Callable[[Run], bool]
"""Asks the user, who pressed Ctrl-C, whether a run is to be cancelled; otherwise it goes on."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """With what a run is followed: where it is, what the user sees, and how the user is asked."""

    connection: Connection
    console: Console
    wants_cancel: WantsCancel


GONE: Final = frozenset({"artifact-expired", "artifact-missing", "run-not-found"})
PASSING: Final = frozenset({ExitCode.NETWORK, ExitCode.STORAGE, ExitCode.INTERRUPTED})
"""Classes of errors after which what a run left may still be brought home."""


@contextmanager
def forgotten_at_last(kept: Kept) -> Iterator[None]:
    """Forget a dispatch when the block fails for good: its run failed, or what it left is gone or of no use."""
    try:
        yield
    except Diagnostic as error:
        passing = error.exit_code in PASSING and error.reference not in {*GONE, "run-cancelled"}
        if not passing and not kept.has_models:
            kept.forget()
        raise


def bring_home(watch: Watch, run: Run, plan: BuildPlan, kept: Kept) -> None:
    """Follow a run to its end and put what it compiled of a plan into the cache.

    Of a run in which some targets failed, the others are taken before its error is raised. Raises as `follow` and
    `fetch_compiled` do; a record of what failed or is gone is forgotten, so that the next build dispatches anew.
    """
    with forgotten_at_last(kept):
        with in_sight(watch, run, kept) as options:
            _follow_or_save(watch, run, plan, options)
        with in_sight(watch, run, kept, over=True):
            fetch_compiled(watch.connection, run, plan, plan.targets, watch.console)


def _follow_or_save(watch: Watch, run: Run, plan: BuildPlan, options: str) -> None:
    """Follow a run; when jobs of it failed, take what the others left."""
    try:
        followed(watch, run, options)
    except Diagnostic as error:
        if error.exit_code == ExitCode.BUILD:
            with suppress(Diagnostic):
                fetch_there(watch.connection, run, plan, plan.targets, watch.console)
        raise


@contextmanager
def in_sight(watch: Watch, run: Run, kept: Kept | None, *, over: bool = False) -> Iterator[str]:
    """Make whatever ends the block say how to take the run up again; on Ctrl-C, cancel it if the user wants that.

    Nobody is asked for a run that is `over`, or when the system ends us. Gives the words with which `invoke attach`
    finds the run.
    """
    options = _options(watch.connection, kept)
    try:
        with kept_in_sight(run, options):
            yield options
    except Interrupted as left:
        told_to_end = isinstance(left.__context__, Terminated)
        if over or told_to_end or left.reference != "run-left" or not watch.wants_cancel(run):
            raise
        with kept_in_sight(run, options):
            cancel_run(watch.connection.client, watch.connection.repository, run.id)
        raise Interrupted("run-cancelled", "interrupted; the run is being cancelled", where=run.html_url) from None


def followed(watch: Watch, run: Run, options: str) -> Run:
    """Follow a run to its end, showing its jobs and their steps: as a bar, or in a log one line for each change.

    `options` are what `invoke attach` needs to find it. Raises as `follow` does.
    """
    with watch.console.step(f"run {run.id}") as step:
        step.note(run.html_url)
        return follow(watch.connection.client, watch.connection.repository, run, _shown_in(step), options=options)


def _shown_in(step: Step) -> Callable[[Progress], None]:
    last: Progress | None = None

    def show(progress: Progress) -> None:
        nonlocal last
        if step.live:
            step.progress(*progress.steps, progress.words)
        for change in changes(last, progress):
            if change.over or not step.live:
                step.note(change.words)
        last = progress

    return show


def _options(connection: Connection, kept: Kept | None) -> str:
    """Return the words with which `invoke attach` finds a run: where its record is, or without one, where it is."""
    if kept is None:
        return f"--repo {connection.site}"
    return "" if kept.output == Path("artifacts") else f"--output {shlex.quote(str(kept.output))}"
