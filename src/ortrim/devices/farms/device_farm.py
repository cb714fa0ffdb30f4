"""AWS Device Farm: phones of Amazon's, reached with the credentials that AWS's own tools use.

- Projects and device pools of AWS Device Farm by the names that a user gave them: `PROJECT/POOL`.
- The devices of a pool at AWS Device Farm: which of them can run an app, and which one did.
- One run at AWS Device Farm: on one device of the pool, followed to its end, stopped when nobody waits for it.
- What a run at AWS Device Farm leaves: the archive that its specification filled, and the device's log.
- What the end of a run at AWS Device Farm means. Pure.
"""

import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ortrim.base.command import termination_raises
from ortrim.base.files import write_atomically
from ortrim.devices import kinds
from ortrim.devices.farms.device_farm_account import (
    FOLDER,
    DeviceFarmAccount,
    Uploads,
    open_account,
    short,
    specification,
)
from ortrim.devices.farms.farm import FarmJob, FarmRun, Tell
from ortrim.devices.farms.polling import FarmLimits, FarmStage, FarmTimeouts, Overdue, Seen, follow, pause
from ortrim.devices.farms.results import (
    LARGEST_ARCHIVE,
    LARGEST_LOG,
    LOG,
    RESULTS,
    append_log,
    farm_run,
    fetch,
    keep,
    missing,
    require_free,
    same_way,
    unpack_log,
    unpack_results,
)
from ortrim.errors import Diagnostic, NetworkError, VerifyError

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient
    from types_boto3_devicefarm.type_defs import DevicePoolCompatibilityResultTypeDef

ARN: Final = "arn:"
FORM: Final = f"{kinds.DEVICE_FARM.form}, each a name or an ARN"


@dataclass(frozen=True, kw_only=True)
class ProjectAndPool:
    """Where a run goes: a project, and the pool of which one device is taken, both as ARNs."""

    project: str
    pool: str


def find_place(account: DeviceFarmAccount, device: str) -> ProjectAndPool:
    """Return the project and the pool of a device's name.

    An ARN of a project has no slash, so the first one always ends the project. Raises `VerifyError` `farm-project`,
    `farm-device-unknown`, and what asking raises.
    """
    project, slash, pool = device.partition("/")
    if not (project and slash and pool):
        what = f"{device!r} names no project and device pool"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=f"the form is {FORM}")
    found = _project(account, project)
    return ProjectAndPool(project=found, pool=_pool(account, found, pool))


def _project(account: DeviceFarmAccount, name: str) -> str:
    if name.startswith(ARN):
        return name
    projects = account.ask(_projects)
    return _only(projects, name, "farm-project", "project", account.where)


def _pool(account: DeviceFarmAccount, project: str, name: str) -> str:
    if name.startswith(ARN):
        return name
    pools = account.ask(lambda client: _pools(client, project))
    return _only(pools, name, "farm-device-unknown", "device pool", account.where)


def _projects(client: "DeviceFarmClient") -> list[tuple[str, str]]:
    pages = client.get_paginator("list_projects").paginate()
    return [(item["name"], item["arn"]) for page in pages for item in page["projects"]]


def _pools(client: "DeviceFarmClient", project: str) -> list[tuple[str, str]]:
    pages = client.get_paginator("list_device_pools").paginate(arn=project)
    return [(item["name"], item["arn"]) for page in pages for item in page["devicePools"]]


def _only(items: Sequence[tuple[str, str]], name: str, code: str, kind: str, where: str) -> str:
    found = [arn for named, arn in items if named == name]
    if len(found) == 1:
        return found[0]
    names = sorted({named for named, _ in items})
    if found:
        what, hint = f"there are {len(found)} of the name {name!r}", f"give the ARN of the {kind} that is meant"
    else:
        near = get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
        what = f"there is no {kind} called {name!r}"
        hint = f"there are: {', '.join(near)}" if near else f"make a {kind} in AWS's console"
    raise VerifyError(code, what, where=where, hint=hint)


def console_url(run: str, region: str) -> str:
    """Return where a person sees a run, by its ARN: `arn:aws:devicefarm:REGION:ACCOUNT:run:PROJECT/RUN`."""
    project, _, number = run.rpartition(":")[2].partition("/")
    return f"https://{region}.console.aws.amazon.com/devicefarm/home#/mobile/projects/{project}/runs/{number}"


NO_REASON: Final = "AWS gives no reason"


def devices_of(account: DeviceFarmAccount, place: ProjectAndPool, app: str) -> tuple[str, ...]:
    """Return the ARNs of the pool's devices that can run the app.

    Raises `VerifyError` `farm-unsupported` when none can, `farm-device-unknown` when the pool is empty.
    """
    fit, whys = account.ask(lambda client: _compatible(client, place.pool, app))
    if fit:
        return fit
    if not whys:
        what, hint = "the device pool has no device", "add one to it in AWS's console"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=hint)
    what, hint = "no device of the pool can run the app", "choose a pool with devices of the app's ABI and API level"
    raise VerifyError("farm-unsupported", what, where=account.where, why="\n".join(whys[:4]), hint=hint)


def device_of(account: DeviceFarmAccount, run: str) -> str:
    """Return the model and the version of Android that a run was on; empty when the account has no permission."""
    try:
        return account.ask(lambda client: _named(client, run))
    except (VerifyError, NetworkError):
        return ""


def _named(client: "DeviceFarmClient", run: str) -> str:
    devices = [job.get("device", {}) for job in client.list_jobs(arn=run)["jobs"]]
    return ", ".join(f"{device.get('name', '')} {device.get('os', '')}".strip() for device in devices)


def _compatible(client: "DeviceFarmClient", pool: str, app: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the ARNs of a pool's devices that can run an app, and why the others cannot."""
    answer = client.get_device_pool_compatibility(devicePoolArn=pool, appArn=app, testType="INSTRUMENTATION")
    fit = tuple(item["device"]["arn"] for item in answer.get("compatibleDevices", ()))
    whys = {why for item in answer.get("incompatibleDevices", ()) for why in _whys(item)}
    return fit, sorted(whys)


def _whys(item: "DevicePoolCompatibilityResultTypeDef") -> list[str]:
    messages = [short(each.get("message", "")) for each in item.get("incompatibilityMessages", [])]
    return [message for message in messages if message] or [NO_REASON]


def passed(run: Mapping[str, Any], url: str, where: str, minutes: int) -> bool:
    """Return whether the instrumentation passed, from a completed `Run` of the service.

    `minutes` is the time after which the farm ends a run. Raises `VerifyError` when nothing is known of the
    instrumentation: `farm-unsupported`, `farm-failed`, `farm-timeout`, `farm-cancelled`, `farm-inconclusive`.
    """
    result = run.get("result", "")
    if result in {"PASSED", "FAILED"}:
        return bool(result == "PASSED")
    code, what = _without_verdict(run, minutes)
    message = short(str(run.get("message", "")))
    why = f"{result}: {message}" if message else f"the farm reports the result {result or 'nothing'}"
    raise VerifyError(code, what, where=where, why=why, hint=f"see {url}")


def overdue(error: Overdue, url: str, where: str) -> VerifyError:
    """Return the diagnostic of a run that was given up from here."""
    if error.stage is FarmStage.WAITING:
        what, hint = "no device became free in time", f"choose a pool with more devices, or wait longer; see {url}"
    else:
        what, hint = "the run did not end in time, and was stopped", f"see {url}"
    return VerifyError("farm-timeout", what, where=where, why=str(error), hint=hint)


def _without_verdict(run: Mapping[str, Any], minutes: int) -> tuple[str, str]:
    match run.get("result", ""):
        case "SKIPPED":
            return "farm-unsupported", "the device cannot run the app"
        case "ERRORED":
            return "farm-failed", "AWS Device Farm could not carry out the run"
        case "STOPPED" if _timed_out(run, minutes):
            return "farm-timeout", f"the run took longer than {minutes} minutes"
        case "STOPPED":
            return "farm-cancelled", "the run was stopped by somebody else"
        case _:
            return "farm-inconclusive", "the run ended without a verdict on the app"


def _timed_out(run: Mapping[str, Any], minutes: int) -> bool:
    """Whether the farm ended a run: it says so, or all the minutes are used."""
    words = str(run.get("message", "")).lower()
    used = run.get("deviceMinutes", {}).get("total", 0.0)
    return "timed out" in words or "timeout" in words or used >= minutes


STAGES: Final = {"RUNNING": FarmStage.RUNNING, "STOPPING": FarmStage.RUNNING, "COMPLETED": FarmStage.DONE}
WORDS: Final = {
    "PENDING_CONCURRENCY": "waiting until the account may start another run",
    "PENDING_DEVICE": "waiting for a device",
    "PREPARING": "preparing the device",
    "RUNNING": "running",
    "STOPPING": "the run is being stopped",
    "COMPLETED": "the run has ended",
}
UNCERTAIN: Final = "it is not known whether the run was started"
LEAST_MINUTES: Final = 5
"""The shortest time that the console lets one choose; the farm's own preparations count."""


@dataclass(frozen=True, kw_only=True)
class Packages:
    """The uploads that a run consists of, as ARNs."""

    app: str
    test: str
    specification: str


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """A run with a verdict of the instrumentation's own; `device` is empty when AWS does not say which ran it."""

    arn: str
    url: str
    passed: bool
    device: str


def run_on_one(account: DeviceFarmAccount, place: ProjectAndPool, packages: Packages, job: FarmJob) -> EndedRun:
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
    return EndedRun(arn=arn, url=url, passed=verdict, device=device_of(account, arn))


def minutes_of(job: FarmJob) -> int:
    """Return after how many minutes the farm ends a run."""
    return max(LEAST_MINUTES, math.ceil(job.timeout_seconds / 60))


def _scheduled(
    account: DeviceFarmAccount, place: ProjectAndPool, packages: Packages, job: FarmJob, devices: tuple[str, ...]
) -> str:
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
        raise NetworkError(error.code, UNCERTAIN, where=account.where, why=error.why, hint=hint) from error
    except (KeyboardInterrupt, SystemExit):
        account.tell(f"{UNCERTAIN}: look at the project in AWS's console")
        raise


def _followed(account: DeviceFarmAccount, arn: str, url: str, job: FarmJob) -> Mapping[str, Any]:
    longest = minutes_of(job) * 60 + account.timeouts.grace_seconds
    limits = FarmLimits(queue_seconds=job.queue_seconds, run_seconds=longest)
    try:
        return follow(lambda: _look(account, arn, url), limits, account.timeouts.interval_seconds, account.tell)
    except Overdue as error:
        raise overdue(error, url, account.where) from error


def _look(account: DeviceFarmAccount, arn: str, url: str) -> Seen[Mapping[str, Any]]:
    try:
        status, run = account.ask(lambda client: _state(client, arn))
    except NetworkError as error:
        what = "the connection was lost while the run was followed"
        why = f"{error.why}\nthe run may still go on: {url}"
        raise NetworkError(error.code, what, where=account.where, why=why, hint=error.hint) from error
    return Seen(stage=STAGES.get(status, FarmStage.WAITING), words=WORDS.get(status, "queued"), facts=run)


def _state(client: "DeviceFarmClient", arn: str) -> tuple[str, Mapping[str, Any]]:
    run = client.get_run(arn=arn)["run"]
    return run["status"], run


@contextmanager
def _stopped(account: DeviceFarmAccount, arn: str, url: str) -> Iterator[None]:
    """Stop the run when it is given up: by Ctrl-C, a lost connection, or a limit of time."""
    try:
        yield
    except BaseException:
        account.tell("stopping the run")
        try:
            account.act(lambda client: client.stop_run(arn=arn))
        except Diagnostic as error:
            account.tell(f"the run could not be stopped ({error.code}) and may still go on: {url}")
        raise


Category = Literal["FILE", "LOG"]

LISTED_AGAIN: Final = 3
"""How often the artifacts of a run that has just ended are requested while there are none."""


def bring_back(account: DeviceFarmAccount, ended: EndedRun, folder: Path) -> None:
    """Put the results and the device's log of a run into a folder.

    Results that the archive lacks are looked for in the log. Raises `VerifyError` `farm-results-missing`,
    `NetworkError` and `StorageError`.
    """
    archives = _listed(account, ended.arn, "FILE", "CUSTOMER_ARTIFACT")
    logs = _listed(account, ended.arn, "LOG", "DEVICE_LOG")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetched-") as scratch:
        why = _from_archives(account, archives, folder / RESULTS, Path(scratch))
        _fetch_logs(account, logs, folder / LOG, Path(scratch))
    if why and not ((folder / LOG).is_file() and unpack_log(folder / LOG, folder / RESULTS, account.where)):
        raise missing(account.where, why, ended.url, folder / LOG)


def _listed(account: DeviceFarmAccount, run: str, category: Category, kind: str) -> list[str]:
    """Return the addresses of a run's artifacts of one kind."""
    pauses = iter(account.timeouts.pauses[:LISTED_AGAIN])
    while not (found := account.ask(lambda client: _urls(client, run, category, kind))):
        seconds = next(pauses, None)
        if seconds is None:
            break
        pause(seconds)
    return found


def _urls(client: "DeviceFarmClient", run: str, category: Category, kind: str) -> list[str]:
    pages = client.get_paginator("list_artifacts").paginate(arn=run, type=category)
    return [item["url"] for page in pages for item in page["artifacts"] if item.get("type") == kind]


def _from_archives(account: DeviceFarmAccount, urls: Sequence[str], folder: Path, scratch: Path) -> str:
    """Unpack the results of the first archive that has any; return why there are none, empty when there are."""
    why = "the run has no customer artifacts, and the device's log has no results"
    for number, url in enumerate(urls):
        archive = scratch / f"{number}.zip"
        try:
            _fetch(account, url, archive, LARGEST_ARCHIVE)
            unpack_results(archive, folder, account.where, FOLDER)
        except VerifyError as error:
            why = f"{error.why}; the device's log has no results either"
        else:
            return ""
    return why


def _fetch_logs(account: DeviceFarmAccount, urls: Sequence[str], log: Path, scratch: Path) -> None:
    """Fetch what there is of logs: a run counts without them."""
    for number, url in enumerate(urls):
        part = scratch / f"{number}.log"
        with suppress(VerifyError):
            _fetch(account, url, part, LARGEST_LOG)
            append_log(part, log)


def _fetch(account: DeviceFarmAccount, url: str, path: Path, most_bytes: int) -> None:
    if not same_way(url, account.endpoint):
        raise missing(account.where, "AWS names an address that is not encrypted", "")
    fetch(url, path, most_bytes=most_bytes, pauses=account.timeouts.pauses, where=account.where)


DEFAULT_TIMEOUTS: Final = FarmTimeouts()


class DeviceFarm:
    """AWS Device Farm. A job's device is `PROJECT/POOL`, of which one device is used, whichever AWS gives."""

    name: Final = kinds.DEVICE_FARM.name

    def __init__(self, timeouts: FarmTimeouts = DEFAULT_TIMEOUTS) -> None:
        self._timeouts = timeouts

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, as `Farm.run` promises; the uploads are removed whatever happens."""
        began = time.monotonic()
        require_free(job.destination)
        account = open_account(f"{self.name}:{job.device}", self._timeouts, tell)
        place = find_place(account, job.device)
        with termination_raises(), ExitStack() as undone:
            ended = _ended(account, place, job, undone)
            tell("fetching the results")
            keep(job.destination, lambda folder: bring_back(account, ended, folder))
        return farm_run(job, began, passed=ended.passed, device=ended.device, url=ended.url)


def _ended(account: DeviceFarmAccount, place: ProjectAndPool, job: FarmJob, undone: ExitStack) -> EndedRun:
    uploads = Uploads(account=account, project=place.project, undone=undone)
    app = uploads.add(job.app, "app.apk", "ANDROID_APP")
    test = uploads.add(job.test, "test.apk", "INSTRUMENTATION_TEST_PACKAGE")
    with tempfile.TemporaryDirectory(prefix="ortrim-") as folder:
        path = Path(folder) / "ortrim.yml"
        write_atomically(path, specification(job.results))
        spec = uploads.add(path, path.name, "INSTRUMENTATION_TEST_SPEC")
    packages = Packages(app=app, test=test, specification=spec)
    return run_on_one(account, place, packages, job)
