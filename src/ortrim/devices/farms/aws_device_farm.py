"""AWS Device Farm through boto3: phones of Amazon's, with the credentials that AWS's own tools would use.

boto3 is large and needed by few, so it is an extra (`ortrim[devicefarm]`) and imported here only when it is used. It
never tries a call again by itself: a run that is scheduled twice costs twice.
"""

from __future__ import annotations

import math
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from ortrim.base.command import termination_raises
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.http import TIMEOUT_SECONDS, TransportError
from ortrim.base.tools import causes, diagnose, extra_command, require_extra
from ortrim.devices import kinds
from ortrim.devices.farms import farm
from ortrim.devices.farms.farm import FarmJob, FarmRun, FarmStage, FarmTimeouts, Overdue, Seen, Tell, Transient
from ortrim.errors import Diagnostic, NetworkError, ToolError, VerifyError

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient

EXTRA: Final = "devicefarm"
SIGN_IN: Final = (
    "give AWS's own tools credentials that may use Device Farm: aws configure, aws sso login, AWS_PROFILE, or "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
THROTTLED: Final = frozenset({
    "RequestLimitExceeded", "SlowDown", "Throttling", "ThrottledException", "ThrottlingException",
    "TooManyRequestsException",
})  # fmt: skip
MOST_LETTERS: Final = 300


def refusal(code: str, status: int, message: str, where: str) -> Diagnostic | Transient:
    """Return what an answer of the service means, by its code (`LimitExceededException`) and HTTP status."""
    why = f"{code}: {short(message)}"
    if code in THROTTLED:
        what, hint = "AWS limits the rate of requests", "wait some minutes, then run the same command again"
        return Transient(VerifyError("farm-quota", what, where=where, why=why, hint=hint))
    if known := diagnose(code, causes("aws"), where, why, kind=VerifyError, sign_in=SIGN_IN):
        return known
    return Transient(trouble(why, where)) if status >= 500 else trouble(why, where)


def failure(names: Sequence[str], message: str, where: str) -> Diagnostic | Transient:
    """Return what an exception of the client means, by the names of its class and the classes above it."""
    # Its first line only says that there is something; the next ones say what.
    invalid = "ParamValidationError" in names
    why = short(" ".join(message.split())) if invalid else f"{names[0]}: {short(message)}"
    known = diagnose("\n".join(names), causes("aws"), where, why, kind=VerifyError, sign_in=SIGN_IN)
    return Transient(known) if isinstance(known, NetworkError) else known or trouble(why, where)


def no_credentials(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a machine without credentials for AWS."""
    return VerifyError("farm-credentials", "there are no credentials for AWS", where=where, why=why, hint=SIGN_IN)


def trouble(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a fault of the farm's own."""
    hint = "this is not caused by the app; run the same command again, and see https://health.aws.amazon.com"
    return VerifyError("farm-failed", "AWS Device Farm has an internal error", where=where, why=why, hint=hint)


def short(message: str) -> str:
    """Return a message's first line, cut short: AWS adds lines with the request's headers, a token among them."""
    return next(iter(message.strip().splitlines()), "")[:MOST_LETTERS]


Answer = TypeVar("Answer")

REGION: Final = "us-west-2"
"""The only one in which Device Farm tests on phones."""


class DeviceFarmAccount:
    """An account at AWS Device Farm; requests are repeated with `timeouts`, and all that it raises names `where`."""

    def __init__(self, client: DeviceFarmClient, where: str, timeouts: FarmTimeouts, tell: Tell) -> None:
        self.where = where
        self.timeouts = timeouts
        self.tell = tell
        self.region: str = client.meta.region_name
        self.endpoint: str = client.meta.endpoint_url
        self._client = client

    def act(self, call: Callable[[DeviceFarmClient], Answer]) -> Answer:
        """Call the service once.

        `call` takes from the answer what is used: what it does not find there is the service's fault.
        """
        return farm.persist(lambda: self._called(call))

    def ask(self, call: Callable[[DeviceFarmClient], Answer]) -> Answer:
        """Ask the service what changes nothing, again after a lost connection."""
        return farm.persist(lambda: self._called(call), self.timeouts.pauses)

    def _called(self, call: Callable[[DeviceFarmClient], Answer]) -> Answer:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra

        cause: Diagnostic | Transient
        try:
            return call(self._client)
        except ClientError as error:
            details = error.response.get("Error", {})
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            cause = refusal(details.get("Code", ""), status, details.get("Message", ""), self.where)
        except BotoCoreError as error:
            cause = failure(_names(error), str(error), self.where)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # The client's parser is not made for answers that are no answer, nor is `call`.
            cause = trouble(f"its answer is not understood: {type(error).__name__} {error}", self.where)
        # Raised where no exception is handled: what the client says of itself may hold more than is to be seen.
        raise cause


def _names(error: Exception) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def found_boto3() -> str:
    """Return the version of boto3."""
    return require_extra("boto3", EXTRA)


def open_account(where: str, timeouts: FarmTimeouts, tell: Tell) -> DeviceFarmAccount:
    """Return the account of this machine's credentials; nothing is sent to the service yet."""
    try:
        import boto3  # noqa: PLC0415 - an extra
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    except ImportError as error:
        what, hint = "AWS Device Farm needs boto3, which is not installed", f"run: {extra_command(EXTRA)}"
        raise ToolError("farm-tool-missing", what, where=where, why=str(error), hint=hint) from error
    farm.keep_addresses_out_of_logs()
    try:
        session = boto3.Session()
        if session.get_credentials() is None:
            raise no_credentials("none of the places where boto3 looks for credentials has any", where)
        connect, read = TIMEOUT_SECONDS
        once = Config(connect_timeout=connect, read_timeout=read, retries={"mode": "standard", "total_max_attempts": 1})
        # The user's region is usually set for other services.
        is_there = session.region_name in session.get_available_regions("devicefarm")
        region = session.region_name if is_there else REGION
        client = session.client("devicefarm", region_name=region, config=once)
        return DeviceFarmAccount(client, where, timeouts, tell)
    except (BotoCoreError, ValueError) as error:
        # An endpoint that is no address is a ValueError.
        cause = failure(_names(error), str(error), where)
    raise cause.diagnostic if isinstance(cause, Transient) else cause


FOLDER: Final = "ortrim-results"
OUTPUT_ARGUMENT: Final = "additionalTestOutputDir"
"""The argument of the instrumentation by which the harness knows where its results are wanted."""

SPECIFICATION: Final = Template("""\
version: 0.1
android_test_host: amazon_linux_2
phases:
  test:
    commands:
      - |
        adb -s "$$DEVICEFARM_DEVICE_UDID" shell am instrument -r -w -e $argument $results \\
          "$$DEVICEFARM_TEST_PACKAGE_NAME/$$DEVICEFARM_TEST_PACKAGE_RUNNER" 2>&1 \\
          | tee "$$DEVICEFARM_LOG_DIR/instrument.log"
      - |
        adb -s "$$DEVICEFARM_DEVICE_UDID" pull $results "$$DEVICEFARM_LOG_DIR/$folder" || true
      - |
        if grep -E 'INSTRUMENTATION_STATUS_CODE: -[12]' "$$DEVICEFARM_LOG_DIR/instrument.log"; then exit 1; fi
      - |
        grep 'INSTRUMENTATION_CODE: -1' "$$DEVICEFARM_LOG_DIR/instrument.log"
artifacts:
  - $$DEVICEFARM_LOG_DIR
""")
"""`am instrument` ends with 0 whatever came of the tests. Of each test it prints a code: -1 is an error, -2 a failure;
of itself -1 when it came to its end, and 0 when the app crashed. The results are pulled before that is looked at."""


def specification(results: str) -> str:
    """Return the specification of a run whose results lie in the folder `results` on the device."""
    return SPECIFICATION.substitute(results=shlex.quote(results), folder=FOLDER, argument=OUTPUT_ARGUMENT)


Kind = Literal["ANDROID_APP", "INSTRUMENTATION_TEST_PACKAGE", "INSTRUMENTATION_TEST_SPEC"]

CONTENT_TYPE: Final = "application/octet-stream"
LOOKED_AT_SECONDS: Final = 600.0
"""How long the farm may take to look at a file; it takes some seconds."""


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """The files of one run in one project, which `undone` removes again."""

    account: DeviceFarmAccount
    project: str
    undone: ExitStack

    def add(self, path: Path, name: str, kind: Kind) -> str:
        """Send a file and return its ARN once the farm has taken it."""
        self.account.tell(f"uploading {name}")

        def announce(client: DeviceFarmClient) -> tuple[str, str]:
            made = client.create_upload(projectArn=self.project, name=name, type=kind, contentType=CONTENT_TYPE)
            return made["upload"]["arn"], made["upload"]["url"]

        arn, url = self.account.act(announce)
        self.undone.callback(self._remove, arn, name)
        farm.persist(lambda: self._send(url, path, name), self.account.timeouts.pauses[:3])
        self._wait(arn, name)
        return arn

    def _send(self, url: str, path: Path, name: str) -> None:
        where = self.account.where
        try:
            farm.send_file(url, path, {"Content-Type": CONTENT_TYPE})
        except TransportError as failure:
            why = str(failure)
            if not farm.may_pass(failure):
                raise trouble(f"its storage refuses {name}: {why}", where) from None
            hint = "check the network or the proxy settings, then run the same command again"
            lost = NetworkError("farm-upload-lost", f"{name} did not get through", where=where, why=why, hint=hint)
            raise Transient(lost) from None

    def _wait(self, arn: str, name: str) -> None:
        interval = min(self.account.timeouts.interval_seconds, 3.0)
        try:
            status, message = farm.follow(
                lambda: self._look(arn, name),
                self.account.tell,
                queue_seconds=LOOKED_AT_SECONDS,
                run_seconds=LOOKED_AT_SECONDS,
                interval_seconds=interval,
            )
        except Overdue as error:
            what, why = f"AWS Device Farm has not taken {name} yet", f"its upload is {error}"
            raise VerifyError("farm-timeout", what, where=self.account.where, why=why) from error
        if status != "SUCCEEDED":
            what, hint = f"AWS Device Farm does not take {name}", "correct what AWS's message names"
            raise VerifyError("farm-refused", what, where=self.account.where, why=short(message), hint=hint)

    def _look(self, arn: str, name: str) -> Seen[tuple[str, str]]:
        """See how far the farm is with a file: its status, and the reason when it does not take it."""

        def look(client: DeviceFarmClient) -> tuple[str, str]:
            upload = client.get_upload(arn=arn)["upload"]
            return upload["status"], upload.get("message") or upload.get("metadata") or ""

        status, message = self.account.ask(look)
        done = status in {"SUCCEEDED", "FAILED"}
        words = f"{name} is there" if done else f"waiting until {name} is looked at"
        return FarmStage.DONE if done else FarmStage.WAITING, words, (status, message)

    def _remove(self, arn: str, name: str) -> None:
        try:
            self.account.act(lambda client: client.delete_upload(arn=arn))
        except Diagnostic as error:
            self.account.tell(f"{name} stays at AWS Device Farm ({error.code}), which removes it after 30 days")


ARN: Final = "arn:"


def find_place(account: DeviceFarmAccount, device: str) -> tuple[str, str]:
    """Return the ARNs of the project and the pool of a device's name.

    An ARN of a project has no slash, so the first one always ends the project.
    """
    project, slash, pool = device.partition("/")
    if not (project and slash and pool):
        what, hint = (
            f"{device!r} names no project and device pool",
            f"the form is {kinds.DEVICE_FARM.form}, each a name or an ARN",
        )
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=hint)
    if not project.startswith(ARN):
        projects = account.ask(
            lambda client: [
                (item["name"], item["arn"])
                for page in client.get_paginator("list_projects").paginate()
                for item in page["projects"]
            ]
        )
        project = _only(projects, project, "farm-project", "project", account.where)
    if not pool.startswith(ARN):
        pools = account.ask(
            lambda client: [
                (item["name"], item["arn"])
                for page in client.get_paginator("list_device_pools").paginate(arn=project)
                for item in page["devicePools"]
            ]
        )
        pool = _only(pools, pool, "farm-device-unknown", "device pool", account.where)
    return project, pool


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


NO_REASON: Final = "AWS gives no reason"


def console_url(run: str, region: str) -> str:
    """Return where a person sees a run, by its ARN: `arn:aws:devicefarm:REGION:ACCOUNT:run:PROJECT/RUN`."""
    project, _, number = run.rpartition(":")[2].partition("/")
    return f"https://{region}.console.aws.amazon.com/devicefarm/home#/mobile/projects/{project}/runs/{number}"


def devices_of(account: DeviceFarmAccount, pool: str, app: str) -> tuple[str, ...]:
    """Return the ARNs of the pool's devices that can run the app."""

    def look(client: DeviceFarmClient) -> tuple[tuple[str, ...], set[str]]:
        answer = client.get_device_pool_compatibility(devicePoolArn=pool, appArn=app, testType="INSTRUMENTATION")
        whys = set()
        for item in answer.get("incompatibleDevices", ()):
            messages = {short(each.get("message", "")) for each in item.get("incompatibilityMessages", [])} - {""}
            whys |= messages or {NO_REASON}
        return tuple(item["device"]["arn"] for item in answer.get("compatibleDevices", ())), whys

    fit, whys = account.ask(look)
    if fit:
        return fit
    if not whys:
        what, hint = "the device pool has no device", "add one to it in AWS's console"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=hint)
    what, hint = "no device of the pool can run the app", "choose a pool with devices of the app's ABI and API level"
    why = "\n".join(sorted(whys)[:4])
    raise VerifyError("farm-unsupported", what, where=account.where, why=why, hint=hint)


def device_of(account: DeviceFarmAccount, run: str) -> str:
    """Return the model and the version of Android that a run was on; empty when the account has no permission."""

    def look(client: DeviceFarmClient) -> str:
        devices = [job.get("device", {}) for job in client.list_jobs(arn=run)["jobs"]]
        return ", ".join(f"{device.get('name', '')} {device.get('os', '')}".strip() for device in devices)

    try:
        return account.ask(look)
    except (VerifyError, NetworkError):
        return ""


def require_verdict(run: Mapping[str, Any], url: str, where: str, minutes: int) -> None:
    """Refuse a completed `Run` of the service that is neither passed nor failed by the instrumentation itself.

    `minutes` is the time after which the farm ends a run.
    """
    result = run.get("result", "")
    match result:
        case "PASSED" | "FAILED":
            return
        case "SKIPPED":
            code, what = "farm-unsupported", "the device cannot run the app"
        case "ERRORED":
            code, what = "farm-failed", "AWS Device Farm could not carry out the run"
        case "STOPPED" if _timed_out(run, minutes):
            code, what = "farm-timeout", f"the run took longer than {minutes} minutes"
        case "STOPPED":
            code, what = "farm-cancelled", "the run was stopped by somebody else"
        case _:
            code, what = "farm-inconclusive", "the run ended without a verdict on the app"
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


def run_on_one(
    account: DeviceFarmAccount, project: str, pool: str, job: FarmJob, *, app: str, test: str, specification: str
) -> tuple[str, str]:
    """Run the uploads, given by their ARNs, on one device of the pool, whichever AWS gives.

    Return the ARN of the run, which the instrumentation ended with a verdict, and where it is to be seen.
    """
    devices = devices_of(account, pool, app)
    minutes = max(LEAST_MINUTES, math.ceil(job.timeout_seconds / 60))
    try:
        arn = account.act(
            lambda client: client.schedule_run(
                projectArn=project,
                appArn=app,
                name=job.name[:256],
                # A pool as such would run on each of its devices.
                deviceSelectionConfiguration={
                    "filters": [{"attribute": "ARN", "operator": "IN", "values": list(devices)}],
                    "maxDevices": 1,
                },
                test={"type": "INSTRUMENTATION", "testPackageArn": test, "testSpecArn": specification},
                executionConfiguration={"jobTimeoutMinutes": minutes, "videoCapture": False},
            )["run"]["arn"]
        )
    except NetworkError as error:
        hint = "look at the project in AWS's console"
        raise NetworkError(error.code, UNCERTAIN, where=account.where, why=error.why, hint=hint) from error
    except (KeyboardInterrupt, SystemExit):
        account.tell(f"{UNCERTAIN}: look at the project in AWS's console")
        raise
    url = console_url(arn, account.region)
    with _stopped(account, arn, url):
        account.tell(f"the run: {url}")
        try:
            run = farm.follow(
                lambda: _look(account, arn, url),
                account.tell,
                queue_seconds=job.queue_seconds,
                run_seconds=minutes * 60 + account.timeouts.grace_seconds,
                interval_seconds=account.timeouts.interval_seconds,
            )
        except Overdue as error:
            raise overdue(error, url, account.where) from error
    require_verdict(run, url, account.where, minutes)
    return arn, url


def _look(account: DeviceFarmAccount, arn: str, url: str) -> Seen[Mapping[str, Any]]:
    def state(client: DeviceFarmClient) -> tuple[str, Mapping[str, Any]]:
        run = client.get_run(arn=arn)["run"]
        return run["status"], run

    try:
        status, run = account.ask(state)
    except NetworkError as error:
        what = "the connection was lost while the run was followed"
        why = f"{error.why}\nthe run may still go on: {url}"
        raise NetworkError(error.code, what, where=account.where, why=why, hint=error.hint) from error
    return STAGES.get(status, FarmStage.WAITING), WORDS.get(status, "queued"), run


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


LISTED_AGAIN: Final = 3
"""How often the artifacts of a run that has just ended are requested while there are none."""


def bring_back(account: DeviceFarmAccount, run: str, url: str, folder: Path) -> None:
    """Put the results and the device's log of a run, given by its ARN, into a folder.

    Results that the archive lacks are looked for in the log; there may be none, a run counts without. Raises
    `VerifyError` `farm-results-missing`, `NetworkError` and `StorageError`.
    """
    archives = _listed(account, run, "FILE", "CUSTOMER_ARTIFACT")
    logs = _listed(account, run, "LOG", "DEVICE_LOG")
    results, log = folder / farm.RESULTS, folder / farm.LOG
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetched-") as scratch:
        part = Path(scratch) / "part"
        why = "the run has no customer artifacts, and the device's log has no results"
        for address in archives:
            try:
                _fetch(account, address, part, farm.LARGEST_ARCHIVE)
                farm.unpack_results(part, results, account.where, FOLDER)
            except VerifyError as error:
                why = f"{error.why}; the device's log has no results either"
            else:
                why = ""
                break
        for address in logs:
            with suppress(VerifyError):
                _fetch(account, address, part, farm.LARGEST_LOG)
                with storage_errors(log), part.open("rb") as source, log.open("ab") as target:
                    shutil.copyfileobj(source, target)
    if why and not (log.is_file() and farm.unpack_log(log, results, account.where)):
        raise farm.missing(account.where, why, url, log)


def _listed(account: DeviceFarmAccount, run: str, category: Literal["FILE", "LOG"], kind: str) -> list[str]:
    """Return the addresses of a run's artifacts of one kind."""

    def look(client: DeviceFarmClient) -> list[str]:
        pages = client.get_paginator("list_artifacts").paginate(arn=run, type=category)
        return [item["url"] for page in pages for item in page["artifacts"] if item.get("type") == kind]

    for seconds in account.timeouts.pauses[:LISTED_AGAIN]:
        if found := account.ask(look):
            return found
        farm.pause(seconds)
    return account.ask(look)


def _fetch(account: DeviceFarmAccount, url: str, path: Path, most_bytes: int) -> None:
    if not farm.same_way(url, account.endpoint):
        raise farm.missing(account.where, "AWS names an address that is not encrypted", "")
    farm.fetch(url, path, most_bytes=most_bytes, pauses=account.timeouts.pauses, where=account.where)


DEFAULT_TIMEOUTS: Final = FarmTimeouts()


class DeviceFarm:
    """AWS Device Farm. A job's device is `PROJECT/POOL`, of which one device is used, whichever AWS gives."""

    name: Final = kinds.DEVICE_FARM.name

    def __init__(self, timeouts: FarmTimeouts = DEFAULT_TIMEOUTS) -> None:
        self._timeouts = timeouts

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, as `Farm.run` promises; the uploads are removed whatever happens."""
        farm.require_free(job.destination)
        account = open_account(f"{self.name}:{job.device}", self._timeouts, tell)
        project, pool = find_place(account, job.device)
        with termination_raises(), ExitStack() as undone:
            uploads = Uploads(account=account, project=project, undone=undone)
            app = uploads.add(job.app, "app.apk", "ANDROID_APP")
            test = uploads.add(job.test, "test.apk", "INSTRUMENTATION_TEST_PACKAGE")
            with tempfile.TemporaryDirectory(prefix="ortrim-") as folder:
                path = Path(folder) / "ortrim.yml"
                write_atomically(path, specification(job.results))
                spec = uploads.add(path, path.name, "INSTRUMENTATION_TEST_SPEC")
            arn, url = run_on_one(account, project, pool, job, app=app, test=test, specification=spec)
            tell("fetching the results")
            farm.keep(job.destination, lambda folder: bring_back(account, arn, url, folder))
        return farm.farm_run(job, device_of(account, arn), url)
