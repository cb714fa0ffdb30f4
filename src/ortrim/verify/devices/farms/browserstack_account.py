"""BrowserStack's App Automate over HTTP, with the user name and the key that its own tools take."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import requests
from pydantic import TypeAdapter, ValidationError

from ortrim.errors import Diagnostic, NetworkError, VerifyError
from ortrim.storage.files import storage_errors
from ortrim.tools.farm_credentials import BROWSERSTACK_VARIABLES, absent_variables
from ortrim.verify.devices.farms.base import Tell
from ortrim.verify.devices.farms.browserstack_answers import Complaint
from ortrim.verify.devices.farms.browserstack_errors import SIGN_IN, refusal, trouble, unreachable
from ortrim.verify.devices.farms.polling import Patience, Transient, persist
from ortrim.verify.devices.farms.transfers import (
    SECONDS,
    Credentials,
    TransferFailed,
    Upload,
    body_of,
    exchange,
    keep_addresses_out_of_logs,
    same_server,
)

Kind = TypeVar("Kind")

DOMAIN: Final = ".browserstack.com"
UPLOAD_SECONDS: Final = (10.0, 300.0)
"""An upload is answered when BrowserStack has looked at the file."""
LARGEST_ANSWER: Final = 8 << 20
FORM: Final = (
    '--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n"
)


class Account:
    """An account at BrowserStack, asked with `patience` by one who is told; all that it raises names `where`."""

    def __init__(self, base: str, credentials: Credentials, *, where: str, patience: Patience, tell: Tell) -> None:
        self.where = where
        self.patience = patience
        self.tell = tell
        self._base = base
        self._credentials = credentials

    def ask(self, path: str, kind: type[Kind]) -> Kind:
        """GET an answer, again after a lost connection. Raises `VerifyError`, `NetworkError`."""
        return persist(lambda: self._asked("GET", path, kind), self.patience.pauses)

    def act(self, method: str, path: str, kind: type[Kind], body: Mapping[str, Any] | None = None) -> Kind:
        """Call the service once. Raises `VerifyError`, `NetworkError`."""
        return persist(lambda: self._asked(method, path, kind, json=body))

    def upload(self, path: str, file: Path, name: str, kind: type[Kind]) -> Kind:
        """POST a file as a form, once. Raises `NetworkError` `farm-upload-lost` and what else `act` raises."""
        mark = uuid4().hex
        before, after = FORM.format(mark=mark, name=name).encode(), f"\r\n--{mark}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
        with storage_errors(file), file.open("rb") as content:
            body = Upload(content, file.stat().st_size, before, after)
            try:
                return self._asked("POST", path, kind, data=body, headers=headers, timeout=UPLOAD_SECONDS)
            except Transient as failure:
                lost = failure.diagnostic
        if not isinstance(lost, NetworkError):
            raise lost
        what = f"{name} did not get through"
        raise NetworkError("farm-upload-lost", what, where=self.where, why=lost.why, hint=lost.hint)

    def credentials_for(self, url: str) -> Credentials | None:
        """Return the credentials when an address is the service's own: others that it names do not get them."""
        parts = urlsplit(url)
        ours = parts.scheme == "https" and (parts.hostname or "").endswith(DOMAIN)
        return self._credentials if ours or same_server(url, self._base) else None

    def takes(self, url: str) -> bool:
        """Whether an address that the service names is one to fetch from."""
        return urlsplit(url).scheme == "https" or same_server(url, self._base)

    def _asked(self, method: str, path: str, kind: type[Kind], **options: Any) -> Kind:
        answer = self._answer(method, path, options)
        if isinstance(answer, (Diagnostic, Transient)):
            raise answer
        try:
            return TypeAdapter(kind).validate_json(answer)
        except ValidationError as error:
            why = f"its answer to {method} {path} is not understood: {error.error_count()} faults"
        raise trouble(why, self.where)

    def _answer(self, method: str, path: str, options: dict[str, Any]) -> bytes | Diagnostic | Transient:
        """Return the body of a success, or what went wrong, raised where no exception is handled."""
        limit = options.pop("timeout", SECONDS)
        given = {"auth": self._credentials, "stream": True, "allow_redirects": False, **options}
        try:
            with exchange(lambda: requests.request(method, self._base + path, timeout=limit, **given)) as answer:
                body = body_of(answer, LARGEST_ANSWER)
                return body if answer.ok else refusal(answer.status_code, self._words(body), self.where)
        except TransferFailed as failure:
            return Transient(unreachable(failure.why, self.where))

    def _words(self, body: bytes) -> str:
        """Return the words of an answer that is no success; a page of HTML has none for us."""
        try:
            return Complaint.model_validate_json(body).words.replace(self._credentials[1], "***")
        except ValidationError:
            return ""


def open_account(base: str, environment: Mapping[str, str], *, where: str, patience: Patience, tell: Tell) -> Account:
    """Return the account of the environment's user. Raises `VerifyError` `farm-credentials` when it names none."""
    absent = absent_variables(environment)
    if absent:
        what, why = "there are no credentials for BrowserStack", f"not set: {' and '.join(absent)}"
        raise VerifyError("farm-credentials", what, where=where, why=why, hint=SIGN_IN)
    keep_addresses_out_of_logs()
    user, key = (environment[name] for name in BROWSERSTACK_VARIABLES)
    return Account(base, (user, key), where=where, patience=patience, tell=tell)
