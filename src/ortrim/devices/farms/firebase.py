"""Firebase Test Lab, reached through the `gcloud` command with the account and the project that it is set up with.

- The folder of a test in Cloud Storage: what lies there, fetched and removed with `gcloud storage`.
- Commands of gcloud that ask something and end soon.
- One test in Test Lab, a matrix of one device in its words: started, listened to, stopped when it takes too long.
- The `gcloud` program: found, run with the user's own configuration, and never quoted with a credential.
"""

import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.command import Completed, run, termination_raises, watch
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.tools import Tool, require
from ortrim.devices import kinds
from ortrim.devices.farms.farm import FarmJob, FarmRun, Tell
from ortrim.devices.farms.firebase_answers import (
    FirebaseDevice,
    MatrixProgress,
    gcloud_error,
    named_device,
    time_limit,
    unreachable,
    verdict,
)
from ortrim.devices.farms.results import LARGEST_RESULTS, RESULTS, farm_run, keep, require_free, unpack_log
from ortrim.devices.farms.results import LOG as DEVICE_LOG
from ortrim.devices.harness import crash
from ortrim.devices.remote import copy_files
from ortrim.errors import Diagnostic, NetworkError, ToolError, VerifyError

GCLOUD: Final = Tool(name="gcloud", package="google-cloud-cli", minimum=(402, 0, 0))
"""402.0.0 of September 2022 is the first with `gcloud storage` for everybody (its release notes)."""
INSTALLING: Final = "https://cloud.google.com/sdk/docs/install"
GUIDE: Final = f"{INSTALLING} has other ways"
UPDATE_HINT: Final = "run: gcloud components update (or update its package)"
MOST_PRINTED_BYTES: Final = 64 << 20
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
class Gcloud:
    """`gcloud` as found, and the whole environment that it is run with."""

    program: Path
    environment: Mapping[str, str]
    version: str = ""

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:
        """Run a command to its end, whatever its exit code. Raises `ToolError` (`tool-timeout`, ...)."""
        command = (self.program, *words)
        environment = {**self.environment, **SETTINGS}
        done = run(command, environment=environment, timeout_seconds=timeout_seconds, most_bytes=MOST_PRINTED_BYTES)
        return _without_secrets(done)

    def watch(self, *words: str | Path, on_output: Callable[[str], None], check: Callable[[], None]) -> Completed:
        """Run a command to its end like `watch`."""

        def heard(line: str) -> None:
            on_output(without_secrets(line))

        environment = {**self.environment, **SETTINGS}
        command = (self.program, *words)
        return _without_secrets(watch(command, heard, check, environment=environment, most_bytes=MOST_PRINTED_BYTES))


def find_gcloud(environment: Mapping[str, str] | None = None) -> Gcloud:
    """Return gcloud; `environment` replaces this process's own.

    Raises `ToolError`: `tool-missing`, `tool-broken`, `tool-too-old`.
    """
    try:
        installed = require(GCLOUD)
    except ToolError as error:
        hint = install_hint() if error.code == "tool-missing" else UPDATE_HINT
        raise ToolError(error.code, error.what, where=error.where, why=error.why, hint=hint) from error
    given = dict(os.environ if environment is None else environment)
    return Gcloud(program=installed.path, environment=given, version=installed.version)


def install_hint() -> str:
    """Return the command that installs gcloud here: no distribution has it among its own packages."""
    if shutil.which("brew"):
        return f"run: brew install --cask gcloud-cli; {GUIDE}"
    if not hasattr(os, "geteuid"):  # Windows has no snap either
        return f"see {INSTALLING}"
    prefix = "" if os.geteuid() == 0 else "sudo "
    return f"run: {prefix}snap install google-cloud-cli --classic; {GUIDE}"


def without_secrets(text: str) -> str:
    """Return a text without what looks like a credential of Google's; a server may have sent one back."""
    return SECRETS.sub("(removed)", text)


def _without_secrets(done: Completed) -> Completed:
    return replace(done, stdout=without_secrets(done.stdout), stderr=without_secrets(done.stderr))


ANSWER_SECONDS: Final = 420.0
"""gcloud repeats a request to the Testing API nine times before it gives up, which took 253 seconds."""


def ask(gcloud: Gcloud, where: str, *words: str | Path, timeout_seconds: float = ANSWER_SECONDS) -> Completed:
    """Run a command that has to succeed.

    Raises `VerifyError`, `NetworkError` or `StorageError` by what it printed (`gcloud_error`), `NetworkError`
    (`farm-unreachable`) when it does not end, `ToolError`.
    """
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


@dataclass(frozen=True, kw_only=True)
class BucketFolder:
    """What one device left in a bucket. `address` ends without a slash; `names` are paths below it, with sizes."""

    address: str
    names: tuple[tuple[str, int], ...]

    def below(self, folder: str) -> tuple[tuple[str, int], ...]:
        """Return what lies below a folder."""
        return tuple((name, size) for name, size in self.names if name.startswith(f"{folder}/"))


def look(gcloud: Gcloud, bucket: str, folder: str, axis: str, where: str) -> BucketFolder:
    """Return what a device left in the bucket. Raises `VerifyError` (`farm-results-missing`, ...), `NetworkError`."""
    address = f"gs://{bucket}/{folder}/{axis}"
    try:
        printed = _asked(gcloud, where, address, "storage", "ls", "--recursive", "--json", f"{address}/**")
    except VerifyError as error:
        if "matched no objects" not in error.why:
            raise
        raise missing(where, f"there is nothing at {address}") from error
    return BucketFolder(address=address, names=_names(printed, f"{folder}/{axis}/", where))


def fetch(gcloud: Gcloud, found: BucketFolder, results: str, destination: Path, where: str) -> Path:
    """Copy the device's log, as `logcat`, and a folder of its into a new folder; return the copy of that folder.

    When Test Lab could not read the folder, the results are those that the harness printed into the log. Raises
    `VerifyError` (`farm-results-missing`), `NetworkError` (`farm-unreachable`), `StorageError`.
    """
    folder = f"artifacts/{PurePosixPath(results).relative_to('/')}"
    files = found.below(folder)
    _check(files, where)
    wanted = [f"{found.address}/{name}" for name in (folder,) if files]
    wanted += [f"{found.address}/{name}" for name, _ in found.names if name == LOG]
    destination.mkdir()
    if wanted:
        _asked(gcloud, where, found.address, "storage", "cp", "--recursive", *wanted, f"{destination}/")
    if files:
        return destination / PurePosixPath(folder).name
    unpacked = destination / "unpacked"
    if (destination / LOG).is_file() and unpack_log(destination / LOG, unpacked, where):
        return unpacked
    others = ", ".join(name for name, _ in found.names[:5])
    raise missing(where, f"nothing was written to {results}; there is: {others}")


def remove(gcloud: Gcloud, addresses: tuple[str, ...], where: str) -> str:
    """Remove objects; return why that failed, empty when it did not. What is not there counts as removed."""
    try:
        ask(gcloud, where, "storage", "rm", *addresses)
    except Diagnostic as error:
        return "" if "matched no objects" in error.why else error.why or error.what
    return ""


def missing(where: str, why: str) -> VerifyError:
    """Return the diagnostic of a test that left no results."""
    what = "the test ended without results"
    hint = "the app or its test may have ended early; Test Lab's page of the test has the device's log"
    return VerifyError("farm-results-missing", what, where=where, why=why, hint=hint)


def _asked(gcloud: Gcloud, where: str, address: str, *words: str) -> str:
    """Return what gcloud prints; when a connection is lost after the test, the error says where the results are."""
    try:
        return ask(gcloud, where, *words, timeout_seconds=FETCH_SECONDS).stdout
    except NetworkError as error:
        what = "the test ended, but its results cannot be fetched"
        hint = f"they are still stored: gcloud storage cp --recursive {address} ."
        raise NetworkError(error.code, what, where=where, why=error.why, hint=hint) from error


def _names(printed: str, prefix: str, where: str) -> tuple[tuple[str, int], ...]:
    try:
        objects = [entry["metadata"] for entry in json.loads(printed) if entry["type"] == "cloud_object"]
        return tuple((str(entry["name"]).removeprefix(prefix), int(entry["size"])) for entry in objects)
    except (ValueError, TypeError, KeyError) as error:
        what = "gcloud did not print a list of files"
        why = f"{error}: {printed[:200]}"
        raise VerifyError("farm-failed", what, where=where, why=why, hint="try: gcloud storage ls --json") from error


def _check(files: tuple[tuple[str, int], ...], where: str) -> None:
    """Refuse names that lead elsewhere and sizes that would fill the disk."""
    for name, _ in files:
        if not {"", ".", ".."}.isdisjoint(name.removesuffix("/").split("/")):
            raise missing(where, f"a file has a name that leads elsewhere: {name}")
    size = sum(size for _, size in files)
    if size > LARGEST_RESULTS:
        raise missing(where, f"the device wrote {size} bytes, more than the {LARGEST_RESULTS} that are fetched")


@dataclass(frozen=True, kw_only=True)
class FirebaseMatrix:
    """A request to Test Lab. `folder` is a new one in the bucket, which is Google's own when `bucket` is empty."""

    app: Path
    test: Path
    device: FirebaseDevice
    folder: str
    bucket: str
    results: str
    seconds: float

    @property
    def arguments(self) -> tuple[str, ...]:
        """gcloud's, for a test without a video, without a second attempt, with nobody logged in.

        A second attempt that passes would hide a first one that failed. `no-isolated-storage` lets an instrumentation
        write where Test Lab reads, as Android's guide to macrobenchmarks has it.
        """
        return (
            "firebase",
            "test",
            "android",
            "run",
            "--type=instrumentation",
            f"--app={self.app}",
            f"--test={self.test}",
            f"--device={self.device.argument}",
            f"--results-dir={self.folder}",
            *((f"--results-bucket={self.bucket}",) if self.bucket else ()),
            f"--directories-to-pull={self.results}",
            f"--environment-variables=additionalTestOutputDir={self.results},no-isolated-storage=true",
            f"--timeout={time_limit(self.seconds)}s",
            "--num-flaky-test-attempts=0",
            "--no-record-video",
            "--no-performance-metrics",
            "--no-auto-google-login",
            "--format=json",
        )


def run_matrix(gcloud: Gcloud, matrix: FirebaseMatrix, progress: MatrixProgress) -> Completed:
    """Run a test to its end and return what gcloud printed, whatever its exit code.

    Stopped in any way, gcloud cancels the test; when it did not say so, `tell` gets where the user can. Raises
    `VerifyError` (`farm-timeout`) and `ToolError`.
    """
    try:
        return gcloud.watch(*matrix.arguments, on_output=progress.on_output, check=progress.check)
    except BaseException:
        progress.tell_what_is_left()
        raise


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
        began = time.monotonic()
        device = named_device(job.device)
        _check_files(job)
        with termination_raises(), tempfile.TemporaryDirectory(prefix="ortrim-firebase-") as work:
            passed, url = self._run(job, device, Path(work), tell)
        return farm_run(job, began, passed=passed, device=device.axis, url=url)

    def _run(self, job: FarmJob, device: FirebaseDevice, work: Path, tell: Tell) -> tuple[bool, str]:
        """Run a job and put its results into place; return whether it passed, and where it is to be seen."""
        where = f"{self.name}:{job.device}"
        largest = max(path.stat().st_size for path in (job.app, job.test))
        progress = MatrixProgress(job, where, tell, largest=largest)
        matrix = self._matrix(job, device, work)
        with self._emptied(matrix, where, tell):
            done = run_matrix(self.gcloud, matrix, progress)
        passed, details = verdict(done, where, uploading=progress.uploading, url=progress.place)
        tell("fetching the results")
        there = work / "there"
        try:
            found = look(self.gcloud, progress.bucket or self.bucket, matrix.folder, device.axis, where)
            fetched = fetch(self.gcloud, found, job.results, there, where)
        except VerifyError as error:
            raise error if passed else _explained(error, details, there / LOG) from error
        keep(job.destination, lambda destination: _place(fetched, there / LOG, destination))
        return passed, progress.url

    def _matrix(self, job: FarmJob, device: FirebaseDevice, work: Path) -> FirebaseMatrix:
        """Give both packages names of our own: in the bucket they are told apart by theirs, which may be the same."""
        app, test = work / f"app{job.app.suffix}", work / f"test{job.test.suffix}"
        app.symlink_to(job.app.absolute())
        test.symlink_to(job.test.absolute())
        name = re.sub("[^A-Za-z0-9]+", "-", job.name)[:60].strip("-") or "ortrim"
        return FirebaseMatrix(
            app=app,
            test=test,
            device=device,
            folder=f"{name}-{uuid.uuid4().hex}",
            bucket=self.bucket,
            results=job.results,
            seconds=job.timeout_seconds,
        )

    @contextmanager
    def _emptied(self, matrix: FirebaseMatrix, where: str, tell: Tell) -> Iterator[None]:
        """Remove afterwards what was uploaded to a bucket that somebody pays for, whatever became of it."""
        try:
            yield
        finally:
            if self.bucket:
                folder = f"gs://{self.bucket}/{matrix.folder}"
                names = (matrix.app.name, matrix.test.name)
                why = remove(self.gcloud, tuple(f"{folder}/{name}" for name in names), where)
                if why:
                    tell(f"what was uploaded stays at {folder}: {why}")


def _check_files(job: FarmJob) -> None:
    for path in (job.app, job.test):
        with storage_errors(path), path.open("rb"):
            pass
    require_free(job.destination)


def _explained(error: VerifyError, details: str, log: Path) -> VerifyError:
    """Return a diagnostic with what is known of a test that failed before it left results."""
    why = "\n".join(filter(None, (details, error.why, crash(log))))
    return VerifyError(error.code, error.what, where=error.where, why=why, hint=error.hint)


def _place(fetched: Path, log: Path, destination: Path) -> None:
    """Copy what was fetched to where every farm puts it."""
    copy_files(fetched, destination / RESULTS)
    if log.is_file():
        write_atomically(destination / DEVICE_LOG, log.read_bytes())
