"""What comes back from a farm, which may be anything: fetched within bounds, unpacked without trust, put in place."""

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.errors import NetworkError, StorageError, VerifyError
from ortrim.storage.files import require_writable, storage_errors
from ortrim.storage.folders import publish_folder
from ortrim.storage.unpack import unpack
from ortrim.storage.zips import open_zip
from ortrim.verify.devices.farms.crashes import crash
from ortrim.verify.devices.farms.log_transport import BrokenTransport, decode
from ortrim.verify.devices.farms.polling import Transient, persist
from ortrim.verify.devices.farms.transfers import Credentials, TransferFailed, fetch_file

RESULTS: Final = "results"
LOG: Final = "device.log"
LARGEST_ARCHIVE: Final = 256 << 20
LARGEST_LOG: Final = 256 << 20
LARGEST_RESULTS: Final = 1 << 30
USELESS: Final = frozenset({"corrupt-archive", "nothing-unpacked"})
HARMFUL: Final = frozenset({"unsafe-archive", "archive-too-large"})


def require_free(destination: Path) -> None:
    """Find out before a run costs anything whether its results can be kept. Raises `StorageError`."""
    if destination.exists() or destination.is_symlink():
        what, hint = "the results are to go into a new folder", "remove it, or name another one"
        raise StorageError("path-in-the-way", what, where=str(destination), hint=hint)
    require_writable(destination)


def keep(destination: Path, fill: Callable[[Path], None]) -> None:
    """Make the destination with what `fill` writes: all of it, or nothing. Raises `StorageError` and what it raises."""
    if not publish_folder(destination, fill):
        require_free(destination)


def log_of(folder: Path) -> Path | None:
    """Return the device's log in a destination, None when the farm kept none."""
    log = folder / LOG
    return log if log.is_file() else None


def fetch(
    url: str,
    path: Path,
    *,
    most_bytes: int,
    pauses: tuple[float, ...],
    where: str,
    credentials: Credentials | None = None,
) -> None:
    """Fetch one file of a run's, again after a lost connection.

    Raises `NetworkError` `farm-unreachable`, `VerifyError` `farm-results-missing` when the farm refuses it or it is too
    large, and `StorageError`.
    """

    def fetched() -> None:
        failure = _failure(url, path, most_bytes, credentials)
        if failure is not None and failure.transient:
            what = "the run ended, but its results cannot be fetched"
            hint = "the run is over; its results are still at the farm"
            raise Transient(NetworkError("farm-unreachable", what, where=where, why=failure.why, hint=hint))
        if failure is not None:
            raise missing(where, failure.why, "")

    persist(fetched, pauses)


def append_log(part: Path, log: Path) -> None:
    """Add one of a device's logs to those before. Raises `StorageError`."""
    with storage_errors(log), part.open("rb") as source, log.open("ab") as target:
        shutil.copyfileobj(source, target)


def unpack_log(log: Path, folder: Path, where: str) -> bool:
    """Unpack the results that a device printed into its log, into a new folder; returns whether there were any.

    Raises what `unpack_results` raises, and `VerifyError` `farm-results-missing` when parts of them are lost.
    """
    try:
        with storage_errors(log), log.open(encoding="utf-8", errors="replace") as lines:
            payload = decode(lines)
    except BrokenTransport as error:
        raise missing(where, str(error), "") from error
    if payload is None:
        return False
    archive = log.with_name(f".{log.name}.zip")
    with storage_errors(archive):
        archive.write_bytes(payload)
    unpack_results(archive, folder, where)
    archive.unlink()
    return True


def unpack_results(archive: Path, folder: Path, where: str, top: str = "") -> None:
    """Unpack a zip archive's results into a new folder: all of it, or what lies in the folder called `top`.

    Raises `VerifyError` `farm-results-missing` for what is damaged or holds no results, and `StorageError`
    `unsafe-archive` and `archive-too-large` for what must not be unpacked, all of which name `where` they came from.
    """
    try:
        unpack(archive, folder, members={_source(archive, top): ""})
    except StorageError as error:
        raise _of_farm(error, where) from error


def missing(where: str, why: str, url: str, log: Path | None = None) -> VerifyError:
    """Return the diagnostic of a run that ended with a verdict, but without its results; `log` may tell of a crash."""
    what = "the run ended, but its results did not come back"
    why = "\n".join(filter(None, (why, crash(log) if log else "")))
    hint = f"see what the device printed: {url}" if url else ""
    return VerifyError("farm-results-missing", what, where=where, why=why, hint=hint)


def _failure(url: str, path: Path, most_bytes: int, credentials: Credentials | None) -> TransferFailed | None:
    try:
        fetch_file(url, path, most_bytes=most_bytes, credentials=credentials)
    except TransferFailed as failure:
        return failure
    return None


def _source(archive: Path, top: str) -> str:
    """Return the path in the archive of the folder called `top`, wherever it is, after a look at all it claims."""
    with open_zip(archive, str(archive)) as members:
        names = tuple(members.members)
        if sum(member.file_size for member in members.members.values()) > LARGEST_RESULTS:
            what = f"holds more than {LARGEST_RESULTS:,} bytes"
            raise StorageError("archive-too-large", what, where=str(archive))
    parents = {parent for name in names for parent in PurePosixPath(name).parents}
    folders = sorted((len(parent.parts), str(parent)) for parent in parents if parent.name == top)
    if not folders:
        what = f"holds no folder {top!r}, only {', '.join(names[:5]) or 'nothing'}"
        raise StorageError("nothing-unpacked", what, where=str(archive))
    return folders[0][1] if top else ""


def _of_farm(error: StorageError, where: str) -> VerifyError | StorageError:
    if error.reference in USELESS:
        return VerifyError(
            "farm-results-missing",
            "the results that came back are unusable",
            where=where,
            why=str(error.why or error.what),
        )
    if error.reference in HARMFUL:
        hint = "do not use them: the harness makes no such results"
        return StorageError(
            error.reference, f"the archive of results {error.what}", where=where, why=error.why, hint=hint
        )
    return error
