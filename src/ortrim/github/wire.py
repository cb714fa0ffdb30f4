"""One request and its answer, without repeating anything.

What the libraries below raise holds the request, and that the token or a signed address. None of it gets out of this
module: their exceptions become words, and are not chained.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from ortrim.github.clock import Clock
from ortrim.github.credentials import Token
from ortrim.github.troubles import Trouble, trouble_of
from ortrim.storage.downloads import too_slow

TIMEOUT_SECONDS: Final = (20, 60)
"""For a connection, and for each further sign of life."""
LARGEST_ANSWER: Final = 16 << 20
CHUNK_BYTES: Final = 1 << 16

HEADERS: Final = {
    "Accept": "application/vnd.github+json",
    # Without this an archive that is labelled as compressed in transit would arrive unpacked.
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that was read to its end; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Bearer(AuthBase):
    """Adds the token, if any; being there at all, it keeps logins from `.netrc` out of the request."""

    def __init__(self, token: Token | None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add it."""
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token.reveal()}"
        return request


class _Stationary(requests.Session):
    """Looks at no redirect: even where none is to be followed, requests would read the body that comes with it."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Find none."""


def new_session(token: Token | None) -> requests.Session:
    """Return a session that sends `token` with every request, and nothing else of who the user is."""
    session = _Stationary()
    session.auth = Bearer(token)
    session.headers.update({**HEADERS, "User-Agent": f"ortrim/{version('ortrim')}"})
    return session


@contextmanager
def opened(
    session: requests.Session, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None = None
) -> Iterator[requests.Response]:
    """Send a request and give its answer, whose body is still to be read; redirects are not followed.

    Raises `Trouble`.
    """
    outcome = _sent(session, method, url, headers, data)
    if isinstance(outcome, Trouble):
        raise outcome
    with outcome as response:
        yield response


def chunks(response: requests.Response, clock: Clock) -> Iterator[bytes]:
    """Yield the body as it comes, without holding back what came before a cut. Raises `Trouble`."""
    started, count = clock.monotonic(), 0
    while True:
        chunk = _read(response)
        if isinstance(chunk, Trouble):
            raise chunk
        if not chunk:
            return
        count += len(chunk)
        seconds = clock.monotonic() - started
        if too_slow(count, seconds):
            raise Trouble(f"no more than {count} bytes came within {seconds:.0f} seconds")
        yield chunk


def whole(response: requests.Response, clock: Clock) -> Answer:
    """Read an answer to its end. Raises `Trouble`."""
    body = bytearray()
    for chunk in chunks(response, clock):
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise Trouble(f"the answer is longer than {LARGEST_ANSWER} bytes", hopeless=True)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(status=response.status_code, headers=headers, body=bytes(body))


def _sent(
    session: requests.Session, method: str, url: str, headers: Mapping[str, str], data: bytes | None
) -> requests.Response | Trouble:
    try:
        return session.request(
            method, url, headers=headers, data=data, stream=True, allow_redirects=False, timeout=TIMEOUT_SECONDS
        )
    except (OSError, HTTPError, ValueError) as error:  # requests' own errors are OSErrors
        return trouble_of(error)


def _read(response: requests.Response) -> bytes | Trouble:
    try:
        chunk: bytes = response.raw.read1(CHUNK_BYTES, decode_content=False)
    except HTTPError:
        return Trouble("the connection broke before all had come")
    return chunk
