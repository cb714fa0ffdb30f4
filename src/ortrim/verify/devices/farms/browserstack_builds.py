"""One build at BrowserStack: begun, followed to its end, and stopped as far as that can be done from here."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.verify.devices.farms.base import FarmJob
from ortrim.verify.devices.farms.browserstack_account import Account
from ortrim.verify.devices.farms.browserstack_answers import Begun, Build, Model, Uploaded
from ortrim.verify.devices.farms.polling import Limits, Overdue, Seen, Stage, follow

BUILD: Final = "/app-automate/espresso/v2/build"
BUILDS: Final = "/app-automate/espresso/v2/builds"
DEVICES: Final = "/app-automate/devices.json"
DASHBOARD: Final = "https://app-automate.browserstack.com/dashboard/v2/builds"
STAGES: Final = {"queued": Stage.WAITING, "running": Stage.RUNNING}
WORDS: Final = {"queued": "waiting for a device", "running": "running"}
UNCERTAIN: Final = "it is not known whether the build was begun"
IDLE_SECONDS: Final = (60, 900)
"""What BrowserStack accepts as the time after which it ends a test that says nothing."""


def url_of(build: str) -> str:
    """Return where a person sees a build."""
    return f"{DASHBOARD}/{build}"


def require_device(account: Account, name: str) -> None:
    """Raise `VerifyError` `farm-device-unknown` unless the farm has an Android device of that name."""
    models = account.ask(DEVICES, tuple[Model, ...])
    names = sorted({model.name for model in models if model.os.lower() in {"", "android"}})
    if name not in names:
        near = get_close_matches(name, names, n=4, cutoff=0.5) or names[:4]
        what, hint = f"BrowserStack has no device {name!r}", f"there are, for example: {', '.join(near)}"
        raise VerifyError("farm-device-unknown", what, where=account.where, hint=hint)


def begin(account: Account, job: FarmJob, app: Uploaded, test: Uploaded) -> str:
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
        raise NetworkError(error.reference, UNCERTAIN, where=account.where, why=error.why, hint=hint) from error
    except (KeyboardInterrupt, SystemExit):
        account.tell(f"{UNCERTAIN}: look at {DASHBOARD}")
        raise


def follow_build(account: Account, job: FarmJob, build: str) -> tuple[Build, bool]:
    """Return a build that has ended, and whether it ever ran; it is stopped when this raises.

    Raises `VerifyError` `farm-timeout`, and what asking raises.
    """
    limits = Limits(queue_seconds=job.queue_seconds, run_seconds=job.timeout_seconds + account.patience.grace_seconds)
    ran: list[bool] = []

    def look() -> Seen[Build]:
        seen = _look(account, build)
        if seen.stage is Stage.RUNNING:
            ran.append(True)
        return seen

    with _stopped(account, build):
        account.tell(f"the build: {url_of(build)}")
        try:
            ended = follow(look, limits, account.patience.interval_seconds, account.tell)
        except Overdue as error:
            raise _overdue(error, build, account.where) from error
    return ended, bool(ran)


def _look(account: Account, build: str) -> Seen[Build]:
    try:
        answer = account.ask(f"{BUILDS}/{build}", Build)
    except NetworkError as error:
        what = "the connection was lost while the build was followed"
        why = f"{error.why}\nthe build may still go on: {url_of(build)}"
        raise NetworkError(error.reference, what, where=account.where, why=why, hint=error.hint) from error
    stage = STAGES.get(answer.status, Stage.DONE)
    return Seen(stage=stage, words=WORDS.get(answer.status, "the build has ended"), facts=answer)


def _overdue(error: Overdue, build: str, where: str) -> VerifyError:
    what = "no device became free in time" if error.stage is Stage.WAITING else "the build did not end in time"
    hint = f"see that it is stopped: {url_of(build)}"
    return VerifyError("farm-timeout", what, where=where, why=str(error), hint=hint)


@contextmanager
def _stopped(account: Account, build: str) -> Iterator[None]:
    """Try to stop the build when it is given up: by Ctrl-C, a lost connection, or a limit of time.

    BrowserStack documents no way to do so but a button in its dashboard; the address that is called is what such a way
    would be called, and answers with 404 where there is none. The user is then told where the button is.
    """
    try:
        yield
    except BaseException:
        account.tell("stopping the build")
        try:
            account.act("POST", f"{BUILDS}/{build}/stop", object)
        except Diagnostic:
            account.tell(f"BrowserStack stops no build from here: press 'Stop build' at {url_of(build)}")
        raise
