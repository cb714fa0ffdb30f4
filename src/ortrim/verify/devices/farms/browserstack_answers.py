"""BrowserStack's answers, as far as they are used: whatever else they hold is left alone.

Facts: https://www.browserstack.com/docs/app-automate/api-reference/espresso/overview.
"""

from collections.abc import Iterator

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator


class Answer(BaseModel):
    """Any answer."""

    model_config = ConfigDict(frozen=True)


class Complaint(Answer):
    """Why a request was refused, under the one name or the other."""

    message: str | None = None
    error: str | None = None

    @property
    def words(self) -> str:
        """The words; empty when there are none."""
        return self.message or self.error or ""


class Uploaded(Answer):
    """A file that BrowserStack has: `bs://` and a number. For a test suite the documents name two different keys."""

    url: str = Field(validation_alias=AliasChoices("app_url", "test_suite_url", "test_url"), pattern=r"^bs://\w+$")


class Begun(Answer):
    """A build that was begun."""

    build_id: str = Field(pattern=r"^\w+$")


class Session(Answer):
    """What runs on one device."""

    id: str = Field(pattern=r"^\w+$")


class Device(Answer):
    """One of the devices of a build."""

    device: str = ""
    os_version: str = ""
    sessions: tuple[Session, ...] = ()

    @property
    def name(self) -> str:
        """Its name as builds take it; empty when it has none."""
        return "-".join(filter(None, (self.device, self.os_version)))


class Build(Answer):
    """A build: the app, the tests and the devices they run on."""

    status: str
    devices: tuple[Device, ...] = ()

    @property
    def device(self) -> str:
        """The devices' names; a build of ours has one."""
        return ", ".join(filter(None, (device.name for device in self.devices)))

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions' identifiers."""
        return tuple(session.id for device in self.devices for session in device.sessions)


class TestCase(Answer):
    """One test, with the addresses of its logs. A log that was not asked for is absent, null or empty."""

    __test__ = False

    device_log: str | None = None
    instrumentation_log: str | None = None


class TestClass(Answer):
    """The tests of one class."""

    __test__ = False

    testcases: tuple[TestCase, ...] = ()


class TestClasses(Answer):
    """The tests of a session."""

    __test__ = False

    data: tuple[TestClass, ...] = ()


class SessionDetails(Answer):
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


class Model(Answer):
    """One of the devices that the farm has."""

    device: str
    os: str = ""
    os_version: str = ""

    @property
    def name(self) -> str:
        """Its name as builds take it: `Samsung Galaxy S23-13.0`."""
        return f"{self.device}-{self.os_version}"
