"""Which run an earlier dispatch became, and which dispatch a run was started by."""

from pathlib import Path

from ortrim.errors import NetworkError
from ortrim.github.progress import COMPLETED
from ortrim.github.records import Run
from ortrim.github.runs import get_run, latest_runs
from ortrim.pipeline.github.connection import Connection
from ortrim.pipeline.github.dispatch_records import Kept, records_in


def run_to_take_up(
    connection: Connection, output: Path, spec_name: str, jobs: tuple[tuple[str, str], ...]
) -> tuple[Kept, Run] | None:
    """Return an earlier dispatch for all of `jobs`, when its run is still going, or has succeeded and is not here yet.

    Records of it are looked for in the folder `output`; one of which nothing is to come is forgotten. Raises
    `NetworkError`; but a run that is gone is none.
    """
    for kept in records_in(output, spec_name):
        if kept.record.site == str(connection.site) and set(jobs) <= set(kept.record.jobs) and not kept.record.home:
            run = run_of(connection, kept)
            if run is not None and (run.status != COMPLETED or run.conclusion == "success"):
                return kept.with_run(run), run
            if not kept.has_models and (run is not None or not kept.may_be_listed_yet):
                kept.forget()
    return None


def run_of(connection: Connection, kept: Kept) -> Run | None:
    """Return the run of a dispatch, found by its mark where the answer never came; None when there is none."""
    client, repository = connection.client, connection.repository
    if kept.record.run is None:
        runs = latest_runs(client, repository, kept.record.workflow, 100)
        return next((run for run in runs if kept.marks(run)), None)
    try:
        return get_run(client, repository, kept.record.run)
    except NetworkError as error:
        if error.reference != "run-not-found":
            raise
        return None


def record_of(run_id: int, output: Path) -> Kept | None:
    """Return the record of a run in a folder for output. Raises `StorageError` (`record-damaged`)."""
    return next((kept for kept in records_in(output) if kept.record.run == run_id), None)


def record_sought(connection: Connection, run_id: int, output: Path) -> Kept | None:
    """Return the record of a run whose number may never have come; GitHub is asked only where there is such a one."""
    if all(kept.record.run for kept in records_in(output)):
        return None
    return record_marked(get_run(connection.client, connection.repository, run_id), output)


def record_marked(run: Run, output: Path) -> Kept | None:
    """Return the record of a dispatch whose answer never came, by its mark in the run's name."""
    found = next((kept for kept in records_in(output) if kept.record.run is None and kept.marks(run)), None)
    return found.with_run(run) if found else None
