"""What a run delivered whose models were uploaded: packages, proof and reports, checked against their sums."""

from functools import partial
from pathlib import Path

from ortrim.console import Console
from ortrim.core.reports import VerifyReport
from ortrim.core.sums import SUMS
from ortrim.errors import Diagnostic, DiagnosticGroup
from ortrim.github.artifacts import fetch_artifact, list_artifacts
from ortrim.github.records import Run
from ortrim.package.sums import check_sums
from ortrim.pipeline.github.connection import Connection
from ortrim.pipeline.github.run_artifacts import FOLDER_NAME, newest
from ortrim.report.write import JSON_NAME, read_report


def fetch_deliveries(connection: Connection, run: Run, prefix: str, destination: Path, console: Console) -> None:
    """Fetch the deliveries of a run, whose names begin with `prefix`, into folders of their names.

    Each is checked before its folder is there; one that is there already is left as it is. Raises `NetworkError` as
    `fetch_artifact` does and `PackageError` as `check_sums` does.
    """
    with console.step("fetch what was delivered") as step:
        for artifact in newest(list_artifacts(connection.client, connection.repository, run.id)):
            if artifact.name.startswith(prefix) and FOLDER_NAME.fullmatch(artifact.name):
                folder = destination / artifact.name
                check = partial(_check, folder)
                fetch_artifact(connection.client, connection.repository, artifact, folder, step.progress, check=check)
                step.note(f"{folder}: as its {SUMS} says")
        step.note(connection.client.session.traffic.words)


def _check(folder: Path, unfinished: Path) -> None:
    """Check what is to become a folder; what is wrong is told of that, since the unfinished one will be gone."""
    try:
        check_sums(unfinished)
    except Diagnostic as error:
        for each in (error, *(error.diagnostics if isinstance(error, DiagnosticGroup) else ())):
            each.where, each.why = (text.replace(str(unfinished), str(folder)) for text in (each.where, each.why))
        raise


def delivered_reports(destination: Path) -> tuple[VerifyReport, ...]:
    """Return the reports in the folders of deliveries. Raises as `read_report` does."""
    return tuple(read_report(path) for path in sorted(destination.glob(f"*/*.{JSON_NAME}")))
