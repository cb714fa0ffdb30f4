"""BrowserStack's App Automate: phones of BrowserStack's, on which an app's Espresso tests run.

- BrowserStack's App Automate over HTTP, with the user name and the key that its own tools take.
- One build at BrowserStack: begun, followed to its end, and stopped as far as that can be done from here.
- What a build at BrowserStack leaves: logs. It brings back no file of the device's, so results travel in its log.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from ortrim.base.command import termination_raises
from ortrim.base.files import storage_errors
from ortrim.base.http import (
    TIMEOUT_SECONDS,
    Authorize,
    Body,
    TransportError,
    as_it_is,
    basic,
    new_session,
    opened,
    same_origin,
    whole,
)
from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.farms.browserstack_answers import (
    SIGN_IN,
    Begun,
    BrowserStackBuild,
    BrowserStackModel,
    Complaint,
    SessionDetails,
    Uploaded,
    passed,
    refusal,
    trouble,
    unreachable,
)
from ortrim.farms.farm import (
    BROWSERSTACK_VARIABLES,
    FarmLimits,
    FarmStage,
    FarmTimeouts,
    Overdue,
    Seen,
    Transient,
    absent_variables,
    follow,
    pause,
    persist,
)
from ortrim.farms.results import (
    LARGEST_LOG,
    LOG,
    RESULTS,
    Upload,
    append_log,
    farm_run,
    fetch,
    keep,
    keep_addresses_out_of_logs,
    missing,
    require_free,
    unpack_log,
)
from ortrim.verify.devices.batch import FarmJob, FarmRun, Tell

Kind = TypeVar("Kind")

DOMAIN: Final = ".browserstack.com"
UPLOAD_SECONDS: Final = (20.0, 300.0)
"""An upload is answered when BrowserStack has looked at the file."""
LARGEST_ANSWER: Final = 8 << 20
FORM: Final = (
    '--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n"
)


class BrowserStackAccount:
    """An account at BrowserStack; requests are repeated with `patience`, and all that it raises names `where`."""

    def __init__(self, base: str, user: str, key: str, *, where: str, patience: FarmTimeouts, tell: Tell) -> None:
        self.where = where
        self.patience = patience
        self.tell = tell
        self._base = base
        self._authorize = basic(user, key)
        self._key = key

    def ask(self, path: str, kind: type[Kind]) -> Kind:
        """GET an answer, again after a lost connection. Raises `VerifyError`, `NetworkError`."""
        return persist(lambda: self._asked("GET", path, kind), self.patience.pauses)

    def act(self, method: str, path: str, kind: type[Kind], body: Mapping[str, Any] | None = None) -> Kind:
        """Call the service once. Raises `VerifyError`, `NetworkError`."""
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        return persist(lambda: self._asked(method, path, kind, body=content, headers=headers))

    def upload(self, path: str, file: Path, name: str, kind: type[Kind]) -> Kind:
        """POST a file as a form, once. Raises `NetworkError` `farm-upload-lost` and what else `act` raises."""
        mark = uuid4().hex
        before, after = FORM.format(mark=mark, name=name).encode(), f"\r\n--{mark}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
        with storage_errors(file), file.open("rb") as content:
            body = Upload(content, file.stat().st_size, before, after)
            try:
                return self._asked("POST", path, kind, body=body, headers=headers, timeout=UPLOAD_SECONDS)
            except Transient as failure:
                lost = failure.diagnostic
        if not isinstance(lost, NetworkError):
            raise lost
        what = f"{name} did not get through"
        raise NetworkError("farm-upload-lost", what, where=self.where, why=lost.why, hint=lost.hint)

    def authorize_for(self, url: str) -> Authorize:
        """Return what adds the credentials when an address is the service's own: others do not get them."""
        parts = urlsplit(url)
        ours = parts.scheme == "https" and (parts.hostname or "").endswith(DOMAIN)
        return self._authorize if ours or same_origin(url, self._base) else as_it_is

    def takes(self, url: str) -> bool:
        """Whether an address that the service names is one to fetch from."""
        return urlsplit(url).scheme == "https" or same_origin(url, self._base)

    def _asked(
        self,
        method: str,
        path: str,
        kind: type[Kind],
        *,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: tuple[float, float] = TIMEOUT_SECONDS,
    ) -> Kind:
        try:
            with (
                new_session(self._authorize) as session,
                opened(session, method, self._base + path, headers=headers, data=body, timeout=timeout) as response,
            ):
                answer = whole(response, most_bytes=LARGEST_ANSWER, unpacked=True)
        except TransportError as failure:
            raise Transient(unreachable(str(failure), self.where)) from None
        if not 200 <= answer.status < 400:
            raise refusal(answer.status, self._words(answer.body), self.where)
        try:
            return TypeAdapter(kind).validate_json(answer.body)
        except ValidationError as error:
            why = f"its answer to {method} {path} is not understood: {error.error_count()} faults"
        raise trouble(why, self.where)

    def _words(self, body: bytes) -> str:
        """Return the words of an answer that is no success; a page of HTML has none for us."""
        try:
            return Complaint.model_validate_json(body).words.replace(self._key, "***")
        except ValidationError:
            return ""


def open_account(
    base: str, environment: Mapping[str, str], *, where: str, patience: FarmTimeouts, tell: Tell
) -> BrowserStackAccount:
    """Return the account of the environment's user. Raises `VerifyError` `farm-credentials` when it names none."""
    absent = absent_variables(environment)
    if absent:
        what, why = "there are no credentials for BrowserStack", f"not set: {' and '.join(absent)}"
        raise VerifyError("farm-credentials", what, where=where, why=why, hint=SIGN_IN)
    keep_addresses_out_of_logs()
    user, key = (environment[name] for name in BROWSERSTACK_VARIABLES)
    return BrowserStackAccount(base, user, key, where=where, patience=patience, tell=tell)


BUILD: Final = "/app-automate/espresso/v2/build"
BUILDS: Final = "/app-automate/espresso/v2/builds"
DEVICES: Final = "/app-automate/devices.json"
DASHBOARD: Final = "https://app-automate.browserstack.com/dashboard/v2/builds"
STAGES: Final = {"queued": FarmStage.WAITING, "running": FarmStage.RUNNING}
WORDS: Final = {"queued": "waiting for a device", "running": "running"}
UNCERTAIN: Final = "it is not known whether the build was started"
IDLE_SECONDS: Final = (60, 900)
"""What BrowserStack accepts as the time after which it ends a test that says nothing."""


def url_of(build: str) -> str:
    """Return where a person sees a build."""
    return f"{DASHBOARD}/{build}"


def require_device(account: BrowserStackAccount, name: str) -> None:
    """Raise `VerifyError` `farm-device-unknown` unless the farm has an Android device of that name."""
    models = account.ask(DEVICES, tuple[BrowserStackModel, ...])
    names = sorted({model.name for model in models if model.os.lower() in {"", "android"}})
    if name not in names:
        near = get_close_matches(name, names, n=4, cutoff=0.5) or names[:4]
        what, hint = f"BrowserStack has no device {name!r}", f"there are, for example: {', '.join(near)}"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=hint)


def begin(account: BrowserStackAccount, job: FarmJob, app: Uploaded, test: Uploaded) -> str:
    """Begin a build on the job's device and return its identifier; the device's log is kept."""
    least, most = IDLE_SECONDS
    body = {
        "app": app.url,
        "testSuite": test.url,
        "devices": [job.device],
        "project": "ortrim",
        "buildTag": job.name,
        "deviceLogs": True,
        "video": False,
        "idleTimeout": int(min(max(job.timeout_seconds, least), most)),
    }
    try:
        return account.act("POST", BUILD, Begun, body).build_id
    except NetworkError as error:
        hint = f"look at {DASHBOARD}"
        raise NetworkError(error.code, UNCERTAIN, where=account.where, why=error.why, hint=hint) from error
    except (KeyboardInterrupt, SystemExit):
        account.tell(f"{UNCERTAIN}: look at {DASHBOARD}")
        raise


def follow_build(account: BrowserStackAccount, job: FarmJob, build: str) -> tuple[BrowserStackBuild, bool]:
    """Return a build that has ended, and whether it ever ran; it is stopped when this raises.

    Raises `VerifyError` `farm-timeout`, and what asking raises.
    """
    limits = FarmLimits(
        queue_seconds=job.queue_seconds, run_seconds=job.timeout_seconds + account.patience.grace_seconds
    )
    ran: list[bool] = []

    def look() -> Seen[BrowserStackBuild]:
        seen = _look(account, build)
        if seen.stage is FarmStage.RUNNING:
            ran.append(True)
        return seen

    with _stopped(account, build):
        account.tell(f"the build: {url_of(build)}")
        try:
            ended = follow(look, limits, account.patience.interval_seconds, account.tell)
        except Overdue as error:
            raise _overdue(error, build, account.where) from error
    return ended, bool(ran)


def _look(account: BrowserStackAccount, build: str) -> Seen[BrowserStackBuild]:
    try:
        answer = account.ask(f"{BUILDS}/{build}", BrowserStackBuild)
    except NetworkError as error:
        what = "the connection was lost while the build was followed"
        why = f"{error.why}\nthe build may still go on: {url_of(build)}"
        raise NetworkError(error.code, what, where=account.where, why=why, hint=error.hint) from error
    stage = STAGES.get(answer.status, FarmStage.DONE)
    return Seen(stage=stage, words=WORDS.get(answer.status, "the build has ended"), facts=answer)


def _overdue(error: Overdue, build: str, where: str) -> VerifyError:
    what = "no device became free in time" if error.stage is FarmStage.WAITING else "the build did not end in time"
    hint = f"see that it is stopped: {url_of(build)}"
    return VerifyError("farm-timeout", what, where=where, why=str(error), hint=hint)


@contextmanager
def _stopped(account: BrowserStackAccount, build: str) -> Iterator[None]:
    """Try to stop the build when it is given up: by Ctrl-C, a lost connection, or a limit of time.

    BrowserStack documents no way to do so but a button in its dashboard; the address that is called is what such a way
    would be called, and answers with 404 where there is none. The message then says where the button is.
    """
    try:
        yield
    except BaseException:
        account.tell("stopping the build")
        try:
            account.act("POST", f"{BUILDS}/{build}/stop", object)
        except Diagnostic:
            account.tell(f"BrowserStack did not stop the build: press 'Stop build' at {url_of(build)}")
        raise


NO_LOGS: Final = "the build has no device logs"


def details_of(account: BrowserStackAccount, build: str, sessions: Iterable[str]) -> tuple[SessionDetails, ...]:
    """Return what is known of a build's sessions. Raises `VerifyError` and `NetworkError`."""
    return tuple(account.ask(f"{BUILDS}/{build}/sessions/{session}", SessionDetails) for session in sessions)


def bring_back(account: BrowserStackAccount, build: str, sessions: tuple[str, ...], folder: Path) -> None:
    """Put the device's log, and the results that travelled in it, into a folder.

    A log may follow the end of its build by some seconds, and is asked for again as after a lost connection. Raises
    `VerifyError` `farm-results-missing`, `NetworkError` and `StorageError`.
    """
    pauses = iter(account.patience.pauses)
    while (error := _brought(account, build, sessions, folder)) is not None:
        seconds = next(pauses, None)
        if seconds is None:
            raise missing(account.where, error, url_of(build), folder / LOG)
        pause(seconds)


def _brought(account: BrowserStackAccount, build: str, sessions: tuple[str, ...], folder: Path) -> str | None:
    """Try to bring the results back; returns why they are not there."""
    cases = [case for details in details_of(account, build, sessions) for case in details.cases]
    logs = _distinct(case.device_log for case in cases)
    try:
        _fetch_all(account, logs, folder / LOG)
        if _unpacked(folder / LOG, folder, account.where):
            return None
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetched-") as scratch:
            log = Path(scratch) / LOG
            _fetch_all(account, _distinct(case.instrumentation_log for case in cases), log)
            if _unpacked(log, folder, account.where):
                return None
    except VerifyError as error:
        return error.why or error.what
    return "the device's log has no results" if logs else NO_LOGS


def _unpacked(log: Path, folder: Path, where: str) -> bool:
    return log.is_file() and unpack_log(log, folder / RESULTS, where)


def _distinct(urls: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(url for url in urls if url))


def _fetch_all(account: BrowserStackAccount, urls: Iterable[str], log: Path) -> None:
    """Fetch logs into one file, in the order they are listed."""
    log.unlink(missing_ok=True)
    for url in urls:
        if not account.takes(url):
            raise missing(account.where, "BrowserStack names an address that is not encrypted", "")
        part = log.with_name(f".{log.name}.part")
        fetch(
            url,
            part,
            most_bytes=LARGEST_LOG,
            pauses=account.patience.pauses,
            where=account.where,
            authorize=account.authorize_for(url),
        )
        append_log(part, log)
        part.unlink()


BASE: Final = "https://api-cloud.browserstack.com"
APPS: Final = ("/app-automate/espresso/v2/app", "/app-automate/espresso/v2/apps")
SUITES: Final = ("/app-automate/espresso/v2/test-suite", "/app-automate/espresso/v2/test-suites")
"""Where a file is sent, and where it is found afterwards."""
DEFAULT_PATIENCE: Final = FarmTimeouts()


class BrowserStack:
    """BrowserStack. A job's device is `Samsung Galaxy S23-13.0`; its `results` is not used: see `log_transport`."""

    name: Final = "browserstack"

    def __init__(
        self,
        *,
        base: str = BASE,
        environment: Mapping[str, str] | None = None,
        patience: FarmTimeouts = DEFAULT_PATIENCE,
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
        return farm_run(job, began, passed=verdict, device=ended.device, url=url_of(build))


def _verdict(account: BrowserStackAccount, build: str, ended: BrowserStackBuild, *, ran: bool) -> bool:
    words = ""
    if ended.status == "error":
        words = " ".join(filter(None, (details.error for details in details_of(account, build, ended.sessions))))
    return passed(ended.status, words, url_of(build), account.where, ran=ran)


def _upload(
    account: BrowserStackAccount, path: Path, name: str, places: tuple[str, str], undone: ExitStack
) -> Uploaded:
    account.tell(f"uploading {name}")
    sent_to, found_at = places
    uploaded = account.upload(sent_to, path, name, Uploaded)
    undone.callback(_remove, account, f"{found_at}/{uploaded.url.removeprefix('bs://')}", name)
    return uploaded


def _remove(account: BrowserStackAccount, path: str, name: str) -> None:
    try:
        account.act("DELETE", path, object)
    except Diagnostic as error:
        account.tell(f"{name} stays at BrowserStack ({error.code}), which removes it after 30 days")
