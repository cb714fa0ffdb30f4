"""AWS Device Farm: phones of Amazon's, reached with the credentials that AWS's own tools use."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ortrim.storage.files import write_atomically
from ortrim.tools.command import termination_raises
from ortrim.verify.devices.farms.base import FarmJob, FarmRun, Tell
from ortrim.verify.devices.farms.device_farm_account import Account, open_account
from ortrim.verify.devices.farms.device_farm_artifacts import bring_back
from ortrim.verify.devices.farms.device_farm_names import Place, find_place
from ortrim.verify.devices.farms.device_farm_runs import Ended, Packages, run_on_one
from ortrim.verify.devices.farms.device_farm_spec import specification
from ortrim.verify.devices.farms.device_farm_uploads import Uploads
from ortrim.verify.devices.farms.polling import Patience
from ortrim.verify.devices.farms.results import RESULTS, keep, log_of, require_free

DEFAULT_PATIENCE: Final = Patience()


class DeviceFarm:
    """AWS Device Farm. A job's device is `PROJECT/POOL`, of which one device is used, whichever AWS gives."""

    name: Final = "devicefarm"

    def __init__(self, patience: Patience = DEFAULT_PATIENCE) -> None:
        self._patience = patience

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, as `Farm.run` promises; the uploads are removed whatever happens."""
        began = time.monotonic()
        require_free(job.destination)
        account = open_account(f"{self.name}:{job.device}", self._patience, tell)
        place = find_place(account, job.device)
        with termination_raises(), ExitStack() as undone:
            ended = _ended(account, place, job, undone)
            tell("fetching the results")
            keep(job.destination, lambda folder: bring_back(account, ended, folder))
        return FarmRun(
            passed=ended.passed,
            device=ended.device,
            folder=job.destination / RESULTS,
            log=log_of(job.destination),
            url=ended.url,
            seconds=time.monotonic() - began,
        )


def _ended(account: Account, place: Place, job: FarmJob, undone: ExitStack) -> Ended:
    uploads = Uploads(account=account, project=place.project, undone=undone)
    app = uploads.add(job.app, "app.apk", "ANDROID_APP")
    test = uploads.add(job.test, "test.apk", "INSTRUMENTATION_TEST_PACKAGE")
    with tempfile.TemporaryDirectory(prefix="ortrim-") as folder:
        path = Path(folder) / "ortrim.yml"
        write_atomically(path, specification(job.results))
        spec = uploads.add(path, path.name, "INSTRUMENTATION_TEST_SPEC")
    packages = Packages(app=app, test=test, specification=spec)
    return run_on_one(account, place, packages, job)
