"""BrowserStack's answers, as far as they are used: whatever else they hold is left alone.

Facts: https://www.browserstack.com/docs/app-automate/api-reference/espresso/overview.

- What BrowserStack says when something is wrong, as diagnostics. Pure.
- What the end of a build at BrowserStack means. Pure.
"""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.farms.farm import Transient


class BrowserStackAnswer(BaseModel):
    """Any answer."""

    model_config = ConfigDict(frozen=True)


class Complaint(BrowserStackAnswer):
    """Why a request was refused, under the one name or the other."""

    message: str | None = None
    error: str | None = None

    @property
    def words(self) -> str:
        """The words; empty when there are none."""
        return self.message or self.error or ""


class Uploaded(BrowserStackAnswer):
    """A file that BrowserStack has: `bs://` and a number. For a test suite the documents name two different keys."""

    url: str = Field(validation_alias=AliasChoices("app_url", "test_suite_url", "test_url"), pattern=r"^bs://\w+$")


class Begun(BrowserStackAnswer):
    """A build that was begun."""

    build_id: str = Field(pattern=r"^\w+$")


class BrowserStackSession(BrowserStackAnswer):
    """What runs on one device."""

    id: str = Field(pattern=r"^\w+$")


class BrowserStackDevice(BrowserStackAnswer):
    """One of the devices of a build."""

    device: str = ""
    os_version: str = ""
    sessions: tuple[BrowserStackSession, ...] = ()

    @property
    def name(self) -> str:
        """Its name as builds take it; empty when it has none."""
        return "-".join(filter(None, (self.device, self.os_version)))


class BrowserStackBuild(BrowserStackAnswer):
    """A build: the app, the tests and the devices they run on."""

    status: str
    devices: tuple[BrowserStackDevice, ...] = ()

    @property
    def device(self) -> str:
        """The devices' names; a build of ours has one."""
        return ", ".join(filter(None, (device.name for device in self.devices)))

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions' identifiers."""
        return tuple(session.id for device in self.devices for session in device.sessions)


class TestCase(BrowserStackAnswer):
    """One test, with the addresses of its logs. A log that was not requested is absent, null or empty."""

    __test__ = False

    device_log: str | None = None
    instrumentation_log: str | None = None


class TestClass(BrowserStackAnswer):
    """The tests of one class."""

    __test__ = False

    testcases: tuple[TestCase, ...] = ()


class TestClasses(BrowserStackAnswer):
    """The tests of a session."""

    __test__ = False

    data: tuple[TestClass, ...] = ()


class SessionDetails(BrowserStackAnswer):
    """A session as it ended. `error` is words, or a table with words, when it could not be carried out."""

    testcases: TestClasses = TestClasses()
    error: str = ""

    @field_validator("error", mode="before")
    @classmethod
    def _words(cls, value: object) -> str:
        """Take the words, in whatever they are wrapped."""
        if isinstance(value, dict):
            return str(value.get("message", ""))
        return "" if value is None else str(value)

    @property
    def cases(self) -> Iterator[TestCase]:
        """The tests, in the order they are listed."""
        return (case for group in self.testcases.data for case in group.testcases)


class BrowserStackModel(BrowserStackAnswer):
    """One of the devices that the farm has."""

    device: str
    os: str = ""
    os_version: str = ""

    @property
    def name(self) -> str:
        """Its name as builds take it: `Samsung Galaxy S23-13.0`."""
        return f"{self.device}-{self.os_version}"


SIGN_IN: Final = (
    "set BROWSERSTACK_USERNAME and BROWSERSTACK_ACCESS_KEY to those of https://www.browserstack.com/accounts/profile"
)
MOST_LETTERS: Final = 300
ADDRESS_QUERY: Final = re.compile(r"(https?://[^\s?\"']+)\?[^\s\"']*")
QUOTA_WORDS: Final = re.compile(r"PARALLELS_IN_USE|QUEUE_SIZE_EXCEEDED|parallel tests are|quota|limit reached|expired")
PLAN_WORDS: Final = re.compile(r"NOT_AVAILABLE_IN_CURRENT_PLAN|not (?:available|supported|included) (?:in|on|for) your")
DEVICE_WORDS: Final = re.compile(r"INVALID_DEVICE|INVALID_OS_VERSION|INCOMPATIBLE_OS_VERSION|[Dd]evice.* not found")


def refusal(status: int, message: str, where: str) -> Diagnostic | Transient:
    """Return what an answer means that is no success, by its HTTP status and its words."""
    why = f"{status}: {clean(message)}" if message else f"the answer was {status}"
    if status in {401, 403}:
        what = "BrowserStack refuses the user name or the access key"
        return VerifyError("farm-credentials", what, where=where, why=why, hint=SIGN_IN)
    if QUOTA_WORDS.search(message):
        return quota(why, where)
    if status == 429:
        return Transient(quota(why, where))
    if status >= 500 or status in {408, 425}:
        return Transient(trouble(why, where))
    return _of_request(message, why, where)


def quota(why: str, where: str) -> VerifyError:
    """Return the diagnostic of an account that may not run more for now."""
    what, hint = "the account's limit is reached", "wait until other runs have ended, or check the plan's limits"
    return VerifyError("farm-quota", what, where=where, why=why, hint=hint)


def unreachable(why: str, where: str) -> NetworkError:
    """Return the diagnostic of a service that cannot be reached."""
    hint = "check the network or the proxy settings, then run the same command again"
    return NetworkError("farm-unreachable", "BrowserStack cannot be reached", where=where, why=why, hint=hint)


def trouble(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a fault of the farm's own."""
    hint = "this is not caused by the app; run the same command again, and see https://status.browserstack.com"
    return VerifyError("farm-failed", "BrowserStack has an internal error", where=where, why=why, hint=hint)


def clean(text: str) -> str:
    """Return a text's first line, cut short, with addresses in it that carry nothing secret."""
    return ADDRESS_QUERY.sub(r"\1", next(iter(text.strip().splitlines()), ""))[:MOST_LETTERS]


def _of_request(message: str, why: str, where: str) -> VerifyError:
    if PLAN_WORDS.search(message):
        what, hint = "the account's plan does not allow this", "check what the plan includes, or choose another device"
        return VerifyError("farm-project", what, where=where, why=why, hint=hint)
    if DEVICE_WORDS.search(message):
        what, hint = (
            "BrowserStack does not know the device",
            "see https://www.browserstack.com/list-of-browsers-and-platforms",
        )
        return VerifyError("farm-device-unknown", what, where=where, why=why, hint=hint)
    hint = "correct what BrowserStack's message names"
    return VerifyError("farm-refused", "BrowserStack refuses the request", where=where, why=why, hint=hint)


Meaning = tuple[str, str]

TROUBLE: Final[Meaning] = ("farm-failed", "BrowserStack could not carry out the build")
UNSUPPORTED: Final[Meaning] = ("farm-unsupported", "the device cannot run the app")
QUEUED: Final[Meaning] = ("farm-timeout", "no device became free in time")
TOO_LONG: Final[Meaning] = ("farm-timeout", "the build took too long, and BrowserStack ended it")
STOPPED: Final[Meaning] = ("farm-cancelled", "the build was stopped by somebody else")
INCONCLUSIVE: Final[Meaning] = ("farm-inconclusive", "the build ended without a verdict on the app")
WORDS: Final[tuple[tuple[re.Pattern[str], Meaning], ...]] = (
    (re.compile(r"INSTALL_FAILED|incompatible|unsupported", re.IGNORECASE), UNSUPPORTED),
    (re.compile(r"queue|waiting for (?:a )?device", re.IGNORECASE), QUEUED),
    (re.compile(r"stopped|aborted|cancell?ed|terminated", re.IGNORECASE), STOPPED),
    (re.compile(r"timed? ?out", re.IGNORECASE), TOO_LONG),
)
"""The first that fits counts."""
STATUSES: Final[dict[str, Meaning]] = {
    "timedout": TOO_LONG,
    "timeout": TOO_LONG,
    "stopped": STOPPED,
    "aborted": STOPPED,
    "cancelled": STOPPED,
    "skipped": ("farm-inconclusive", "the tests were never run"),
}


def passed(status: str, words: str, url: str, where: str, *, ran: bool) -> bool:
    """Return whether the instrumentation passed, from an ended build's status and what its sessions say in words.

    Raises `VerifyError` when nothing is known of it: `farm-failed`, `farm-timeout`, `farm-cancelled`,
    `farm-unsupported`, `farm-inconclusive`.
    """
    if status in {"passed", "failed"}:
        return status == "passed"
    code, what = _of_error(words, ran=ran) if status == "error" else STATUSES.get(status, INCONCLUSIVE)
    why = f"{status}: {clean(words)}" if words else f"the build's status is {clean(status)!r}"
    raise VerifyError(code, what, where=where, why=why, hint=f"see {url}")


def _of_error(words: str, *, ran: bool) -> Meaning:
    meaning = next((meaning for pattern, meaning in WORDS if pattern.search(words)), TROUBLE)
    return TROUBLE if ran and meaning is QUEUED else meaning
