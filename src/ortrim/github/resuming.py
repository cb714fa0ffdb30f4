"""Downloads that survive a cut link: what has come is kept, and the rest asked for."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Final, NoReturn

import requests

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.redirects import opened_download
from ortrim.github.troubles import Trouble
from ortrim.github.wire import chunks, whole

MAXIMUM_BYTES: Final = 4 << 30
VAIN_ATTEMPTS: Final = 6
"""How often in a row a download may bring nothing new."""
MOST_ATTEMPTS: Final = 200
LONGEST_PAUSE: Final = 30.0
DECIMAL: Final = re.compile(r"[0-9]{1,18}")
CONTENT_RANGE: Final = re.compile(r"bytes (?:([0-9]{1,18})-[0-9]{1,18}|\*)/([0-9]{1,18}|\*)")

OnBytes = Callable[[int, int], None]
"""Takes the bytes there are and the bytes there will be, 0 when nobody has said."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What to download: its path in the API, the kind of content to ask for, its SHA-256, its size if known."""

    path: str
    sha256: str
    accept: str = "application/vnd.github+json"
    size: int = 0


class Limited(Trouble):
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
            what, hint = "the download is not what its digest says", "do not use it before you know why"
            raise NetworkError("artifact-digest-mismatch", what, where=self._source.path, why=why, hint=hint)

    def _fetch(self) -> None:
        vain = limits = 0
        for _ in range(MOST_ATTEMPTS):
            before = self._most
            trouble = self._attempt(limits)
            if trouble is None:
                return
            limits = limits + 1 if isinstance(trouble, Limited) else 0
            vain = 0 if self._most > before else vain + (not isinstance(trouble, Limited))
            if vain == VAIN_ATTEMPTS or trouble.hopeless:
                break
            self._client.session.traffic.repeats += 1
            self._client.session.rest(0.0 if isinstance(trouble, Limited) else min(2.0**vain, LONGEST_PAUSE))
        hint = "check the network or the proxy settings, then run the same command again"
        what = f"the download broke off at {self._there:,} bytes, again and again"
        raise NetworkError("download-failed", what, where=self._source.path, why=str(trouble), hint=hint)

    def _attempt(self, limits: int) -> Trouble | None:
        """Fetch what is still missing; returns what got in the way."""
        try:
            with opened_download(self._client, self._source.path, self._headers()) as response:
                if self._begins(response, limits):
                    self._receive(response)
        except Trouble as trouble:
            return trouble
        return None

    def _headers(self) -> Mapping[str, str]:
        headers = {"Accept": self._source.accept}
        if self._there:
            headers["Range"] = f"bytes={self._there}-"
            if self._mark:
                headers["If-Range"] = self._mark
        return headers

    def _begins(self, response: requests.Response, limits: int) -> bool:
        """Make ready for the body; False when there is nothing more to come."""
        status = response.status_code
        place = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if status == 200:
            self._restart()
        elif status == 416 and self._there and place and place[2] == str(self._there):
            return False
        elif status == 416 or (status == 206 and not (self._there and place and place[1] == str(self._there))):
            self._restart()
            raise Trouble("the server gave another part than the one asked for")
        elif status != 206:
            self._refuse(response, limits)
        self._parts += 1
        mark = response.headers.get("ETag", "")
        self._mark = "" if mark.startswith("W/") else mark
        return True

    def _receive(self, response: requests.Response) -> None:
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

    def _refuse(self, response: requests.Response, limits: int) -> NoReturn:
        """Raise for an answer that is no part of the file; only the API's own refusals are final."""
        own = response.url.startswith(self._client.service.api + "/")
        answer = whole(response, self._client.session.clock)
        if own and self._client.session.waited_for_limit(answer, limits, self._source.path):
            raise Limited("GitHub's rate limit")
        if own and answer.status < 500:
            raise self._client.refused(answer, self._source.path)
        raise Trouble(f"{'GitHub' if own else 'the server that stores the files'} answered {answer.status}")
