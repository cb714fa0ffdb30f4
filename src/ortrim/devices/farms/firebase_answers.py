"""Test Lab's devices, named as `MODEL-VERSION[-LOCALE-ORIENTATION]`: gcloud looks them up. Pure.

- What gcloud says when Test Lab refuses, fails or cannot be reached, as diagnostics. Pure.
- How far a test is, by what gcloud says of it on its standard error; recorded in `tests/unit/farms/data/gcloud`.
- What became of a test: the outcome that gcloud prints as JSON. Pure.
"""

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ortrim.base.command import Completed
from ortrim.base.tools import Cause, diagnose
from ortrim.devices import kinds
from ortrim.devices.farms.farm import FarmJob, Tell
from ortrim.errors import Diagnostic, NetworkError, StorageError, VerifyError

NAME: Final = re.compile(
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
    """Return the device of a name such as `MediumPhone.arm-34`. Raises `VerifyError` (`farm-device-unknown`)."""
    match = NAME.fullmatch(name)
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


CAUSES: Final = (
    Cause(
        words=(
            r"not currently have an active account|valid credentials|auth tokens|invalid authentication credentials"
            r"|[Rr]eauthentication|invalid_grant|[Ee]rror 401|UNAUTHENTICATED"
        ),
        code="farm-credentials",
        what="gcloud has no account that Google accepts",
        hint="run: gcloud auth login; on CI: gcloud auth activate-service-account, or google-github-actions/auth",
    ),
    Cause(
        words=(r"[Qq]uota exceeded|test quota|TEST_QUOTA|RESOURCE_EXHAUSTED|[Ee]rror 429|(?:rate|daily)LimitExceeded"),
        code="farm-quota",
        what="the project has used up its Test Lab quota",
        hint="wait until tomorrow, or take a plan with more: https://firebase.google.com/docs/test-lab/usage-quotas-pricing",
    ),
    Cause(
        words=r"has not been used in project|SERVICE_DISABLED|SERVICE_NOT_ACTIVATED|api is not activated",
        code="farm-project",
        what="a service that Test Lab needs is not enabled in the project",
        hint="run: gcloud services enable testing.googleapis.com toolresults.googleapis.com",
    ),
    Cause(
        words=r"No project specified",
        code="farm-project",
        what="gcloud has no project",
        hint="run: gcloud config set project PROJECT, or set CLOUDSDK_CORE_PROJECT",
    ),
    Cause(
        words=r"is not a valid (?:model|OS version|locale|device orientation)",
        code="farm-device-unknown",
        what="Test Lab does not have such a device",
        hint="gcloud firebase test android models list; ... locales list",
    ),
    Cause(
        words=r"Device dimensions are not compatible",
        code="farm-unsupported",
        what="the device does not have this Android version",
        hint="gcloud firebase test android models list has the versions of each model",
    ),
    Cause(
        words=r"failed during validation|Invalid path|not found or not accessible",
        code="farm-refused",
        what="Test Lab refuses the app or its test",
        hint="build both again; Test Lab accepts signed APKs, the test with an instrumentation in its manifest",
    ),
    Cause(
        words=r"[Ee]rror 40[34]|PERMISSION_DENIED|Permission denied|billing|does not have|quota project",
        code="farm-project",
        what="the project is unknown, or the account may not use it",
        hint="give it the roles Firebase Test Lab Admin, Firebase Analytics Viewer and Storage Object Admin; for a"
        " bucket of your own billing must be enabled",
    ),
)
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
            self._hear_state(match[1])
        elif "Test matrix has been cancelled" in line:
            self.cancelled = True

    def _hear_state(self, state: str) -> None:
        if state == "Running":
            self._running_at = min(self._running_at, self._clock())
        if state in WORDS:
            self._tell(WORDS[state])

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


def verdict(done: Completed, where: str, *, uploading: bool = False, url: str = "") -> tuple[bool, str]:
    """Return whether the instrumentation passed, and the details that Test Lab gives.

    A flaky test, which passed in one attempt alone, counts as failed. `uploading` and `url` are for `gcloud_error`.
    Raises `VerifyError` or `NetworkError` when there is no such verdict: see `Farm.run`.
    """
    if done.returncode == CANCELLED:
        raise cancelled(where, "gcloud was terminated")
    if NO_OUTCOME in done.stderr:
        raise _without_verdict("no outcome", NO_OUTCOME, where, url)
    if done.returncode not in ENDED or (not done.stdout.strip() and "ERROR:" in done.stderr):
        raise gcloud_error(done.stderr, where, uploading=uploading, url=url)
    outcome, details = _outcome(done, where, url)
    if outcome in {"Passed", "Failed", "Flaky"} and details not in ENDS:
        return outcome == "Passed", details
    raise _without_verdict(outcome, details, where, url)


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


def _without_verdict(outcome: str, details: str, where: str, url: str) -> Diagnostic:
    if details in ENDS:
        code, what, hint = ENDS[details]
    elif outcome == "Skipped":
        code, what = "farm-unsupported", "the device cannot run the app, so nothing was run"
        hint = "build the app for the device's ABI and Android version"
    else:
        code, what = "farm-inconclusive", "Test Lab does not know whether the test passed"
        hint = f"see {url}, and run the same command again" if url else "run the same command again"
    return VerifyError(code, what, where=where, why=f"{outcome}: {details}", hint=hint)


def cancelled(where: str, why: str) -> VerifyError:
    """Return the diagnostic of a test that somebody cancelled."""
    code, what, hint = ENDS["Test run aborted by user"]
    return VerifyError(code, what, where=where, why=why, hint=hint)


def _outcome(done: Completed, where: str, url: str) -> tuple[str, str]:
    """Return the outcome on the one device and its details, in gcloud's words."""
    try:
        (row,) = json.loads(done.stdout)
        return str(row["outcome"]), str(row["test_details"])
    except (ValueError, TypeError, KeyError) as error:
        what = "Test Lab gives no outcome of the test"
        why = f"gcloud ended with {done.returncode} and printed: {done.stdout[:200].strip() or 'nothing'}"
        hint = f"see {url}, and run the same command again" if url else "run the same command again"
        raise VerifyError("farm-inconclusive", what, where=where, why=why, hint=hint) from error
