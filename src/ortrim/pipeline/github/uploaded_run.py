"""A run whose models were uploaded: followed to its end, its models removed, its deliveries brought home."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.reports import VerifyReport
from ortrim.errors import BuildError, Diagnostic, ExitCode, NetworkError
from ortrim.github.git_objects import remove_ref
from ortrim.github.records import Run
from ortrim.github.refs import look_at
from ortrim.pipeline.github.connection import Connection
from ortrim.pipeline.github.deliveries import delivered_reports, fetch_deliveries
from ortrim.pipeline.github.dispatch_records import Kept
from ortrim.pipeline.github.run_followed import Watch, followed, forgotten_at_last, in_sight
from ortrim.pipeline.verification.failures import gravest_failure

ENDED: Final = frozenset({"run-cancelled", "run-not-found"})
"""Diagnostics of following a run after which it does not go on."""


def delivered(watch: Watch, run: Run, kept: Kept) -> tuple[VerifyReport, ...]:
    """Follow a run whose models were uploaded, remove them, and bring its deliveries home.

    A run that failed because its reports tell of failures gives those. Raises as `follow` and `fetch_deliveries` do,
    and `BuildError` `delivery-incomplete`.
    """
    with removed_on_error(watch, kept, _may_go_on):
        failure = _failure_of(watch, run, kept)
    kept = remove_models(watch.connection, kept, watch.console)
    with forgotten_at_last(kept):
        folder = _fetched(watch, run, kept)
        reports = _judged(delivered_reports(folder), {target for target, _ in kept.record.jobs}, failure, run)
    kept.at_home()
    return reports


def _may_go_on(error: Diagnostic) -> bool:
    """Whether a run goes on though it is no longer followed."""
    return error.exit_code in {ExitCode.INTERRUPTED, ExitCode.NETWORK} and error.reference not in ENDED


def _fetched(watch: Watch, run: Run, kept: Kept) -> Path:
    attempt = f"-{run.run_attempt}" if run.run_attempt > 1 else ""
    folder = kept.file.parents[1] / f"{run.id}{attempt}"
    with in_sight(watch, run, kept, over=True):
        prefix = f"delivered-{kept.file.parents[2].name}-"
        fetch_deliveries(watch.connection, run, prefix, folder, watch.console)
    return folder


def remove_models(connection: Connection, kept: Kept, console: Console) -> Kept:
    """Remove what was uploaded for a run, and write that down; where that fails, say how it is done by hand."""
    return kept.with_models_removed() if kept.has_models and _are_gone(connection, kept, console) else kept


def give_up(connection: Connection, kept: Kept, console: Console) -> None:
    """Forget a dispatch of which nothing more is to come, once its models are gone from there."""
    if not kept.has_models or _are_gone(connection, kept, console):
        kept.forget()


def give_up_deleted(connection: Connection, kept: Kept, console: Console) -> None:
    """Give up a dispatch whose run is not there, if it was started there.

    Raises `NetworkError` (`repository-not-found`) when that is so only because the token may not see it.
    """
    if kept.record.site == str(connection.site):
        look_at(connection.client, connection.repository)
        give_up(connection, kept, console)


def _are_gone(connection: Connection, kept: Kept, console: Console) -> bool:
    """Remove models, and return whether that could be done."""
    try:
        remove_ref(connection.client, connection.repository, kept.record.models)
    except NetworkError as error:
        how = f"git push https://{connection.site} --delete {kept.record.models}"
        console.warn(f"the models are still at GitHub ({error.reference}); to remove them: {how}")
        return False
    return True


@contextmanager
def removed_on_error(watch: Watch, kept: Kept, may_go_on: Callable[[Diagnostic], bool]) -> Iterator[None]:
    """Remove the models when the block fails, unless there may be a run that still needs them: then say so."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Diagnostic) and may_go_on(error):
            if kept.has_models:
                until = "until the run is taken up or ended, or the next build finds it over"
                watch.console.warn(f"the models stay at GitHub, as {kept.record.models}, {until}")
        else:
            give_up(watch.connection, kept, watch.console)
        raise


def _judged(
    reports: tuple[VerifyReport, ...], targets: set[str], failure: Diagnostic | None, run: Run
) -> tuple[VerifyReport, ...]:
    """Return the reports if there is one of each target and they say themselves what failed."""
    missing = sorted(targets - {report.target for report in reports})
    if failure and (missing or not gravest_failure(reports)):
        raise failure
    if missing:
        what = f"the run has left no report of {', '.join(missing)}"
        raise BuildError("delivery-incomplete", what, where=run.html_url, hint="see the jobs that deliver")
    return reports


def _failure_of(watch: Watch, run: Run, kept: Kept) -> Diagnostic | None:
    """Follow a run and return how its jobs failed, None if they did not."""
    with in_sight(watch, run, kept) as options:
        try:
            followed(watch, run, options)
        except Diagnostic as error:
            if error.exit_code != ExitCode.BUILD or error.reference == "run-cancelled":
                raise
            return error
    return None
