"""Models that were uploaded for runs that nobody took up again: the next build at GitHub removes them."""

from contextlib import suppress
from pathlib import Path

from ortrim.console import Console
from ortrim.errors import NetworkError
from ortrim.github.progress import COMPLETED
from ortrim.pipeline.github.connection import Connection
from ortrim.pipeline.github.dispatch_records import Kept, read_record, records_in
from ortrim.pipeline.github.taking_up import run_of
from ortrim.pipeline.github.uploaded_run import give_up_deleted, remove_models
from ortrim.storage.folders import locked_if_free


def sweep_models(connection: Connection, output: Path, console: Console) -> None:
    """Remove the models of runs in this repository that are over, gone, or were never started.

    Records of them are looked for in the folder `output`. What is being uploaded right now stays, and whatever GitHub
    refuses is left for the next time. Raises `StorageError` (`record-damaged`).
    """
    for kept in records_in(output):
        if kept.has_models and kept.record.site == str(connection.site):
            with locked_if_free(kept.file.parent) as free:
                current = read_record(kept.file) if free else None
                if current:
                    with suppress(NetworkError):
                        _sweep(connection, current, console)


def _sweep(connection: Connection, kept: Kept, console: Console) -> None:
    run = run_of(connection, kept)
    if run and run.status == COMPLETED:
        remove_models(connection, kept.with_run(run), console)
    elif run is None and not kept.may_be_listed_yet:
        give_up_deleted(connection, kept, console)
