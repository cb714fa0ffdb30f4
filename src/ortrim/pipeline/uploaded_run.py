"""A run whose models were uploaded: followed to its end, its models removed, its deliveries brought home."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ortrim.console import Console
from ortrim.core.measurements import VerifyReport
from ortrim.errors import BuildError, Diagnostic, ExitCode, NetworkError
from ortrim.github.git_objects import remove_ref
from ortrim.github.records import Run
from ortrim.pipeline.connection import Connection
from ortrim.pipeline.deliveries import delivered_reports, fetch_deliveries
from ortrim.pipeline.dispatch_records import Kept
from ortrim.pipeline.failures import gravest_failure
from ortrim.pipeline.run_followed import Watch, followed, in_sight


def delivered(watch: Watch, run: Run, kept: Kept) -> tuple[VerifyReport, ...]:
    """Follow a run whose models were uploaded, remove them, and bring its deliveries home.

    A run that failed because its reports tell of failures gives those. Raises as `follow` and `fetch_deliveries` do,
    and `BuildError` `delivery-incomplete`.
    """
    with removed_on_error(watch, kept, lambda error: error.exit_code in {ExitCode.INTERRUPTED, ExitCode.NETWORK}):
        failure = _failure_of(watch, run, kept)
    remove_models(watch.connection, kept, watch.console)
    attempt = f"-{run.run_attempt}" if run.run_attempt > 1 else ""
    folder = kept.file.parents[1] / f"{run.id}{attempt}"
    with in_sight(watch, run, kept, over=True):
        prefix = f"delivered-{kept.file.parents[2].name}-"
        fetch_deliveries(watch.connection, run, prefix, folder, watch.console)
    return _judged(delivered_reports(folder), {target for target, _ in kept.record.jobs}, failure, run)


def remove_models(connection: Connection, kept: Kept, console: Console) -> None:
    """Remove what was uploaded for a run; where that fails, say how it is done by hand."""
    try:
        remove_ref(connection.client, connection.repository, kept.record.models)
    except NetworkError as error:
        how = f"git push https://{connection.site} --delete {kept.record.models}"
        console.warn(f"the models are still at GitHub ({error.reference}); to remove them: {how}")


@contextmanager
def removed_on_error(watch: Watch, kept: Kept, may_go_on: Callable[[Diagnostic], bool]) -> Iterator[None]:
    """Remove the models when the block fails, unless there may be a run that still needs them: then say so."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Diagnostic) and error.reference != "run-cancelled" and may_go_on(error):
            watch.console.warn(
                f"the models stay at GitHub, as {kept.record.models}, until the run is taken up or ended"
            )
        else:
            remove_models(watch.connection, kept, watch.console)
            if kept.record.run is None:
                kept.forget()
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
