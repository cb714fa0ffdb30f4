"""AWS Device Farm through boto3, with the credentials that AWS's own tools would use.

boto3 is large and needed by few, so it is an extra (`ortrim[devicefarm]`) and imported here only when it is used. It
never tries a call again by itself: a run that is scheduled twice costs twice.

- What AWS Device Farm's machine does beside the device: a test specification that runs the app's instrumentation.
- What AWS and its client say when something is wrong, as diagnostics. Pure: classes are recognised by their names.
- Files for AWS Device Farm: announced, sent to a signed address, looked at by the farm, and removed in the end.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from ortrim.base.http import TIMEOUT_SECONDS, TransportError
from ortrim.devices.farms.farm import Tell
from ortrim.devices.farms.polling import FarmLimits, FarmStage, FarmTimeouts, Overdue, Seen, Transient, follow, persist
from ortrim.devices.farms.results import keep_addresses_out_of_logs, may_pass, send_file
from ortrim.errors import Diagnostic, NetworkError, ToolError, VerifyError

if TYPE_CHECKING:
    import boto3
    from types_boto3_devicefarm.client import DeviceFarmClient

SIGN_IN: Final = (
    "give AWS's own tools credentials that may use Device Farm: aws configure, aws sso login, AWS_PROFILE, or "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
REFUSED: Final = frozenset({
    "AccessDenied", "AccessDeniedException", "AuthFailure", "ExpiredToken", "ExpiredTokenException",
    "IncompleteSignature", "IncompleteSignatureException", "InvalidClientTokenId", "InvalidSignatureException",
    "MissingAuthenticationToken", "MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired",
    "RequestExpired", "SignatureDoesNotMatch", "UnauthorizedOperation", "UnrecognizedClientException",
})  # fmt: skip
THROTTLED: Final = frozenset({
    "RequestLimitExceeded", "SlowDown", "Throttling", "ThrottledException", "ThrottlingException",
    "TooManyRequestsException",
})  # fmt: skip
NO_CREDENTIALS: Final = frozenset({
    "ConfigNotFound", "ConfigParseError", "CredentialRetrievalError", "InvalidConfigError", "LoginError",
    "NoAuthTokenError", "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "SSOError",
    "TokenRetrievalError", "UnauthorizedSSOTokenError",
})  # fmt: skip
UNREACHABLE: Final = frozenset({"HTTPClientError", "ConnectionError", "EndpointConnectionError"})
MOST_LETTERS: Final = 300


def refusal(code: str, status: int, message: str, where: str) -> Diagnostic | Transient:
    """Return what an answer of the service means, by its code (`LimitExceededException`) and HTTP status."""
    why = f"{code}: {short(message)}"
    if code in THROTTLED:
        what, hint = "AWS limits the rate of requests", "wait some minutes, then run the same command again"
        return Transient(VerifyError("farm-quota", what, where=where, why=why, hint=hint))
    if code in REFUSED:
        return VerifyError("farm-credentials", "AWS refuses the credentials", where=where, why=why, hint=SIGN_IN)
    if status >= 500:
        return Transient(trouble(why, where))
    return _of_service(code, why, where)


def failure(kinds: Sequence[str], message: str, where: str) -> Diagnostic | Transient:
    """Return what an exception of the client means, by the names of its class and the classes above it."""
    why = f"{kinds[0]}: {short(message)}"
    if NO_CREDENTIALS.intersection(kinds):
        return no_credentials(why, where)
    if UNREACHABLE.intersection(kinds):
        return Transient(unreachable(why, where))
    if "ParamValidationError" in kinds:
        # Its first line only says that there is something; the next ones say what.
        return refused(short(" ".join(message.split())), where)
    return trouble(why, where)


def no_credentials(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a machine without credentials for AWS."""
    what = "there are no credentials for AWS"
    return VerifyError("farm-credentials", what, where=where, why=why, hint=SIGN_IN)


def unreachable(why: str, where: str) -> NetworkError:
    """Return the diagnostic of a service that cannot be reached."""
    hint = "check the network or the proxy settings, then run the same command again"
    return NetworkError("farm-unreachable", "AWS Device Farm cannot be reached", where=where, why=why, hint=hint)


def trouble(why: str, where: str) -> VerifyError:
    """Return the diagnostic of a fault of the farm's own."""
    hint = "this is not caused by the app; run the same command again, and see https://health.aws.amazon.com"
    return VerifyError("farm-failed", "AWS Device Farm has an internal error", where=where, why=why, hint=hint)


def refused(why: str, where: str) -> VerifyError:
    """Return the diagnostic of something that the farm does not take."""
    hint = "correct what AWS's message names"
    return VerifyError("farm-refused", "AWS Device Farm refuses the request", where=where, why=why, hint=hint)


def short(message: str) -> str:
    """Return a message's first line, cut short: AWS adds lines with the request's headers, a token among them."""
    return next(iter(message.strip().splitlines()), "")[:MOST_LETTERS]


def _of_service(code: str, why: str, where: str) -> VerifyError:
    """Return what the exceptions of the service's own model mean."""
    match code:
        case "LimitExceededException":
            what, hint = "a quota of the account is used up", "see Service Quotas in AWS's console, or wait"
            return VerifyError("farm-quota", what, where=where, why=why, hint=hint)
        case "NotEligibleException" | "ServiceAccountException":
            hint = "open Device Farm once in AWS's console, which sets up the account"
            what = "the account cannot use Device Farm"
            return VerifyError("farm-project", what, where=where, why=why, hint=hint)
        case "NotFoundException":
            what, hint = "the project, or a part of it, does not exist", "look at it in AWS's console"
            return VerifyError("farm-project", what, where=where, why=why, hint=hint)
        case "ArgumentException" | "InvalidParameterException" | "ValidationException":
            return refused(why, where)
        case _:
            return trouble(why, where)


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
        """Call the service once. Raises `VerifyError`, `NetworkError`.

        `call` takes from the answer what is used: what it does not find there is the service's fault.
        """
        return persist(lambda: self._called(call))

    def ask(self, call: Callable[[DeviceFarmClient], Answer]) -> Answer:
        """Ask the service what changes nothing, again after a lost connection. Raises `VerifyError`, `NetworkError`."""
        return persist(lambda: self._called(call), self.timeouts.pauses)

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


def open_account(where: str, timeouts: FarmTimeouts, tell: Tell) -> DeviceFarmAccount:
    """Return the account of this machine's credentials; nothing is sent to the service yet.

    Raises `ToolError` `farm-tool-missing` without boto3, and `VerifyError` `farm-credentials`.
    """
    try:
        import boto3  # noqa: PLC0415 - an extra
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    except ImportError as error:
        what, hint = "AWS Device Farm needs boto3, which is not installed", 'run: pip install "ortrim[devicefarm]"'
        raise ToolError("farm-tool-missing", what, where=where, why=str(error), hint=hint) from error
    keep_addresses_out_of_logs()
    try:
        return DeviceFarmAccount(_client(boto3.Session(), where), where, timeouts, tell)
    except (BotoCoreError, ValueError) as error:
        # An endpoint that is no address is a ValueError.
        cause = failure(_names(error), str(error), where)
    raise cause.diagnostic if isinstance(cause, Transient) else cause


def _client(session: boto3.Session, where: str) -> DeviceFarmClient:
    from botocore.config import Config  # noqa: PLC0415 - an extra

    if session.get_credentials() is None:
        raise no_credentials("none of the places where boto3 looks for credentials has any", where)
    connect, read = TIMEOUT_SECONDS
    once = Config(connect_timeout=connect, read_timeout=read, retries={"mode": "standard", "total_max_attempts": 1})
    return session.client("devicefarm", region_name=_region(session), config=once)


def _region(session: boto3.Session) -> str:
    """Return the region set for this user if the service is there: it is usually set for other services."""
    chosen = session.region_name
    return chosen if chosen in session.get_available_regions("devicefarm") else REGION


def _names(error: Exception) -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in type(error).__mro__)


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
LOOKED_AT: Final = FarmLimits(queue_seconds=600.0, run_seconds=600.0)
"""How long the farm may take to look at a file; it takes some seconds."""


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """The files of one run in one project, which `undone` removes again."""

    account: DeviceFarmAccount
    project: str
    undone: ExitStack

    def add(self, path: Path, name: str, kind: Kind) -> str:
        """Send a file and return its ARN once the farm has taken it.

        Raises `NetworkError` `farm-upload-lost`, `VerifyError` `farm-refused` and what calling the service raises.
        """
        self.account.tell(f"uploading {name}")
        arn, url = self._announced(name, kind)
        self.undone.callback(self._remove, arn, name)
        persist(lambda: self._send(url, path, name), self.account.timeouts.pauses[:3])
        self._wait(arn, name)
        return arn

    def _announced(self, name: str, kind: Kind) -> tuple[str, str]:
        """Return a new upload's ARN and the signed address that takes the file."""

        def announce(client: DeviceFarmClient) -> tuple[str, str]:
            made = client.create_upload(projectArn=self.project, name=name, type=kind, contentType=CONTENT_TYPE)
            return made["upload"]["arn"], made["upload"]["url"]

        return self.account.act(announce)

    def _send(self, url: str, path: Path, name: str) -> None:
        where = self.account.where
        try:
            send_file(url, path, {"Content-Type": CONTENT_TYPE})
        except TransportError as failure:
            why = str(failure)
            if not may_pass(failure):
                raise trouble(f"its storage refuses {name}: {why}", where) from None
            hint = "check the network or the proxy settings, then run the same command again"
            lost = NetworkError("farm-upload-lost", f"{name} did not get through", where=where, why=why, hint=hint)
            raise Transient(lost) from None

    def _wait(self, arn: str, name: str) -> None:
        interval = min(self.account.timeouts.interval_seconds, 3.0)
        try:
            status, message = follow(lambda: self._look(arn, name), LOOKED_AT, interval, self.account.tell)
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
        return Seen(stage=FarmStage.DONE if done else FarmStage.WAITING, words=words, facts=(status, message))

    def _remove(self, arn: str, name: str) -> None:
        try:
            self.account.act(lambda client: client.delete_upload(arn=arn))
        except Diagnostic as error:
            self.account.tell(f"{name} stays at AWS Device Farm ({error.code}), which removes it after 30 days")
