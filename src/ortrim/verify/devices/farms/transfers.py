"""Sending and fetching files over HTTP(S), with addresses and credentials that must not be seen.

A signed address is a secret: whoever has it can read or replace the file. What `requests` says of a failure holds the
address, and so does a traceback; therefore failures are told by their kind alone, and raised where no exception is
being handled. What the libraries below write into a log on the level DEBUG, addresses and headers, is kept out of it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

import requests
from requests.exceptions import ConnectTimeout, InvalidSchema, InvalidURL, MissingSchema, ProxyError, SSLError, Timeout

from ortrim.storage.downloads import pieces
from ortrim.storage.files import storage_errors
from ortrim.tools.stopping import stop_request

SECONDS: Final = (10.0, 60.0)
"""To connect, and between two answers of the other side."""
CHUNK_BYTES: Final = 1 << 18
TRANSIENT: Final = frozenset({0, 408, 425, 429, 500, 502, 503, 504})
TOO_LARGE: Final = 413
TALKATIVE: Final = ("botocore", "urllib3")
KINDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (SSLError, "the encrypted connection was refused: a certificate is not trusted"),
    (ProxyError, "the proxy does not let it through"),
    (ConnectTimeout, "nobody answers at that address"),
    (Timeout, "the other side stopped answering"),
    (InvalidURL, "the address is none"),
    (InvalidSchema, "the address is none"),
    (MissingSchema, "the address is none"),
)
"""The first that fits counts: the classes of `requests` inherit from each other."""

IDENTITY: Final = {"Accept-Encoding": "identity"}
"""Without this, a little that comes could be a lot that is unpacked from it in one go."""

Credentials = tuple[str, str]


class TransferFailed(Exception):
    """A file did not get through: `status` is the server's, 0 when the connection was lost."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.status = status

    @property
    def transient(self) -> bool:
        """Whether it may succeed the next time."""
        return self.status in TRANSIENT


class Upload:
    """A file as the body of a request, read while it is sent, that stops when this thread is asked to.

    `before` and `after` are sent around it, for a form.
    """

    def __init__(self, file: IO[bytes], size: int, before: bytes = b"", after: bytes = b"") -> None:
        self._parts: list[bytes | IO[bytes]] = [before, file, after]
        self._left = {0: len(before), 1: size, 2: len(after)}
        self._stop = stop_request()

    def __len__(self) -> int:
        return sum(self._left.values())

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read():
            yield chunk

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return the next bytes of the body, none at its end."""
        if self._stop is not None:
            self._stop.check()
        number = next((number for number, left in self._left.items() if left), None)
        if number is None:
            return b""
        part = self._parts[number]
        wanted = min(size, self._left[number])
        if isinstance(part, bytes):
            chunk, self._parts[number] = part[:wanted], part[wanted:]
        else:
            chunk = part.read(wanted)
        self._left[number] -= len(chunk)
        return chunk


def keep_addresses_out_of_logs() -> None:
    """Let the libraries that talk to farms write nothing below the level INFO: there they print signed addresses."""
    for name in TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))


def exchange(request: Callable[[], requests.Response]) -> requests.Response:
    """Return a server's answer, whatever its status. Raises `TransferFailed` without an address in it."""
    answer = _answer_or_why(request)
    if isinstance(answer, str):
        raise TransferFailed(answer)
    return answer


def body_of(answer: requests.Response, most_bytes: int) -> bytes:
    """Read the body of an answer that was asked for as a stream. Raises `TransferFailed`."""
    body = _body_or_why(answer, most_bytes)
    if isinstance(body, str):
        raise TransferFailed(body)
    return body


def send_file(url: str, path: Path, headers: Mapping[str, str]) -> None:
    """PUT a file to a signed address. Raises `TransferFailed` and `StorageError`."""
    with storage_errors(path), path.open("rb") as file:
        body = Upload(file, path.stat().st_size)
        answer = exchange(lambda: requests.put(url, data=body, headers=dict(headers), timeout=SECONDS, auth=as_it_is))
    if not answer.ok:
        raise TransferFailed(f"the server answered {answer.status_code}", answer.status_code)


def fetch_file(url: str, path: Path, *, most_bytes: int, credentials: Credentials | None = None) -> None:
    """Fetch a file of at most `most_bytes`. Raises `TransferFailed`, `StorageError` and leaves a part of it then."""
    failure = _fetched(url, path, most_bytes, credentials)
    if failure is not None:
        raise failure


def as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add no credentials to a request, not even those that the user's netrc has for the server."""
    return request


def same_server(first: str, second: str) -> bool:
    """Whether two addresses lead to the same server in the same way."""
    return urlsplit(first)[:2] == urlsplit(second)[:2]


def same_way(url: str, reference: str) -> bool:
    """Whether an address is encrypted, unless the one it is to be like is not either: a stand-in on this machine."""
    return urlsplit(url).scheme in {"https", urlsplit(reference).scheme}


def _answer_or_why(request: Callable[[], requests.Response]) -> requests.Response | str:
    try:
        return request()
    except requests.RequestException as error:
        return _kind(error)


def _body_or_why(answer: requests.Response, most_bytes: int) -> bytes | str:
    body = bytearray()
    try:
        for chunk in pieces(answer):
            body += chunk
            if len(body) > most_bytes:
                return f"the answer is larger than {most_bytes:,} bytes"
    except requests.RequestException as error:
        return _kind(error)
    return bytes(body)


def _fetched(url: str, path: Path, most_bytes: int, credentials: Credentials | None) -> TransferFailed | None:
    with storage_errors(path):
        file = path.open("wb")
    with file:
        try:
            return _copied(url, file, path, most_bytes, credentials)
        except requests.RequestException as error:
            return TransferFailed(_kind(error))


def _copied(
    url: str, file: IO[bytes], path: Path, most_bytes: int, credentials: Credentials | None
) -> TransferFailed | None:
    """Copy what an address gives into a file. What `requests` raises is an `OSError` too, but none of the disk's."""
    stop = stop_request()
    with requests.get(url, stream=True, timeout=SECONDS, auth=credentials or as_it_is, headers=IDENTITY) as answer:
        if not answer.ok:
            return TransferFailed(f"the server answered {answer.status_code}", answer.status_code)
        for chunk in pieces(answer):
            if stop is not None:
                stop.check()
            if file.tell() + len(chunk) > most_bytes:
                return TransferFailed(f"it is larger than {most_bytes:,} bytes", TOO_LARGE)
            with storage_errors(path):
                file.write(chunk)
    return None


def _kind(error: requests.RequestException) -> str:
    return next((words for kind, words in KINDS if isinstance(error, kind)), "the connection was lost")
