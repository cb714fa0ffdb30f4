"""Downloads that the API hands over to another server: that one never gets our token, nor a login of `.netrc`.

- Downloads that survive a cut link: what has come is kept, and the rest asked for.
- Files from GitHub: nothing gets its name before its digest is right.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NoReturn
from urllib.parse import urljoin

from ortrim.base.cache import locked
from ortrim.base.files import sha256_of, storage_errors
from ortrim.base.http import (
    Response,
    TransportError,
    arriving,
    as_it_is,
    chunks,
    is_protected,
    new_session,
    opened,
    same_origin,
    whole,
)
from ortrim.errors import NetworkError
from ortrim.github.client import MOVED, REDIRECTS, GitHub
from ortrim.github.transport import unexpected

RENAMED: Final = frozenset({301, 308})
"""How the API says that a repository has another name now; to stored files it sends with 302."""


@contextmanager
def opened_download(client: GitHub, path: str, headers: Mapping[str, str]) -> Iterator[Response]:
    """Give the answer to one GET at the end of all redirects, whatever its status, its body still to be read.

    The addresses that the API gives are good for a minute: each attempt asks for a new one. Raises `TransportError`,
    and `NetworkError` (`github-unexpected-answer`) for a redirect to where others could listen.
    """
    with ExitStack() as stack:
        response = stack.enter_context(client.open(path, headers))
        for _ in range(REDIRECTS):
            if response.status_code not in MOVED:
                yield response
                return
            target = _target(response, path)
            if response.status_code in RENAMED and same_origin(target, client.service.api):
                response = stack.enter_context(client.open(target, headers))
                continue
            _check(client, path, target)
            session = stack.enter_context(new_session(as_it_is))
            client.session.traffic.requests += 1
            response = stack.enter_context(opened(session, "GET", target, headers={**headers, "Accept": "*/*"}))
    raise unexpected(path, "its redirects form a loop")


def _target(response: Response, path: str) -> str:
    try:
        return urljoin(response.url, response.headers.get("Location", ""))
    except ValueError:
        raise unexpected(path, "it redirects to an invalid address") from None


def _check(client: GitHub, path: str, target: str) -> None:
    secure = target.lower().startswith("https:") or client.service.api.startswith("http:")
    if not (secure and is_protected(target)):
        raise unexpected(path, "it redirects to an address that is not https")


MAXIMUM_BYTES: Final = 4 << 30
VAIN_ATTEMPTS: Final = 6
"""How often in a row a download may bring nothing new."""
MOST_ATTEMPTS: Final = 200
LONGEST_PAUSE: Final = 30.0
DECIMAL: Final = re.compile(r"[0-9]{1,18}")
CONTENT_RANGE: Final = re.compile(r"bytes (?:([0-9]{1,18})-[0-9]{1,18}|\*)/([0-9]{1,18}|\*)")

OnBytes = Callable[[int, int], None]
"""Called with the bytes received and the bytes in all, 0 when these are not known."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What to download: its path in the API, the kind of content to ask for, its SHA-256, its size if known."""

    path: str
    sha256: str
    accept: str = "application/vnd.github+json"
    size: int = 0


class Limited(TransportError):
    """A rate limit, which has been waited for."""


class Transfer:
    """One download under way into `file`, which is open for writing and empty."""

    def __init__(self, client: GitHub, source: Source, file: IO[bytes], on_bytes: OnBytes) -> None:
        self._client = client
        self._source = source
        self._file = file
        self._on_bytes = on_bytes
        self._digest = hashlib.sha256()
        self._there = 0
        self._most = 0
        self._parts = 0
        self._endless = False
        self._mark = ""

    def run(self) -> None:
        """Fetch all of it and check the digest; what was put together, or may have been cut short, is fetched anew."""
        self._fetch()
        if self._digest.hexdigest() != self._source.sha256 and (self._parts > 1 or self._endless):
            self._restart()
            self._most = 0
            self._fetch()
        if self._digest.hexdigest() != self._source.sha256:
            why = f"expected {self._source.sha256}\nactual   {self._digest.hexdigest()}"
            what, hint = "the download does not match its digest", "find out why before you use it"
            raise NetworkError("artifact-digest-mismatch", what, where=self._source.path, why=why, hint=hint)

    def _fetch(self) -> None:
        vain = limits = 0
        for _ in range(MOST_ATTEMPTS):
            before = self._most
            failed = self._attempt(limits)
            if failed is None:
                return
            limits = limits + 1 if isinstance(failed, Limited) else 0
            vain = 0 if self._most > before else vain + (not isinstance(failed, Limited))
            if vain == VAIN_ATTEMPTS or failed.permanent:
                break
            self._client.session.traffic.repeats += 1
            self._client.session.rest(0.0 if isinstance(failed, Limited) else min(2.0**vain, LONGEST_PAUSE))
        hint = "check the network or the proxy settings, then run the same command again"
        what = f"the download broke off at {self._there:,} bytes, again and again"
        raise NetworkError("download-failed", what, where=self._source.path, why=str(failed), hint=hint)

    def _attempt(self, limits: int) -> TransportError | None:
        """Fetch what is still missing; returns what got in the way."""
        try:
            with opened_download(self._client, self._source.path, self._headers()) as response:
                if self._begins(response, limits):
                    self._receive(response)
        except TransportError as failed:
            return failed
        return None

    def _headers(self) -> Mapping[str, str]:
        headers = {"Accept": self._source.accept}
        if self._there:
            headers["Range"] = f"bytes={self._there}-"
            if self._mark:
                headers["If-Range"] = self._mark
        return headers

    def _begins(self, response: Response, limits: int) -> bool:
        """Make ready for the body; False when there is nothing more to come."""
        status = response.status_code
        place = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if status == 200:
            self._restart()
        elif status == 416 and self._there and place and place[2] == str(self._there):
            return False
        elif status == 416 or (status == 206 and not (self._there and place and place[1] == str(self._there))):
            self._restart()
            raise TransportError("the server sent another range than the requested one")
        elif status != 206:
            self._refuse(response, limits)
        self._parts += 1
        mark = response.headers.get("ETag", "")
        self._mark = "" if mark.startswith("W/") else mark
        return True

    def _receive(self, response: Response) -> None:
        length = response.headers.get("Content-Length", "")
        self._endless = DECIMAL.fullmatch(length) is None
        total = self._source.size if self._endless else self._there + int(length)
        for chunk in chunks(response, self._client.session.clock):
            self._file.write(chunk)
            self._digest.update(chunk)
            self._client.session.traffic.bytes_received += len(chunk)
            self._there += len(chunk)
            self._most = max(self._most, self._there)
            if self._there > MAXIMUM_BYTES:
                what = f"is larger than {MAXIMUM_BYTES:,} bytes"
                raise NetworkError("download-too-large", what, where=self._source.path)
            self._on_bytes(self._there, total)

    def _restart(self) -> None:
        """Forget what has come."""
        self._client.session.traffic.bytes_again += self._there
        self._file.seek(0)
        self._file.truncate()
        self._digest = hashlib.sha256()
        self._there = self._parts = 0

    def _refuse(self, response: Response, limits: int) -> NoReturn:
        """Raise for an answer that is no part of the file; only the API's own refusals are final."""
        own = response.url.startswith(self._client.service.api + "/")
        answer = whole(response, self._client.session.clock)
        if own and self._client.session.waited_for_limit(answer, limits, self._source.path):
            raise Limited("GitHub's rate limit")
        if own and answer.status < 500:
            raise self._client.refused(answer, self._source.path)
        raise TransportError(f"{'GitHub' if own else 'the server that stores the files'} answered {answer.status}")


def silent(_done: int, _total: int) -> None:
    """Say nothing of how far a download is."""


def download(client: GitHub, source: Source, destination: Path, on_bytes: OnBytes = silent) -> None:
    """Fetch a file into `destination`, which appears only when its SHA-256 is right; one that is there already stays.

    After a cut it goes on where it was. Raises `NetworkError` (`artifact-digest-mismatch`, `download-failed`,
    `download-too-large`, or as `GitHub.get`) or `StorageError`; then nothing is left behind.
    """
    with locked(destination), storage_errors(destination):
        if destination.is_file() and sha256_of(destination) == source.sha256:
            return
        with arriving(destination) as file:
            Transfer(client, source, file, on_bytes).run()
