"""AWS Device Farm through boto3, with the credentials that AWS's own tools would use.

boto3 is large and needed by few, so it is an extra (`ortrim[devicefarm]`) and imported here only when it is used. It
never tries a call again by itself: a run that is scheduled twice costs twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ortrim.errors import Diagnostic, ToolError
from ortrim.verify.devices.farms.base import Tell
from ortrim.verify.devices.farms.device_farm_errors import failure, no_credentials, refusal, trouble
from ortrim.verify.devices.farms.polling import Patience, Transient, persist
from ortrim.verify.devices.farms.transfers import SECONDS, keep_addresses_out_of_logs

if TYPE_CHECKING:
    import boto3
    from types_boto3_devicefarm.client import DeviceFarmClient

Answer = TypeVar("Answer")

REGION: Final = "us-west-2"
"""The only one in which Device Farm tests on phones."""


class Account:
    """An account at AWS Device Farm, asked with `patience` by one who is told; all that it raises names `where`."""

    def __init__(self, client: DeviceFarmClient, where: str, patience: Patience, tell: Tell) -> None:
        self.where = where
        self.patience = patience
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
        return persist(lambda: self._called(call), self.patience.pauses)

    def _called(self, call: Callable[[DeviceFarmClient], Answer]) -> Answer:
        # Raised where no exception is handled: what the client says of itself may hold more than is to be seen.
        answer = self._answer_or_failure(call)
        if isinstance(answer, _Failure):
            raise answer.cause
        return answer

    def _answer_or_failure(self, call: Callable[[DeviceFarmClient], Answer]) -> Answer | _Failure:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra

        try:
            return call(self._client)
        except ClientError as error:
            details = error.response.get("Error", {})
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return _Failure(refusal(details.get("Code", ""), status, details.get("Message", ""), self.where))
        except BotoCoreError as error:
            return _Failure(failure(_names(error), str(error), self.where))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # The client's parser is not made for answers that are no answer, nor is `call`.
            return _Failure(trouble(f"its answer is not understood: {type(error).__name__} {error}", self.where))


class _Failure:
    """Why a call has no answer."""

    def __init__(self, cause: Diagnostic | Transient) -> None:
        self.cause = cause


def open_account(where: str, patience: Patience, tell: Tell) -> Account:
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
        return Account(_client(boto3.Session(), where), where, patience, tell)
    except (BotoCoreError, ValueError) as error:
        # An endpoint that is no address is a ValueError.
        cause = failure(_names(error), str(error), where)
    raise cause.diagnostic if isinstance(cause, Transient) else cause


def _client(session: boto3.Session, where: str) -> DeviceFarmClient:
    from botocore.config import Config  # noqa: PLC0415 - an extra

    if session.get_credentials() is None:
        raise no_credentials("none of the places where boto3 looks for credentials has any", where)
    connect, read = SECONDS
    once = Config(connect_timeout=connect, read_timeout=read, retries={"mode": "standard", "total_max_attempts": 1})
    return session.client("devicefarm", region_name=_region(session), config=once)


def _region(session: boto3.Session) -> str:
    """Return the region set for this user if the service is there: it is usually set for other services."""
    chosen = session.region_name
    return chosen if chosen in session.get_available_regions("devicefarm") else REGION


def _names(error: Exception) -> tuple[str, ...]:
    return tuple(kind.__name__ for kind in type(error).__mro__)
