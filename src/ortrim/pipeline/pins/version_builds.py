"""The demo with the last version of ONNX Runtime and with the newest: what a pull request with new pins rests on."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.reports import VerifyReport
from ortrim.core.serialization import to_json
from ortrim.errors import Diagnostic, Interrupted, SourcesError, StorageError
from ortrim.pipeline.converted import Request
from ortrim.pipeline.targets import REPORT, build
from ortrim.report.write import read_report
from ortrim.storage.files import write_atomically
from ortrim.workflows.updates import VersionsUpdate, read_update, refused_by, write_update

LAST: Final = "last"
NEWEST: Final = "newest"


def build_versions(request: Request, folder: Path, console: Console) -> tuple[VerifyReport, ...]:
    """Build a buildspec with the versions in a folder's record and leave their reports there, the last one's first.

    With nothing new there is one report. That the newest cannot be built is written into the record and is no error;
    that the last cannot be built, or a full disk, is one. Raises `SourcesError` `no-record`, and as `build` does.
    """
    update = read_update(folder)
    if update is None:
        hint = "run: invoke pins.update --latest"
        raise SourcesError("no-record", "nothing says which versions to build", where=str(folder), hint=hint)
    last = _built(request, update.last, folder / LAST, console)
    if update.newest == update.last:
        return (last,)
    try:
        return last, _built(request, update.newest, folder / NEWEST, console)
    except (Interrupted, StorageError):
        raise
    except Diagnostic as diagnostic:
        console.warn(f"ONNX Runtime {update.newest} cannot be built: {diagnostic}")
        write_update(replace(update, unbuilt=refused_by(update.newest, diagnostic)), folder)
        return (last,)


def read_built(update: VersionsUpdate, folder: Path) -> tuple[VerifyReport, ...]:
    """Return the reports that `build_versions` left in a folder. Raises as `read_report` does."""
    names = (LAST,) if update.newest == update.last or update.unbuilt else (LAST, NEWEST)
    return tuple(read_report(folder / name / REPORT) for name in names)


def _built(request: Request, version: str, folder: Path, console: Console) -> VerifyReport:
    (report,) = build(replace(request, version=version), console)
    write_atomically(folder / REPORT, to_json(report))
    return report
