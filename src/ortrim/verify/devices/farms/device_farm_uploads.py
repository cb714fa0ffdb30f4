"""Files for AWS Device Farm: announced, sent to a signed address, looked at by the farm, and removed in the end."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.verify.devices.farms.device_farm_account import Account
from ortrim.verify.devices.farms.device_farm_errors import short, trouble
from ortrim.verify.devices.farms.polling import (
    Limits,
    Overdue,
    Seen,
    Stage,
    Transient,
    follow,
    persist,
)
from ortrim.verify.devices.farms.transfers import TransferFailed, send_file

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient

Kind = Literal["ANDROID_APP", "INSTRUMENTATION_TEST_PACKAGE", "INSTRUMENTATION_TEST_SPEC"]

CONTENT_TYPE: Final = "application/octet-stream"
LOOKED_AT: Final = Limits(queue_seconds=600.0, run_seconds=600.0)
"""How long the farm may take to look at a file; it takes some seconds."""


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """The files of one run in one project, which `undone` removes again."""

    account: Account
    project: str
    undone: ExitStack

    def add(self, path: Path, name: str, kind: Kind) -> str:
        """Send a file and return its ARN once the farm has taken it.

        Raises `NetworkError` `farm-upload-lost`, `VerifyError` `farm-refused` and what calling the service raises.
        """
        self.account.tell(f"uploading {name}")
        arn, url = self._announced(name, kind)
        self.undone.callback(self._remove, arn, name)
        persist(lambda: self._send(url, path, name), self.account.patience.pauses[:3])
        self._wait(arn, name)
        return arn

    def _announced(self, name: str, kind: Kind) -> tuple[str, str]:
        """Return a new upload's ARN and the signed address that takes the file."""

        def announce(client: "DeviceFarmClient") -> tuple[str, str]:
            made = client.create_upload(projectArn=self.project, name=name, type=kind, contentType=CONTENT_TYPE)
            return made["upload"]["arn"], made["upload"]["url"]

        return self.account.act(announce)

    def _send(self, url: str, path: Path, name: str) -> None:
        failure = _sent(url, path)
        if failure is None:
            return
        where = self.account.where
        if not failure.transient:
            raise trouble(f"its store does not take {name}: {failure.why}", where)
        hint = "check the network or the proxy settings, then run the same command again"
        lost = NetworkError("farm-upload-lost", f"{name} did not get through", where=where, why=failure.why, hint=hint)
        raise Transient(lost)

    def _wait(self, arn: str, name: str) -> None:
        interval = min(self.account.patience.interval_seconds, 3.0)
        try:
            status, message = follow(lambda: self._look(arn, name), LOOKED_AT, interval, self.account.tell)
        except Overdue as error:
            what, why = f"AWS Device Farm has not taken {name} yet", f"its upload is {error}"
            raise VerifyError("farm-timeout", what, where=self.account.where, why=why) from error
        if status != "SUCCEEDED":
            what, hint = f"AWS Device Farm does not take {name}", "the reason is AWS's own: mend what it names"
            raise VerifyError("farm-refused", what, where=self.account.where, why=short(message), hint=hint)

    def _look(self, arn: str, name: str) -> Seen[tuple[str, str]]:
        """See how far the farm is with a file: its status, and the reason when it does not take it."""

        def look(client: "DeviceFarmClient") -> tuple[str, str]:
            upload = client.get_upload(arn=arn)["upload"]
            return upload["status"], upload.get("message") or upload.get("metadata") or ""

        status, message = self.account.ask(look)
        done = status in {"SUCCEEDED", "FAILED"}
        words = f"{name} is there" if done else f"waiting until {name} is looked at"
        return Seen(stage=Stage.DONE if done else Stage.WAITING, words=words, facts=(status, message))

    def _remove(self, arn: str, name: str) -> None:
        try:
            self.account.act(lambda client: client.delete_upload(arn=arn))
        except Diagnostic as error:
            self.account.tell(f"{name} stays at AWS Device Farm ({error.reference}), which removes it after 30 days")


def _sent(url: str, path: Path) -> TransferFailed | None:
    try:
        send_file(url, path, {"Content-Type": CONTENT_TYPE})
    except TransferFailed as failure:
        return failure
    return None
