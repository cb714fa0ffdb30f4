"""One run at AWS Device Farm: on one device of the pool, followed to its end, stopped when nobody waits for it."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ortrim.errors import Diagnostic, NetworkError
from ortrim.verify.devices.farms.base import FarmJob
from ortrim.verify.devices.farms.device_farm_account import Account
from ortrim.verify.devices.farms.device_farm_names import Place, console_url
from ortrim.verify.devices.farms.device_farm_pool import device_of, devices_of
from ortrim.verify.devices.farms.device_farm_verdicts import overdue, passed
from ortrim.verify.devices.farms.polling import Limits, Overdue, Seen, Stage, follow

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient

STAGES: Final = {"RUNNING": Stage.RUNNING, "STOPPING": Stage.RUNNING, "COMPLETED": Stage.DONE}
WORDS: Final = {
    "PENDING_CONCURRENCY": "waiting for a free place among the runs of the account",
    "PENDING_DEVICE": "waiting for a device",
    "PREPARING": "preparing the device",
    "RUNNING": "running",
    "STOPPING": "the run is being stopped",
    "COMPLETED": "the run has ended",
}
UNCERTAIN: Final = "it is not known whether the run was begun"
LEAST_MINUTES: Final = 5
"""The shortest time that the console lets one choose; the farm's own preparations count."""


@dataclass(frozen=True, kw_only=True)
class Packages:
    """The uploads that a run consists of, as ARNs."""

    app: str
    test: str
    specification: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run with a verdict of the instrumentation's own; `device` is empty when AWS does not say which ran it."""

    arn: str
    url: str
    passed: bool
    device: str


def run_on_one(account: Account, place: Place, packages: Packages, job: FarmJob) -> Ended:
    """Run the packages on one device of the pool, whichever AWS gives, and return what became of it.

    Raises what `Farm.run` raises for a run without a verdict; the run is then stopped.
    """
    devices = devices_of(account, place, packages.app)
    arn = _scheduled(account, place, packages, job, devices)
    url = console_url(arn, account.region)
    with _stopped(account, arn, url):
        account.tell(f"the run: {url}")
        run = _followed(account, arn, url, job)
    verdict = passed(run, url, account.where, minutes_of(job))
    return Ended(arn=arn, url=url, passed=verdict, device=device_of(account, arn))


def minutes_of(job: FarmJob) -> int:
    """Return after how many minutes the farm ends a run."""
    return max(LEAST_MINUTES, math.ceil(job.timeout_seconds / 60))


def _scheduled(account: Account, place: Place, packages: Packages, job: FarmJob, devices: tuple[str, ...]) -> str:
    try:
        return account.act(
            lambda client: client.schedule_run(
                projectArn=place.project,
                appArn=packages.app,
                name=job.name[:256],
                # A pool as such would run on each of its devices.
                deviceSelectionConfiguration={
                    "filters": [{"attribute": "ARN", "operator": "IN", "values": list(devices)}],
                    "maxDevices": 1,
                },
                test={
                    "type": "INSTRUMENTATION",
                    "testPackageArn": packages.test,
                    "testSpecArn": packages.specification,
                },
                executionConfiguration={"jobTimeoutMinutes": minutes_of(job), "videoCapture": False},
            )["run"]["arn"]
        )
    except NetworkError as error:
        hint = "look at the project in AWS's console"
        raise NetworkError(error.reference, UNCERTAIN, where=account.where, why=error.why, hint=hint) from error
    except (KeyboardInterrupt, SystemExit):
        account.tell(f"{UNCERTAIN}: look at the project in AWS's console")
        raise


def _followed(account: Account, arn: str, url: str, job: FarmJob) -> Mapping[str, Any]:
    longest = minutes_of(job) * 60 + account.patience.grace_seconds
    limits = Limits(queue_seconds=job.queue_seconds, run_seconds=longest)
    try:
        return follow(lambda: _look(account, arn, url), limits, account.patience.interval_seconds, account.tell)
    except Overdue as error:
        raise overdue(error, url, account.where) from error


def _look(account: Account, arn: str, url: str) -> Seen[Mapping[str, Any]]:
    try:
        status, run = account.ask(lambda client: _state(client, arn))
    except NetworkError as error:
        what = "the connection was lost while the run was followed"
        why = f"{error.why}\nthe run may still go on: {url}"
        raise NetworkError(error.reference, what, where=account.where, why=why, hint=error.hint) from error
    return Seen(stage=STAGES.get(status, Stage.WAITING), words=WORDS.get(status, "waiting for its turn"), facts=run)


def _state(client: "DeviceFarmClient", arn: str) -> tuple[str, Mapping[str, Any]]:
    run = client.get_run(arn=arn)["run"]
    return run["status"], run


@contextmanager
def _stopped(account: Account, arn: str, url: str) -> Iterator[None]:
    """Stop the run when it is given up: by Ctrl-C, a lost connection, or a limit of time."""
    try:
        yield
    except BaseException:
        account.tell("stopping the run")
        try:
            account.act(lambda client: client.stop_run(arn=arn))
        except Diagnostic as error:
            account.tell(f"the run could not be stopped ({error.reference}) and may still go on: {url}")
        raise
