"""Firebase Test Lab, reached through the `gcloud` command with the account and the project that it is set up with."""

import re
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import VerifyError
from ortrim.storage.files import storage_errors, write_atomically
from ortrim.tools.command import termination_raises
from ortrim.tools.gcloud import Gcloud
from ortrim.verify.devices.farms.base import FarmJob, FarmRun, Tell
from ortrim.verify.devices.farms.crashes import crash
from ortrim.verify.devices.farms.firebase_bucket import LOG, fetch, look, remove
from ortrim.verify.devices.farms.firebase_commands import ask
from ortrim.verify.devices.farms.firebase_device import FirebaseDevice, check_device, named_device
from ortrim.verify.devices.farms.firebase_matrix import Matrix, run_matrix
from ortrim.verify.devices.farms.firebase_progress import MatrixProgress
from ortrim.verify.devices.farms.firebase_verdict import verdict
from ortrim.verify.devices.farms.results import LOG as DEVICE_LOG
from ortrim.verify.devices.farms.results import RESULTS, keep, log_of, require_free
from ortrim.verify.devices.pulled_files import copy_files

CATALOGUE: Final = ("firebase", "test", "android", "models", "list", "--format=json")
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
        return "firebase"

    @property
    def bucket(self) -> str:
        """The user's own bucket; empty for Google's."""
        return self.gcloud.environment.get(OWN_BUCKET, "").removeprefix("gs://").rstrip("/")

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job as `Farm.run` says, on a device named `MODEL-VERSION[-LOCALE-ORIENTATION]`."""
        began = time.monotonic()
        where = f"{self.name}:{job.device}"
        device = named_device(job.device)
        _check_files(job)
        tell("looking the device up")
        check_device(ask(self.gcloud, where, *CATALOGUE).stdout, device, job.timeout_seconds, where)
        with termination_raises(), tempfile.TemporaryDirectory(prefix="ortrim-firebase-") as work:
            passed, url = self._run(job, device, Path(work), tell)
        return FarmRun(
            passed=passed,
            device=device.axis,
            folder=job.destination / RESULTS,
            log=log_of(job.destination),
            url=url,
            seconds=time.monotonic() - began,
        )

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

    def _matrix(self, job: FarmJob, device: FirebaseDevice, work: Path) -> Matrix:
        """Give both packages names of our own: in the bucket they are told apart by theirs, which may be the same."""
        app, test = work / f"app{job.app.suffix}", work / f"test{job.test.suffix}"
        app.symlink_to(job.app.absolute())
        test.symlink_to(job.test.absolute())
        name = re.sub("[^A-Za-z0-9]+", "-", job.name)[:60].strip("-") or "ortrim"
        return Matrix(
            app=app,
            test=test,
            device=device,
            folder=f"{name}-{uuid.uuid4().hex}",
            bucket=self.bucket,
            results=job.results,
            seconds=job.timeout_seconds,
        )

    @contextmanager
    def _emptied(self, matrix: Matrix, where: str, tell: Tell) -> Iterator[None]:
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
    return VerifyError(error.reference, error.what, where=error.where, why=why, hint=error.hint)


def _place(fetched: Path, log: Path, destination: Path) -> None:
    """Copy what was fetched to where every farm puts it."""
    copy_files(fetched, destination / RESULTS)
    if log.is_file():
        write_atomically(destination / DEVICE_LOG, log.read_bytes())
