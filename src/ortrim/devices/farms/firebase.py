"""Firebase Test Lab, reached through the `gcloud` command with the account and the project that it is set up with.

`gcloud` is run with the user's own configuration, and never quoted with a credential. What it says while a test goes on
is recorded in `tests/unit/devices/data/gcloud`.
"""

import json
import math
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.command import Completed, termination_raises, watch
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.tools import MOST_PRINTED_BYTES, Program, Tool, causes, diagnose, require
from ortrim.devices import kinds
from ortrim.devices.farms import farm
from ortrim.devices.farms.farm import FarmJob, FarmRun, Tell
from ortrim.devices.harness import crash
from ortrim.devices.remote import copy_files
from ortrim.errors import Diagnostic, NetworkError, StorageError, ToolError, VerifyError

DEVICE: Final = re.compile(
    r"(?P<model>[\w.+-]+?)-(?P<version>[A-Za-z0-9.]+)(?:-(?P<locale>[A-Za-z]\w*)-(?P<orientation>portrait|landscape))?",
    re.ASCII,
)
"""A model may have hyphens (`SH-01L`), a version and a locale (`en`, `de_DE`) have none."""
LEAST_SECONDS: Final = 60
"""gcloud takes no shorter time limit."""
LIST_HINT: Final = "gcloud firebase test android models list"


@dataclass(frozen=True, kw_only=True)
class FirebaseDevice:
    """One device in Test Lab's words; its folder in the bucket is called `axis`."""

    model: str
    version: str
    locale: str = "en"
    orientation: str = "portrait"

    @property
    def axis(self) -> str:
        """Name of the device in results."""
        return f"{self.model}-{self.version}-{self.locale}-{self.orientation}"

    @property
    def argument(self) -> str:
        """What `--device` of gcloud takes."""
        return f"model={self.model},version={self.version},locale={self.locale},orientation={self.orientation}"


def named_device(name: str) -> FirebaseDevice:
    """Return the device of a name such as `MediumPhone.arm-34`."""
    match = DEVICE.fullmatch(name)
    if match is None:
        what = "is not a device of Test Lab: the form is MODEL-VERSION or MODEL-VERSION-LOCALE-ORIENTATION"
        hint = f"such as {kinds.FIREBASE}:MediumPhone.arm-34; {LIST_HINT}"
        raise VerifyError("farm-device-unknown", what, where=f"{kinds.FIREBASE}:{name}", hint=hint)
    return FirebaseDevice(**{key: value for key, value in match.groupdict().items() if value})


MOST_LINES: Final = 4
NO_NETWORK: Final = re.compile(
    r"ConnectionError|ConnectionResetError|ConnectTimeout|ReadTimeout|Connection (?:aborted|refused|reset)|BrokenPipe"
    r"|Max retries exceeded|NameResolution|ServerNotFound|Unable to find the server|SSLError|ProxyError|TransportError"
    r"|Network is unreachable|ChunkedEncodingError|IncompleteRead|socket\.timeout|crashed \(TimeoutError\)"
    r"|Cloud storage upload failure"
)


CAUSES: Final = causes("firebase")
"""The first that fits counts."""


def gcloud_error(printed: str, where: str, *, uploading: bool = False, url: str = "") -> Diagnostic:
    """Return the diagnostic of a gcloud command that failed, by what it printed on its standard error.

    `uploading` says that it was about to send files, and `url` where a test can be seen that goes on without it.
    """
    why = said(printed)
    if "No space left on device" in why:
        return StorageError("disk-full", "no space left for the results", where=where, why=why)
    if NO_NETWORK.search(why):
        return unreachable(why, where, uploading=uploading, url=url)
    if known := diagnose(why, CAUSES, where, why, kind=VerifyError):
        return known
    hint = "run the same command again later; https://status.firebase.google.com has known trouble"
    hint = f"{hint}; the test: {url}" if url else hint
    return VerifyError("farm-failed", "Test Lab or gcloud failed", where=where, why=why, hint=hint)


def unreachable(why: str, where: str, *, uploading: bool = False, url: str = "") -> NetworkError:
    """Return the diagnostic of a connection that was lost, or never came about."""
    if uploading:
        what = "the connection to Google was lost during an upload; no test was started"
        return NetworkError("farm-upload-lost", what, where=where, why=why, hint="run the same command again")
    if url:
        what = "the connection to Google was lost; the test may still be running"
        return NetworkError("farm-unreachable", what, where=where, why=why, hint=f"see, or cancel it, at {url}")
    hint = "check the network and the proxy that gcloud uses (gcloud config list proxy/), then run it again"
    return NetworkError("farm-unreachable", "Google cannot be reached", where=where, why=why, hint=hint)


def said(printed: str) -> str:
    """Return what gcloud calls its error, without its address of the command and its advice."""
    lines = [line.rstrip() for line in printed.splitlines()]
    first = next(
        (number for number, line in enumerate(lines) if line.startswith("ERROR:")), max(len(lines) - MOST_LINES, 0)
    )
    told: list[str] = []
    for line in lines[first:]:
        if line.startswith(("If you would like to report", "To search the help text")):
            break
        if line:
            told.append(re.sub(r"^ERROR: (?:\(gcloud[\w.-]*\) )?", "", line).strip())
    return "\n".join(told[:MOST_LINES])


PREPARING_SECONDS: Final = 900.0
"""How much longer than its time limit a test may be running: preparing and cleaning the device counts as that too."""
UPLOAD_SECONDS: Final = 300.0
UPLOAD_BYTES_PER_SECOND: Final = 62_500
"""Half a megabit a second. gcloud itself has no limit: after a lost connection it sends the rest of a file of more than
5 MiB from where it was, and then waits five times five minutes for an answer to what never arrived (seen in 528)."""
BUCKET: Final = re.compile(r"Raw results will be stored in your GCS bucket at \[\S+/storage/browser/([^/\]]+)/")
CREATED: Final = re.compile(r"Test \[([^\]]+)\] has been created in the Google Cloud")
ADDRESS: Final = re.compile(r"Test results will be streamed to \[ (\S+) \]")
STATE: Final = re.compile(r"[\d:]+ Test is (\w+)")
UPLOADING: Final = re.compile(r"Uploading \[(?:.*/)?([^/\]]+)\]")
CONSOLE: Final = "https://console.firebase.google.com"
WORDS: Final = {"Validating": "checking the app", "Pending": "waiting for a device", "Running": "running"}


class MatrixProgress:
    """What gcloud says of a test while it goes on."""

    def __init__(
        self, job: FarmJob, where: str, tell: Tell, *, largest: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`largest` is the size in bytes of the larger of both packages."""
        self._upload_seconds = UPLOAD_SECONDS + largest / UPLOAD_BYTES_PER_SECOND
        self._upload_began = math.inf
        self._job = job
        self._where = where
        self._tell = tell
        self._clock = clock
        self._created_at = math.inf
        self._running_at = math.inf
        self.uploading = False
        self.matrix = ""
        self.bucket = ""
        self.url = ""
        self.cancelled = False

    @property
    def place(self) -> str:
        """Where a test may be seen that this machine has lost sight of; empty while none can have been started."""
        return self.url or (CONSOLE if self.bucket else "")

    def on_output(self, line: str) -> None:
        """Take one line of gcloud's standard error."""
        if match := UPLOADING.search(line):
            self.uploading, self._upload_began = True, self._clock()
            self._tell(f"uploading {match[1]}")
        elif match := BUCKET.search(line):
            self.bucket, self.uploading = match[1], False
        elif match := CREATED.search(line):
            self.matrix, self._created_at = match[1], self._clock()
        elif match := ADDRESS.search(line):
            self.url = match[1]
            self._tell(f"to be seen at {self.url}")
        elif match := STATE.search(line):
            if match[1] == "Running":
                self._running_at = min(self._running_at, self._clock())
            if match[1] in WORDS:
                self._tell(WORDS[match[1]])
        elif "Test matrix has been cancelled" in line:
            self.cancelled = True

    def check(self) -> None:
        """Stop what takes too long: raises `VerifyError` `farm-timeout` and, before a test, `NetworkError`."""
        now = self._clock()
        if self.uploading and now - self._upload_began > self._upload_seconds:
            why = f"a file could not be uploaded in {self._upload_seconds:.0f} seconds"
            raise unreachable(why, self._where, uploading=True)
        if self._running_at == math.inf and now - self._created_at > self._job.queue_seconds:
            what = f"no device was free within {self._job.queue_seconds:g} seconds"
            hint = "take a device with more capacity: gcloud firebase test android list-device-capacities"
            raise VerifyError("farm-timeout", what, where=self._where, hint=self._with_place(hint))
        if now - self._running_at > time_limit(self._job.timeout_seconds) + PREPARING_SECONDS:
            what, hint = "the test did not end long after its time limit", "run the same command again"
            raise VerifyError("farm-timeout", what, where=self._where, hint=self._with_place(hint))

    def tell_what_is_left(self) -> None:
        """Say what became of a test that was stopped."""
        if self.cancelled:
            self._tell(f"cancelled {self.matrix}")
        elif self.place:
            self._tell(f"{self.matrix or 'a test'} may still be running; see, or cancel it, at {self.place}")

    def _with_place(self, hint: str) -> str:
        return f"{hint}; the test: {self.url}" if self.url else hint


def time_limit(seconds: float) -> int:
    """Return a time limit in seconds, as gcloud takes it."""
    return max(math.ceil(seconds), LEAST_SECONDS)


CANCELLED: Final = 19
ENDED: Final = (0, 10, 15, 18)
"""Exit codes with which gcloud prints an outcome: passed or flaky, failed, inconclusive, skipped."""
NO_OUTCOME: Final = "Tool Results service did not provide a roll-up test outcome"


ENDS: Final[dict[str, tuple[str, str, str]]] = {
    "Test timed out": (
        "farm-timeout",
        "the test did not end within its time limit and was stopped",
        "verify fewer cases or models at once",
    ),
    "App failed to install": (
        "farm-unsupported",
        "the app cannot be installed on the device",
        "it may lack the device's ABI, or need a newer Android",
    ),
    "Infrastructure failure": (
        "farm-failed",
        "Test Lab's own machines failed",
        "run the same command again; nothing is charged for such a test",
    ),
    "Test run aborted by user": ("farm-cancelled", "the test was cancelled", "run the same command again"),
}
"""Details that say more than the outcome, in gcloud's words."""


def verdict(done: Completed, where: str, *, uploading: bool = False, url: str = "") -> tuple[bool, str]:
    """Return whether the instrumentation passed, and the details that Test Lab gives.

    A flaky test, which passed in one attempt alone, counts as failed. `uploading` and `url` are for `gcloud_error`.
    """
    again = f"see {url}, and run the same command again" if url else "run the same command again"
    if done.returncode == CANCELLED:
        code, what, hint = ENDS["Test run aborted by user"]
        raise VerifyError(code, what, where=where, why="gcloud was terminated", hint=hint)
    if NO_OUTCOME in done.stderr:
        outcome, details = "no outcome", NO_OUTCOME
    elif done.returncode not in ENDED or (not done.stdout.strip() and "ERROR:" in done.stderr):
        raise gcloud_error(done.stderr, where, uploading=uploading, url=url)
    else:
        try:
            (row,) = json.loads(done.stdout)
            outcome, details = str(row["outcome"]), str(row["test_details"])
        except (ValueError, TypeError, KeyError) as error:
            what = "Test Lab gives no outcome of the test"
            why = f"gcloud ended with {done.returncode} and printed: {done.stdout[:200].strip() or 'nothing'}"
            raise VerifyError("farm-inconclusive", what, where=where, why=why, hint=again) from error
    if outcome in {"Passed", "Failed", "Flaky"} and details not in ENDS:
        return outcome == "Passed", details
    if details in ENDS:
        code, what, hint = ENDS[details]
    elif outcome == "Skipped":
        code, what = "farm-unsupported", "the device cannot run the app, so nothing was run"
        hint = "build the app for the device's ABI and Android version"
    else:
        code, what, hint = "farm-inconclusive", "Test Lab does not know whether the test passed", again
    raise VerifyError(code, what, where=where, why=f"{outcome}: {details}", hint=hint)


GCLOUD: Final = Tool(name="gcloud", package="google-cloud-cli", minimum=(402, 0, 0))
"""402.0.0 of September 2022 is the first with `gcloud storage` for everybody (its release notes)."""
INSTALLING: Final = "https://cloud.google.com/sdk/docs/install"
GUIDE: Final = f"{INSTALLING} has other ways"
UPDATE_HINT: Final = "run: gcloud components update (or update its package)"
SETTINGS: Final[dict[str, str]] = {
    "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
    "CLOUDSDK_CORE_DISABLE_COLOR": "true",
    "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
    "CLOUDSDK_CORE_LOG_HTTP": "false",
    "CLOUDSDK_CORE_USER_OUTPUT_ENABLED": "true",
    "CLOUDSDK_CORE_VERBOSITY": "warning",
    "CLOUDSDK_STORAGE_PROCESS_COUNT": "1",
    "LC_ALL": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
}
"""What of the user's settings would change the words that are read here, wait for an answer, or print requests with
their tokens. A single process copies a handful of files faster than several, each of which takes a second to start.
gcloud is written in Python, and its handler of SIGTERM writes to standard error before it cancels a test; if the signal
interrupts another such write, a buffered stream refuses ("reentrant call"), and the test goes on (seen in 528)."""
SECRETS: Final = re.compile(
    r"ya29\.[\w.~+/-]+=*"  # access tokens
    r"|\b1//[\w-]{10,}"  # refresh tokens
    r"|\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?"  # signed tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=Bearer )\S+",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Gcloud(Program):
    """`gcloud`, of which nothing that looks like a credential comes back; a server may have sent one."""

    version: str = ""

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:
        """Run a command to its end, whatever its exit code."""
        return _without_secrets(super().run(*words, timeout_seconds=timeout_seconds))

    def watch(self, *words: str | Path, on_output: Callable[[str], None], check: Callable[[], None]) -> Completed:
        """Run a command to its end like `watch`."""
        done = watch(
            (self.path, *words),
            lambda line: on_output(without_secrets(line)),
            check,
            environment=self.environment,
            most_bytes=MOST_PRINTED_BYTES,
        )
        return _without_secrets(done)


def find_gcloud(environment: Mapping[str, str] | None = None) -> Gcloud:
    """Return gcloud; `environment` replaces this process's own."""
    try:
        installed = require(GCLOUD)
    except ToolError as error:
        hint = install_hint() if error.code == "tool-missing" else UPDATE_HINT
        raise ToolError(error.code, error.what, where=error.where, why=error.why, hint=hint) from error
    given = os.environ if environment is None else environment
    return Gcloud(path=installed.path, environment={**given, **SETTINGS}, version=installed.version)


def found() -> str:
    """Return gcloud's version and place."""
    gcloud = find_gcloud()
    return f"{gcloud.version} ({gcloud.path})"


def install_hint() -> str:
    """Return the command that installs gcloud here: no distribution has it among its own packages."""
    if shutil.which("brew"):
        return f"run: brew install --cask gcloud-cli; {GUIDE}"
    if not hasattr(os, "geteuid"):  # Windows has no snap either
        return f"see {INSTALLING}"
    prefix = "" if os.geteuid() == 0 else "sudo "
    return f"run: {prefix}snap install google-cloud-cli --classic; {GUIDE}"


def without_secrets(text: str) -> str:
    """Return a text without what looks like a credential of Google's."""
    return SECRETS.sub("(removed)", text)


def _without_secrets(done: Completed) -> Completed:
    return replace(done, stdout=without_secrets(done.stdout), stderr=without_secrets(done.stderr))


ANSWER_SECONDS: Final = 420.0
"""gcloud repeats a request to the Testing API nine times before it gives up, which took 253 seconds."""


def ask(gcloud: Gcloud, where: str, *words: str | Path, timeout_seconds: float = ANSWER_SECONDS) -> Completed:
    """Run a command that has to succeed."""
    try:
        done = gcloud.run(*words, timeout_seconds=timeout_seconds)
    except ToolError as error:
        if error.code != "tool-timeout":
            raise
        raise unreachable(f"gcloud {error.what}", where) from error
    if done.returncode != 0:
        raise gcloud_error(done.stderr, where)
    return done


LOG: Final = "logcat"
FETCH_SECONDS: Final = 1800.0


def fetch(gcloud: Gcloud, address: str, results: str, destination: Path, where: str) -> Path:
    """Copy the log, as `logcat`, and a folder of a device's from a bucket into a new folder; return the folder's copy.

    `address` ends without a slash. When Test Lab could not read the folder, the results are those that the harness
    printed into the log.
    """
    try:
        printed = _asked(gcloud, where, address, "ls", "--recursive", "--json", f"{address}/**")
    except VerifyError as error:
        if "matched no objects" not in error.why:
            raise
        raise missing(where, f"there is nothing at {address}") from error
    names = _names(printed, f"{address.removeprefix('gs://').partition('/')[2]}/", where)
    folder = f"artifacts/{PurePosixPath(results).relative_to('/')}"
    files = {name: size for name, size in names.items() if name.startswith(f"{folder}/")}
    for name in files:
        if not {"", ".", ".."}.isdisjoint(name.removesuffix("/").split("/")):
            raise missing(where, f"a file has a name that leads elsewhere: {name}")
    if (size := sum(files.values())) > farm.LARGEST_RESULTS:
        raise missing(where, f"the device wrote {size} bytes, more than the {farm.LARGEST_RESULTS} that are fetched")
    wanted = [f"{address}/{name}" for name in ((folder,) if files else ()) + ((LOG,) if LOG in names else ())]
    destination.mkdir()
    if wanted:
        _asked(gcloud, where, address, "cp", "--recursive", *wanted, f"{destination}/")
    if files:
        return destination / PurePosixPath(folder).name
    unpacked = destination / "unpacked"
    if (destination / LOG).is_file() and farm.unpack_log(destination / LOG, unpacked, where):
        return unpacked
    raise missing(where, f"nothing was written to {results}; there is: {', '.join(list(names)[:5])}")


def missing(where: str, why: str) -> VerifyError:
    """Return the diagnostic of a test that left no results."""
    what = "the test ended without results"
    hint = "the app or its test may have ended early; Test Lab's page of the test has the device's log"
    return VerifyError("farm-results-missing", what, where=where, why=why, hint=hint)


def _asked(gcloud: Gcloud, where: str, address: str, *words: str) -> str:
    """Return what gcloud prints; when a connection is lost after the test, the error says where the results are."""
    try:
        return ask(gcloud, where, "storage", *words, timeout_seconds=FETCH_SECONDS).stdout
    except NetworkError as error:
        what = "the test ended, but its results cannot be fetched"
        hint = f"they are still stored: gcloud storage cp --recursive {address} ."
        raise NetworkError(error.code, what, where=where, why=error.why, hint=hint) from error


def _names(printed: str, prefix: str, where: str) -> dict[str, int]:
    """Return the paths of what lies below a prefix, with sizes."""
    try:
        objects = [entry["metadata"] for entry in json.loads(printed) if entry["type"] == "cloud_object"]
        return {str(entry["name"]).removeprefix(prefix): int(entry["size"]) for entry in objects}
    except (ValueError, TypeError, KeyError) as error:
        what = "gcloud did not print a list of files"
        why = f"{error}: {printed[:200]}"
        raise VerifyError("farm-failed", what, where=where, why=why, hint="try: gcloud storage ls --json") from error


def matrix_arguments(
    app: Path, test: Path, device: FirebaseDevice, *, folder: str, bucket: str, results: str, seconds: float
) -> tuple[str, ...]:
    """Return gcloud's for a test without a video, without a second attempt, with nobody logged in.

    `folder` is a new one in the bucket, which is Google's own when `bucket` is empty. A second attempt that passes
    would hide a first one that failed. `no-isolated-storage` lets an instrumentation write where Test Lab reads, as
    Android's guide to macrobenchmarks has it.
    """
    return (
        *("firebase", "test", "android", "run", "--type=instrumentation", f"--app={app}", f"--test={test}"),
        f"--device={device.argument}",
        f"--results-dir={folder}",
        *((f"--results-bucket={bucket}",) if bucket else ()),
        f"--directories-to-pull={results}",
        f"--environment-variables=additionalTestOutputDir={results},no-isolated-storage=true",
        f"--timeout={time_limit(seconds)}s",
        *("--num-flaky-test-attempts=0", "--no-record-video", "--no-performance-metrics", "--no-auto-google-login"),
        "--format=json",
    )


OWN_BUCKET: Final = "ORTRIM_FIREBASE_BUCKET"
"""A service account may not read the bucket that Google gives unless it may edit the whole project."""


@dataclass(frozen=True, kw_only=True)
class FirebaseFarm:
    """Test Lab in the project that gcloud is set to.

    Results go to the bucket that Google gives the project, which costs nothing and forgets after 90 days, so nothing is
    removed from it. `ORTRIM_FIREBASE_BUCKET` in gcloud's environment names another one. From that the two packages are
    removed; what Test Lab wrote stays there for its page of the test, and is the owner's to expire.
    """

    gcloud: Gcloud

    @property
    def name(self) -> str:
        """Name on the command line."""
        return kinds.FIREBASE.name

    @property
    def bucket(self) -> str:
        """The user's own bucket; empty for Google's."""
        return self.gcloud.environment.get(OWN_BUCKET, "").removeprefix("gs://").rstrip("/")

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job as `Farm.run` says, on a device named `MODEL-VERSION[-LOCALE-ORIENTATION]`."""
        device = named_device(job.device)
        for path in (job.app, job.test):
            with storage_errors(path), path.open("rb"):
                pass
        farm.require_free(job.destination)
        with termination_raises(), tempfile.TemporaryDirectory(prefix="ortrim-firebase-") as work:
            url = self._run(job, device, Path(work), tell)
        return farm.farm_run(job, device.axis, url)

    def _run(self, job: FarmJob, device: FirebaseDevice, work: Path, tell: Tell) -> str:
        """Run a job and put its results into place; return where it is to be seen."""
        where = f"{self.name}:{job.device}"
        largest = max(path.stat().st_size for path in (job.app, job.test))
        progress = MatrixProgress(job, where, tell, largest=largest)
        # In the bucket packages are told apart by their names, which may be the same.
        app, test = work / f"app{job.app.suffix}", work / f"test{job.test.suffix}"
        app.symlink_to(job.app.absolute())
        test.symlink_to(job.test.absolute())
        name = re.sub("[^A-Za-z0-9]+", "-", job.name)[:60].strip("-") or "ortrim"
        folder = f"{name}-{uuid.uuid4().hex}"
        arguments = matrix_arguments(
            app,
            test,
            device,
            folder=folder,
            bucket=self.bucket,
            results=job.results,
            seconds=job.timeout_seconds,
        )
        try:
            # Stopped in any way, gcloud cancels the test.
            done = self.gcloud.watch(*arguments, on_output=progress.on_output, check=progress.check)
        except BaseException:
            progress.tell_what_is_left()
            raise
        finally:
            self._remove(folder, (app.name, test.name), where, tell)
        passed, details = verdict(done, where, uploading=progress.uploading, url=progress.place)
        tell("fetching the results")
        there = work / "there"
        try:
            address = f"gs://{progress.bucket or self.bucket}/{folder}/{device.axis}"
            fetched = fetch(self.gcloud, address, job.results, there, where)
        except VerifyError as error:
            if passed:
                raise
            why = "\n".join(filter(None, (details, error.why, crash(there / LOG))))
            raise VerifyError(error.code, error.what, where=error.where, why=why, hint=error.hint) from error

        def place(destination: Path) -> None:
            copy_files(fetched, destination / farm.RESULTS)
            if (there / LOG).is_file():
                write_atomically(destination / farm.LOG, (there / LOG).read_bytes())

        farm.keep(job.destination, place)
        return progress.url

    def _remove(self, folder: str, names: tuple[str, ...], where: str, tell: Tell) -> None:
        """Remove what was uploaded to a bucket that somebody pays for; what is not there counts as removed."""
        if not self.bucket:
            return
        address = f"gs://{self.bucket}/{folder}"
        try:
            ask(self.gcloud, where, "storage", "rm", *(f"{address}/{name}" for name in names))
        except Diagnostic as error:
            if "matched no objects" not in error.why:
                tell(f"what was uploaded stays at {address}: {error.why or error.what}")
