"""What comes back from a farm, which may be anything: fetched within bounds, unpacked without trust, put in place.

- Sending and fetching files over HTTP(S), with addresses that must not be seen.
"""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Final
from urllib.parse import urlsplit

from ortrim.base.archives import open_zip, unpack
from ortrim.base.cache import publish_folder
from ortrim.base.command import stop_request
from ortrim.base.files import require_writable, storage_errors
from ortrim.base.http import TransportError, as_it_is, chunks, new_session, opened, opened_at_last
from ortrim.devices.farms.farm import FarmJob, FarmRun
from ortrim.devices.farms.polling import Transient, persist
from ortrim.devices.harness import BrokenTransport, crash, decode
from ortrim.errors import NetworkError, StorageError, VerifyError

CHUNK_BYTES: Final = 1 << 18
TRANSIENT: Final = frozenset({0, 408, 425, 429, 500, 502, 503, 504})
TOO_LARGE: Final = 413
TALKATIVE: Final = ("botocore", "urllib3")


def may_pass(trouble: TransportError) -> bool:
    """Whether what did not get through may do so the next time."""
    return trouble.status in TRANSIENT


class Upload:
    """A file as the body of a request, read while it is sent, that stops when this thread is asked to."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size
        self._stop = stop_request()

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read():
            yield chunk

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return the next bytes of the body, none at its end."""
        if self._stop is not None:
            self._stop.check()
        chunk = self._file.read(min(size, self._left))
        self._left -= len(chunk)
        return chunk


def keep_addresses_out_of_logs() -> None:
    """Let the libraries that talk to farms write nothing below the level INFO: there they print signed addresses."""
    for name in TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))


def send_file(url: str, path: Path, headers: Mapping[str, str]) -> None:
    """PUT a file to a signed address. Raises `TransportError` and `StorageError`."""
    with storage_errors(path), path.open("rb") as file, new_session(as_it_is) as session:
        body = Upload(file, path.stat().st_size)
        with opened(session, "PUT", url, headers=headers, data=body) as answer:
            if not answer.ok:
                raise TransportError(f"the server answered {answer.status_code}", status=answer.status_code)


def fetch_file(url: str, path: Path, *, most_bytes: int) -> None:
    """Fetch a file of at most `most_bytes`. Raises `TransportError`, `StorageError` and leaves a part of it then."""
    stop = stop_request()
    with storage_errors(path), path.open("wb") as file, opened_at_last(url, as_it_is) as answer:
        if not answer.ok:
            raise TransportError(f"the server answered {answer.status_code}", status=answer.status_code)
        for chunk in chunks(answer, unpacked=True):
            if stop is not None:
                stop.check()
            if file.tell() + len(chunk) > most_bytes:
                raise TransportError(f"it is larger than {most_bytes:,} bytes", status=TOO_LARGE)
            file.write(chunk)


def same_way(url: str, reference: str) -> bool:
    """Whether an address is encrypted, unless the one it is to be like is not either: a stand-in on this machine."""
    return urlsplit(url).scheme in {"https", urlsplit(reference).scheme}


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
        what, hint = "the results need a new folder", "remove it, or name another one"
        raise StorageError("path-in-the-way", what, where=str(destination), hint=hint)
    require_writable(destination)


def keep(destination: Path, fill: Callable[[Path], None]) -> None:
    """Make the destination with what `fill` writes: all of it, or nothing. Raises `StorageError` and what it raises."""
    if not publish_folder(destination, fill):
        require_free(destination)


def farm_run(job: FarmJob, began: float, *, passed: bool, device: str, url: str) -> FarmRun:
    """Return the run that left a job's results at its destination, and the device's log if the farm kept one."""
    log = job.destination / LOG
    return FarmRun(
        passed=passed,
        device=device,
        folder=job.destination / RESULTS,
        log=log if log.is_file() else None,
        url=url,
        seconds=time.monotonic() - began,
    )


def fetch(
    url: str,
    path: Path,
    *,
    most_bytes: int,
    pauses: tuple[float, ...],
    where: str,
) -> None:
    """Fetch one file of a run's, again after a lost connection.

    Raises `NetworkError` `farm-unreachable`, `VerifyError` `farm-results-missing` when the farm refuses it or it is too
    large, and `StorageError`.
    """

    def fetched() -> None:
        try:
            fetch_file(url, path, most_bytes=most_bytes)
        except TransportError as trouble:
            if not may_pass(trouble):
                raise missing(where, str(trouble), "") from None
            what = "the run ended, but its results cannot be fetched"
            hint = "the run has ended; its results are still at the farm"
            lost = NetworkError("farm-unreachable", what, where=where, why=str(trouble), hint=hint)
            raise Transient(lost) from None

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
    if error.code in USELESS:
        return VerifyError(
            "farm-results-missing",
            "the results that came back are unusable",
            where=where,
            why=str(error.why or error.what),
        )
    if error.code in HARMFUL:
        hint = "do not use them: the harness does not write such results"
        return StorageError(error.code, f"the archive of results {error.what}", where=where, why=error.why, hint=hint)
    return error
