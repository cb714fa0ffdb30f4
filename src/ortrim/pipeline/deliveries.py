"""What a run delivered whose models were uploaded: packages, proof and reports, checked against their sums."""

from pathlib import Path

from ortrim.console import Console
from ortrim.core.measurements import VerifyReport
from ortrim.github.artifacts import fetch_artifact, list_artifacts
from ortrim.github.records import Run
from ortrim.package.sums import SUMS, check_sums
from ortrim.pipeline.connection import Connection
from ortrim.pipeline.run_artifacts import FOLDER_NAME, newest
from ortrim.report.write import JSON_NAME, read_report


def fetch_deliveries(connection: Connection, run: Run, prefix: str, destination: Path, console: Console) -> None:
    """Fetch the deliveries of a run, whose names begin with `prefix`, into folders of their names.

    Each is checked; a folder that is there already is left as it is. Raises `NetworkError` as `fetch_artifact` does and
    `PackageError` as `check_sums` does.
    """
    with console.step("fetch what was delivered") as step:
        for artifact in newest(list_artifacts(connection.client, connection.repository, run.id)):
            if artifact.name.startswith(prefix) and FOLDER_NAME.fullmatch(artifact.name):
                folder = destination / artifact.name
                fetch_artifact(connection.client, connection.repository, artifact, folder, step.progress)
                check_sums(folder)
                step.note(f"{folder}: as its {SUMS} says")
        step.note(connection.client.session.traffic.words)


def delivered_reports(destination: Path) -> tuple[VerifyReport, ...]:
    """Return the reports in the folders of deliveries. Raises as `read_report` does."""
    return tuple(read_report(path) for path in sorted(destination.glob(f"*/*.{JSON_NAME}")))
