"""Device farms: an app's instrumentation is run on one of their devices, in one job, and its files are brought back.

Waiting for a farm is asking without asking too much, giving up in time, and hearing of Ctrl-C. What comes back may be
anything: it is fetched within bounds, unpacked without trust, and put in place.
"""

import dataclasses
import logging
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol, TypeVar
from urllib.parse import urlsplit

from ortrim.base.archives import open_zip, unpack
from ortrim.base.cache import publish_folder
from ortrim.base.command import stop_request
from ortrim.base.files import require_writable, storage_errors
from ortrim.base.http import TransportError, as_it_is, chunks, new_session, opened, opened_at_last
from ortrim.devices import harness
from ortrim.devices.device import Device, Outcome
from ortrim.devices.facts import NOT_THROTTLED, Thermal
from ortrim.errors import Diagnostic, NetworkError, StorageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunRequest

Tell = Callable[[str], None]
"""Takes what the farm is doing, in a few words: `uploading app.apk`, `waiting for a device`, `running`."""


@dataclass(frozen=True, kw_only=True)
class FarmJob:
    """One run of an instrumentation on one device.

    `name` is what the farm lists the run under, another for each. `device` is in the farm's own words
    (`MediumPhone.arm-34`, `voice/phones`). `results` is the folder on the device whose files are wanted, and
    `destination` a folder of this machine that is not there yet. After `timeout_seconds` on the device the farm ends
    the run; waiting for a free one is not counted, and ends after `queue_seconds`.
    """

    name: str
    app: Path
    test: Path
    device: str
    results: str
    destination: Path
    timeout_seconds: float = 900.0
    queue_seconds: float = 3600.0


@dataclass(frozen=True, kw_only=True)
class FarmRun:
    """A run that ended with a verdict of the instrumentation's own, which is not believed: only its files are.

    `device` is the one that ran it in the farm's words, which may be any of several; `url` is where a person sees the
    run; each is empty when the farm does not say. `folder` holds what lay in the job's `results`, and nothing else;
    `log` is the device's log when the farm keeps one, beside it.
    """

    device: str
    folder: Path
    log: Path | None
    url: str


class Farm(Protocol):
    """A farm, reached with the credentials that its own tools use."""

    @property
    def name(self) -> str:
        """Name on the command line, before the colon: `firebase`, `devicefarm`."""

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, and remove from the farm what costs or counts against a quota where it can be removed.

        Interrupted, it stops the run there. Leaves nothing at the destination when it raises. A `VerifyError` has farm
        and device as its `where`.
        """


Facts = TypeVar("Facts")

ASKED_SECONDS: Final = 0.2
"""How long a thread sleeps before it asks whether it is to stop: only the main thread is interrupted by Ctrl-C."""


@dataclass(frozen=True, kw_only=True)
class FarmTimeouts:
    """How often a farm is queried, and the pauses after which a lost connection is tried again.

    A farm ends a run that takes too long; only when it has not done so after `grace_seconds` more is it done from here.
    """

    interval_seconds: float = 15.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    grace_seconds: float = 300.0


class Transient(Exception):
    """A failure that may be gone the next time: `diagnostic` says what it is if it is not."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.what)
        self.diagnostic = diagnostic


class FarmStage(Enum):
    """How far a run has come."""

    WAITING = auto()
    RUNNING = auto()
    DONE = auto()


Seen = tuple[FarmStage, str, Facts]
"""What was seen of a run: its stage, a few words for the user, and what the farm said."""


class Overdue(Exception):
    """A run has taken longer than it may; `stage` says at what."""

    def __init__(self, stage: FarmStage, seconds: float) -> None:
        super().__init__(f"{stage.name.lower()} for more than {seconds:g} seconds")
        self.stage = stage
        self.seconds = seconds


def pause(seconds: float) -> None:
    """Sleep; raises `KeyboardInterrupt` when this thread is asked to stop."""
    request = stop_request()
    ends = time.monotonic() + seconds
    while True:
        if request is not None:
            request.check()
        left = ends - time.monotonic()
        if left <= 0:
            return
        time.sleep(left if request is None else min(left, ASKED_SECONDS))


def persist(ask: Callable[[], Facts], pauses: tuple[float, ...] = ()) -> Facts:
    """Return what `ask` returns; call it again after each pause as long as it raises `Transient`.

    Raises the last one's diagnostic, and what else `ask` raises. Without pauses it is called once.
    """
    for seconds in pauses:
        try:
            return ask()
        except Transient:
            pause(seconds)
    try:
        return ask()
    except Transient as failure:
        raise failure.diagnostic from None


def follow(
    look: Callable[[], Seen[Facts]], tell: Tell, *, queue_seconds: float, run_seconds: float, interval_seconds: float
) -> Facts:
    """Query a run until it has ended, and report every change; return the farm's last answer.

    It may wait for a device for `queue_seconds`, and then take `run_seconds`; one that has once begun counts as running
    from then on. Raises `Overdue`.
    """
    stage, since, told = FarmStage.WAITING, time.monotonic(), ""
    while True:
        now, words, facts = look()
        if words != told:
            told = words
            tell(told)
        if now is FarmStage.DONE:
            return facts
        if now is FarmStage.RUNNING and stage is FarmStage.WAITING:
            stage, since = FarmStage.RUNNING, time.monotonic()
        seconds = queue_seconds if stage is FarmStage.WAITING else run_seconds
        if time.monotonic() - since >= seconds:
            raise Overdue(stage, seconds)
        pause(interval_seconds)


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
    """PUT a file to a signed address."""
    with storage_errors(path), path.open("rb") as file, new_session(as_it_is) as session:
        body = Upload(file, path.stat().st_size)
        with opened(session, "PUT", url, headers=headers, data=body) as answer:
            if not answer.ok:
                raise TransportError(f"the server answered {answer.status_code}", status=answer.status_code)


def fetch_file(url: str, path: Path, *, most_bytes: int) -> None:
    """Fetch a file of at most `most_bytes`; a part of it is left when that raises."""
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
    """Find out before a run costs anything whether its results can be kept."""
    if destination.exists() or destination.is_symlink():
        what, hint = "the results need a new folder", "remove it, or name another one"
        raise StorageError("path-in-the-way", what, where=str(destination), hint=hint)
    require_writable(destination)


def keep(destination: Path, fill: Callable[[Path], None]) -> None:
    """Make the destination with what `fill` writes: all of it, or nothing."""
    if not publish_folder(destination, fill):
        require_free(destination)


def farm_run(job: FarmJob, device: str, url: str) -> FarmRun:
    """Return the run that left a job's results at its destination, and the device's log if the farm kept one."""
    log = job.destination / LOG
    return FarmRun(device=device, folder=job.destination / RESULTS, log=log if log.is_file() else None, url=url)


def fetch(
    url: str,
    path: Path,
    *,
    most_bytes: int,
    pauses: tuple[float, ...],
    where: str,
) -> None:
    """Fetch one file of a run's, again after a lost connection."""

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


def unpack_log(log: Path, folder: Path, where: str) -> bool:
    """Unpack the results that a device printed into its log, into a new folder; returns whether there were any."""
    try:
        with storage_errors(log), log.open(encoding="utf-8", errors="replace") as lines:
            payload = harness.decode(lines)
    except harness.BrokenTransport as error:
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
    """Unpack a zip archive's results into a new folder: all of it, or what lies in the folder called `top`."""
    try:
        unpack(archive, folder, members={_source(archive, top): ""})
    except StorageError as error:
        if error.code in USELESS:
            what, why = "the results that came back are unusable", str(error.why or error.what)
            raise VerifyError("farm-results-missing", what, where=where, why=why) from error
        if error.code in HARMFUL:
            hint = "do not use them: the harness does not write such results"
            what = f"the archive of results {error.what}"
            raise StorageError(error.code, what, where=where, why=error.why, hint=hint) from error
        raise


def missing(where: str, why: str, url: str, log: Path | None = None) -> VerifyError:
    """Return the diagnostic of a run that ended with a verdict, but without its results; `log` may tell of a crash."""
    what = "the run ended, but its results did not come back"
    why = "\n".join(filter(None, (why, harness.crash(log) if log else "")))
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


RESULTS_FOLDER: Final = "/sdcard/Download/ortrim"
"""Where farms look for results: an app may write there on every version of Android, and farms may read there."""
INSTALL_SECONDS: Final = 300.0
"""For installing and starting the app, laying out its files, and printing the results."""

MakeApks = Callable[[harness.HarnessContent], tuple[Path, Path]]
"""Makes the app that carries what it is given, or raises a `Diagnostic` that says how to make it."""


class FarmDevice(Device):
    """A device of a farm, in the farm's words, which runs everything in one job.

    What came back stays in `folder`, which is ours alone. Whether it is a phone or an emulator is known afterwards.
    """

    def __init__(
        self, *, farm: Farm, device: str, make_apks: MakeApks, folder: Path, tell: Tell = lambda _: None
    ) -> None:
        self.name = f"{farm.name}:{device}"
        self._farm = farm
        self._device = device
        self._make_apks = make_apks
        self._folder = folder
        self._tell = tell
        self._host: HostFacts | None = None

    def run_all(self, requests: Iterable[RunRequest]) -> Iterator[Outcome]:
        """Run all requests on the device."""
        asked = tuple(requests)
        content = harness.harness_content(asked)
        seconds = harness.batch_seconds(asked) + INSTALL_SECONDS
        app, test = self._make_apks(content)
        with storage_errors(self._folder):
            if self._folder.exists():
                shutil.rmtree(self._folder)
            self._folder.parent.mkdir(parents=True, exist_ok=True)
        job = FarmJob(
            name=f"ortrim-{secrets.token_hex(6)}",
            app=app,
            test=test,
            device=self._device,
            results=RESULTS_FOLDER,
            destination=self._folder,
            timeout_seconds=seconds,
        )
        run = self._farm.run(job, self._tell)
        self.url, self.log = run.url, run.log
        if run.device:
            self._tell(f"it ran on {run.device}")
        about = ", ".join(filter(None, (run.device, run.url)))
        where = f"{self.name} ({about})" if about else self.name
        results = harness.read_results(run.folder, content, where, run.log)
        self._host = results.host
        # Neither an emulator's times mean anything, nor those of a phone that throttled.
        self.heat = Thermal(status=max((each.thermal for each in results.runs), default=NOT_THROTTLED)).throttles
        self.time_meaningful = not self.heat and results.host.kind == "physical"
        yield from harness.outcomes(asked, results, run.folder, device=self.name, where=where)

    def facts(self) -> HostFacts:
        """Describe the device as it was after the runs."""
        assert self._host is not None, "nothing has run"
        return dataclasses.replace(self._host, time_meaningful=self.time_meaningful)
