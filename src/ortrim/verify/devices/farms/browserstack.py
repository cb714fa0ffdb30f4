"""BrowserStack's App Automate: phones of BrowserStack's, on which an app's Espresso tests run."""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ortrim.errors import Diagnostic
from ortrim.tools.command import termination_raises
from ortrim.verify.devices.farms.base import FarmJob, FarmRun, Tell
from ortrim.verify.devices.farms.browserstack_account import Account, open_account
from ortrim.verify.devices.farms.browserstack_answers import Build, Uploaded
from ortrim.verify.devices.farms.browserstack_artifacts import bring_back, details_of
from ortrim.verify.devices.farms.browserstack_builds import begin, follow_build, require_device, url_of
from ortrim.verify.devices.farms.browserstack_verdicts import passed
from ortrim.verify.devices.farms.polling import Patience
from ortrim.verify.devices.farms.results import RESULTS, keep, log_of, require_free

BASE: Final = "https://api-cloud.browserstack.com"
APPS: Final = ("/app-automate/espresso/v2/app", "/app-automate/espresso/v2/apps")
SUITES: Final = ("/app-automate/espresso/v2/test-suite", "/app-automate/espresso/v2/test-suites")
"""Where a file is sent, and where it is found afterwards."""
DEFAULT_PATIENCE: Final = Patience()


class BrowserStack:
    """BrowserStack. A job's device is `Samsung Galaxy S23-13.0`; its `results` is not used: see `log_transport`."""

    name: Final = "browserstack"

    def __init__(
        self, *, base: str = BASE, environment: Mapping[str, str] | None = None, patience: Patience = DEFAULT_PATIENCE
    ) -> None:
        self._base = base.rstrip("/")
        self._environment = environment
        self._patience = patience

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, as `Farm.run` promises; the uploads are removed whatever happens."""
        began = time.monotonic()
        require_free(job.destination)
        where = f"{self.name}:{job.device}"
        environment = os.environ if self._environment is None else self._environment
        account = open_account(self._base, environment, where=where, patience=self._patience, tell=tell)
        require_device(account, job.device)
        with termination_raises(), ExitStack() as undone:
            app = _upload(account, job.app, "app.apk", APPS, undone)
            test = _upload(account, job.test, "test.apk", SUITES, undone)
            build = begin(account, job, app, test)
            ended, ran = follow_build(account, job, build)
            verdict = _verdict(account, build, ended, ran=ran)
            tell("fetching the results")
            keep(job.destination, lambda folder: bring_back(account, build, ended.sessions, folder))
        return FarmRun(
            passed=verdict,
            device=ended.device,
            folder=job.destination / RESULTS,
            log=log_of(job.destination),
            url=url_of(build),
            seconds=time.monotonic() - began,
        )


def _verdict(account: Account, build: str, ended: Build, *, ran: bool) -> bool:
    words = ""
    if ended.status == "error":
        words = " ".join(filter(None, (details.error for details in details_of(account, build, ended.sessions))))
    return passed(ended.status, words, url_of(build), account.where, ran=ran)


def _upload(account: Account, path: Path, name: str, places: tuple[str, str], undone: ExitStack) -> Uploaded:
    account.tell(f"uploading {name}")
    sent_to, found_at = places
    uploaded = account.upload(sent_to, path, name, Uploaded)
    undone.callback(_remove, account, f"{found_at}/{uploaded.url.removeprefix('bs://')}", name)
    return uploaded


def _remove(account: Account, path: str, name: str) -> None:
    try:
        account.act("DELETE", path, object)
    except Diagnostic as error:
        account.tell(f"{name} stays at BrowserStack ({error.reference}), which removes it after 30 days")
