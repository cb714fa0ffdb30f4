"""How far a test is, by what gcloud says of it on its standard error; recorded in `tests/unit/verify/data/gcloud`."""

import math
import re
import time
from collections.abc import Callable
from typing import Final

from ortrim.errors import VerifyError
from ortrim.verify.devices.farms.base import FarmJob, Tell
from ortrim.verify.devices.farms.firebase_device import LEAST_SECONDS
from ortrim.verify.devices.farms.firebase_errors import unreachable

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

    def hear(self, line: str) -> None:
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
            why = f"a file did not get through in {self._upload_seconds:.0f} seconds"
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
            self._tell(f"{self.matrix or 'a test'} may go on; see, or cancel it, at {self.place}")

    def _with_place(self, hint: str) -> str:
        return f"{hint}; the test: {self.url}" if self.url else hint


def time_limit(seconds: float) -> int:
    """Return a time limit in seconds, as gcloud takes it."""
    return max(math.ceil(seconds), LEAST_SECONDS)
