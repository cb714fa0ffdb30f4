"""The one HTTP client: requests within limits, redirects, credentials by host, and downloads that are checked.

What the libraries below raise holds the request, and that a token or a signed address. None of it gets out of this
module: their exceptions become words, and are not chained.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import IO, Final
from urllib.parse import SplitResult, urljoin, urlsplit

import requests
from requests.exceptions import ChunkedEncodingError, ConnectTimeout, ProxyError, SSLError, Timeout
from requests.utils import parse_header_links
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError

from ortrim.base.cache import locked, remove_leftovers
from ortrim.base.files import sha256_of, storage_errors, temporary_beside
from ortrim.base.tools import untrusted
from ortrim.errors import NetworkError, UsageError

TIMEOUT_SECONDS: Final = (20.0, 60.0)  # for a connection, and for each further sign of life
PATIENCE_SECONDS: Final = 60
LEAST_BYTES_A_SECOND: Final = 1024  # what a server has to keep up, after `PATIENCE_SECONDS`, to be worth waiting for
LARGEST_ANSWER: Final = 16 << 20
CHUNK_BYTES: Final = 1 << 16
REDIRECTS: Final = 30
LOGIN: Final = 407  # the status with which a proxy requires a login
MOVED: Final = frozenset({301, 302, 303, 307, 308})
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
PORTS: Final = {"http": 80, "https": 443}

Request = requests.PreparedRequest
Response = requests.Response
Authorize = Callable[[Request], Request]  # Adds credentials to a request
Body = bytes | Iterable[bytes]


class TransportError(Exception):
    """A request that got no whole answer, or a refusal.

    `sent` is whether the server may have seen it, `permanent` whether the same will happen again, `status` that of the
    answer, 0 for none.
    """

    def __init__(self, words: str, *, sent: bool = True, permanent: bool = False, status: int = 0) -> None:
        super().__init__(words)
        self.sent = sent
        self.permanent = permanent
        self.status = status


class UntrustedCertificate(TransportError):
    """A server, or a proxy that reads along, whose certificate is not trusted here."""

    def __init__(self) -> None:
        super().__init__("this system does not trust the server's certificate", sent=False, permanent=True)


class BadAddress(TransportError):
    """A URL that cannot be requested, or must not be."""

    def __init__(self, words: str) -> None:
        super().__init__(words, sent=False, permanent=True)


UNSENT: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ProxyError, "the proxy cannot be reached, or refuses the connection"),
    (ConnectTimeout, "the connection timed out"),
    (NameResolutionError, "the host name cannot be resolved"),
    (NewConnectionError, "the host refuses the connection"),
)
"""What happens before anything is sent: the error, or what it gives as its reason, and the words."""


def transport_error_of(error: Exception) -> TransportError:
    """Put an error of requests', of urllib3's or of the system into words; the error itself holds the request."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    if isinstance(error, ProxyError) and f" {LOGIN} " in str(error):
        return TransportError("the proxy requires a login", sent=False, status=LOGIN)
    for kind, words in UNSENT:
        if isinstance(error, kind) or isinstance(reason, kind):
            return TransportError(words, sent=False)
    if isinstance(error, SSLError):
        untrusted = isinstance(reason, Exception) and isinstance(
            next(iter(reason.args), None), SSLCertVerificationError
        )
        return UntrustedCertificate() if untrusted else TransportError("no TLS connection could be established")
    if isinstance(error, Timeout):
        return TransportError("the request timed out")
    if isinstance(error, requests.ConnectionError | ChunkedEncodingError):
        return TransportError("the connection broke")
    return BadAddress("an address, the proxy's address, a header or the file of certificates is not valid")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """`monotonic` measures durations in seconds, `wall` is in seconds since 1970, `sleep` takes seconds."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that was read to its end; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def link_to(answer: Answer, relation: str) -> str:
    """Return the address that an answer's `Link` names for a relation such as `next`, empty for none."""
    links = parse_header_links(answer.headers.get("link", ""))
    return next((str(link["url"]) for link in links if link.get("rel") == relation), "")


def as_it_is(request: Request) -> Request:
    """Add no credentials to a request, not even those that the user's netrc has for the server."""
    return request


class _Stationary(requests.Session):
    """Looks at no redirect: even where none is to be followed, requests would read the body that comes with it."""

    def get_redirect_target(self, resp: Response) -> None:
        """Find none."""


def new_session(authorize: Authorize | None, **headers: str) -> requests.Session:
    """Return a session that authorizes each request so; with None as the user's netrc says for the host.

    Without `Accept-Encoding: identity`, an archive labelled as compressed in transit would arrive unpacked.
    """
    session = _Stationary()
    session.auth = authorize
    own = {"Accept-Encoding": "identity", "User-Agent": f"ortrim/{version('ortrim')}"}
    session.headers.update({**own, **headers})
    return session


@contextmanager
def opened(
    session: requests.Session,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    data: Body | None = None,
) -> Iterator[Response]:
    """Send a request and give its answer, whose body is still to be read; redirects are not followed."""
    outcome: Response | TransportError
    try:
        outcome = session.request(
            method, url, headers=headers, data=data, stream=True, allow_redirects=False, timeout=TIMEOUT_SECONDS
        )
    except (OSError, HTTPError, ValueError) as error:  # requests' own errors are OSErrors
        outcome = transport_error_of(error)
    if isinstance(outcome, TransportError):
        raise outcome
    with outcome as response:
        yield response


@contextmanager
def opened_at_last(
    url: str, authorize: Authorize | None = None, *, headers: Mapping[str, str] | None = None
) -> Iterator[Response]:
    """Give the answer to a GET at the end of all redirects, whatever its status, its body unread; https stays https."""
    for _ in range(REDIRECTS + 1):
        with new_session(authorize) as session, opened(session, "GET", url, headers=headers) as response:
            if response.status_code not in MOVED or "Location" not in response.headers:
                yield response
                return
            url = _target(response)
    raise BadAddress(f"the server redirects more than {REDIRECTS} times")


def _target(response: Response) -> str:
    try:
        target = urljoin(response.url, response.headers["Location"])
    except ValueError:
        target = ""
    if response.url.startswith("https:") and not target.startswith("https:"):
        raise BadAddress("the server redirects to an address that is not https")
    return target


def chunks(response: Response, clock: Clock | None = None, *, unpacked: bool = False) -> Iterator[bytes]:
    """Yield the body as it comes, without holding back what came before a cut; `unpacked` if the server packed it.

    Raises `TransportError` for a cut, or less than `LEAST_BYTES_A_SECOND`, which no timeout would end.
    """
    now = (clock or Clock()).monotonic
    started, count = now(), 0
    while True:
        chunk = _read(response, unpacked=unpacked)
        if isinstance(chunk, TransportError):
            raise chunk
        if not chunk:
            return
        count += len(chunk)
        seconds = now() - started
        if seconds > PATIENCE_SECONDS and count < LEAST_BYTES_A_SECOND * seconds:
            raise TransportError(f"no more than {count} bytes came within {seconds:.0f} seconds")
        yield chunk


def whole(response: Response, clock: Clock | None = None) -> Answer:
    """Read an answer to its end, as `chunks` does. Raises `TransportError`."""
    body = bytearray()
    for chunk in chunks(response, clock):
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise TransportError(f"the answer is longer than {LARGEST_ANSWER:,} bytes", permanent=True)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(status=response.status_code, headers=headers, body=bytes(body))


def _read(response: Response, *, unpacked: bool) -> bytes | TransportError:
    try:
        chunk: bytes = response.raw.read1(CHUNK_BYTES, decode_content=unpacked)
    except HTTPError:
        return TransportError("the connection broke before the whole answer was received")
    return chunk


def is_protected(url: str) -> bool:
    """Whether requests to `url` are private: https, or http that stays on this machine."""
    parts = split(url)
    if parts is None or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def same_origin(first: str, second: str) -> bool:
    """Whether two addresses have the same scheme, host and port: only then may they see the same token."""
    one, other = split(first), split(second)
    return one is not None and other is not None and _origin(one) == _origin(other)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)


def split(url: str) -> SplitResult | None:
    """Take an address apart; None for what is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


CONTENT_RANGE: Final = re.compile(r"bytes (?:([0-9]{1,18})-[0-9]{1,18}|\*)/([0-9]{1,18}|\*)")
DECIMAL: Final = re.compile(r"[0-9]{1,18}")
PARTIAL: Final = 206
UNSATISFIABLE: Final = 416

OnBytes = Callable[[int, int], None]
"""Called with the bytes received and the bytes in all, 0 when these are not known."""


def silent(_done: int, _total: int) -> None:
    """Say nothing of how far a download is."""


class Incoming:
    """A file that is fetched into `file`, open for writing and empty; each attempt goes on where the last one ended.

    `size` is that of the whole, if it is known. `there` are the bytes so far, `furthest` the most that ever were,
    `received` all that came, `again` those of them that were forgotten.
    """

    def __init__(
        self, file: IO[bytes], where: str, most_bytes: int, *, size: int = 0, on_bytes: OnBytes = silent
    ) -> None:
        self.there = self.furthest = self.received = self.again = 0
        self.mark = ""
        self._file = file
        self._where = where
        self._most_bytes = most_bytes
        self._size = size
        self._on_bytes = on_bytes
        self._parts = 0
        self._has_length = True

    @property
    def headers(self) -> Mapping[str, str]:
        """What asks for the rest, of the same file where the server has marked it; nothing before the first byte."""
        asked = {"Range": f"bytes={self.there}-"} if self.there else {}
        return {**asked, "If-Range": self.mark} if asked and self.mark else asked

    @property
    def is_of_one_piece(self) -> bool:
        """Whether all of it came at once, and to its end by the server's own word."""
        return self._parts < 2 and self._has_length

    def take(self, response: Response, clock: Clock | None = None, *, unpacked: bool = False) -> None:
        """Add what an answer brings. Raises `TransportError` for a refusal, a cut, and another part than is missing."""
        place = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        status, rest = response.status_code, bool(self.there and place and place[1] == str(self.there))
        if not response.ok and status != UNSATISFIABLE:
            raise TransportError(f"the server answered {status}", status=status)
        if status == UNSATISFIABLE and self.there and place and place[2] == str(self.there):
            return
        if status != PARTIAL or not rest:
            self.restart()
        if status == UNSATISFIABLE or (status == PARTIAL and not rest):
            raise TransportError("the server sent another part than was asked for")
        self._parts += 1
        mark = response.headers.get("ETag", "")
        self.mark = "" if mark.startswith("W/") or "Content-Encoding" in response.headers else mark
        self._receive(response, clock, unpacked=unpacked)

    def restart(self) -> None:
        """Forget what has come."""
        self.again += self.there
        self._file.seek(0)
        self._file.truncate()
        self.there = self._parts = 0

    def _receive(self, response: Response, clock: Clock | None, *, unpacked: bool) -> None:
        length = response.headers.get("Content-Length", "")
        self._has_length = DECIMAL.fullmatch(length) is not None
        total = self.there + int(length) if self._has_length else self._size
        for chunk in chunks(response, clock, unpacked=unpacked):
            self._file.write(chunk)
            self.there += len(chunk)
            self.received += len(chunk)
            self.furthest = max(self.furthest, self.there)
            if self.there > self._most_bytes:
                what = f"is larger than {self._most_bytes:,} bytes"
                raise NetworkError("download-too-large", what, where=self._where)
            self._on_bytes(self.there, total)


ATTEMPTS: Final = 4
MAXIMUM_BYTES: Final = 8 << 30
UNCHANGED: Final = 304
PAGE: Final = (b"<!doctype html", b"<html")


def download(url: str, destination: Path, sha256: str) -> None:
    """Fetch `url` into `destination`, which appears only when its SHA-256 is the one given.

    A file that is there with that digest is kept. Server errors, broken and stalled connections are tried again, from
    where they broke off if the server can; a refusal (4xx) is not. Two processes fetch the same file once.
    """
    fetch(url, destination, "sha256", sha256)


def fetch(url: str, destination: Path, algorithm: str, expected: str | None) -> None:
    """Do what `download` does for any digest of `hashlib`; who makes pins passes None, and keeps what comes."""
    with locked(destination), storage_errors(destination):
        if destination.is_file() and digest_of(destination, algorithm) == expected:
            return
        with arriving(destination) as file:
            _fetch(url, file)
            file.flush()
            _check(url, digest_of(Path(file.name), algorithm), expected, file)


def fetch_unless(etag: str, url: str, destination: Path) -> str | None:
    """Fetch what is at `url` unless its ETag is still this one, which is None then; return the new ETag.

    An empty ETag, of a server that has none, is never the same.
    """
    with locked(destination), storage_errors(destination), arriving(destination) as file:
        return _fetch(url, file, etag)


@contextmanager
def arriving(destination: Path) -> Iterator[IO[bytes]]:
    """Give a file that gets its name when the block ends well, and is gone otherwise; the caller holds its lock."""
    remove_leftovers(destination)
    with temporary_beside(destination, f".{destination.name}.partial-") as partial:
        with partial.open("x+b") as file:  # Windows neither renames nor removes what is open
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o644)
        partial.replace(destination)


def _check(url: str, actual: str, expected: str | None, file: IO[bytes]) -> None:
    if expected not in {actual, None}:
        why = f"expected {expected}\nactual   {actual}"
        hint = "the file at this address changed, or the pin is wrong; do not use it before you know which one"
        file.seek(0)
        if file.read(1024).lstrip().lower().startswith(PAGE):
            why += "\na web page was received"
            hint = "open the URL in a browser: a proxy, or a network that requires a login, may answer instead"
        raise NetworkError("digest-mismatch", "the download is not what was pinned", where=url, why=why, hint=hint)


def _fetch(url: str, file: IO[bytes], etag: str = "") -> str | None:
    """Stream `url` into `file`, trying again where that can help; return its ETag, None if it still has this one."""
    incoming = Incoming(file, url, MAXIMUM_BYTES)
    unless = {"If-None-Match": etag} if etag else {}
    for attempt in range(ATTEMPTS):
        # Without a mark, what comes could be the rest of another file, and what is pinned has no digest yet.
        rest = incoming.headers if incoming.mark else {}
        try:
            with opened_at_last(url, headers={**unless, **rest}) as response:
                if etag and response.status_code == UNCHANGED:
                    return None
                incoming.take(response, unpacked=True)
                return response.headers.get("ETag", "")
        except TransportError as failed:
            _give_up_or_wait(url, failed, attempt)
    raise AssertionError


def _give_up_or_wait(url: str, failed: TransportError, attempt: int) -> None:
    if isinstance(failed, BadAddress):
        raise NetworkError("bad-address", "cannot be downloaded", where=url, why=str(failed))
    if isinstance(failed, UntrustedCertificate):
        raise untrusted(url, str(failed))
    if failed.status == LOGIN:
        hint = "name a user in the proxy's address: https_proxy=http://user:password@host:port, and http_proxy"
        what = f"the proxy answered {LOGIN}: it requires a login"
        raise NetworkError("download-refused", what, where=url, hint=hint)
    if 400 <= failed.status < 500:
        raise NetworkError("download-refused", str(failed), where=url)
    if attempt == ATTEMPTS - 1:
        what = f"the download failed {ATTEMPTS} times"
        hint = "check the network or the proxy settings, then run the same command again"
        raise NetworkError("download-failed", what, where=url, why=str(failed), hint=hint)
    time.sleep(2**attempt)


def digest_of(path: Path, algorithm: str) -> str:
    """Return the digest of a file in hexadecimal, by any algorithm that `hashlib` knows."""
    if algorithm == "sha256":
        return sha256_of(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


MIRRORS_VARIABLE: Final = "ORTRIM_MIRRORS"
Mirrors = Sequence[tuple[str, str]]  # Pairs: the beginning of an address, and what stands in its place


def mirrored(url: str, mirrors: Mirrors) -> str:
    """Return where an address is read: the first of the mirrors that fits counts."""
    for prefix, replacement in mirrors:
        if url.startswith(prefix):
            return replacement + url[len(prefix) :]
    return url


def mirrors_in(text: str, where: str) -> Mirrors:
    """Return the mirrors that a text names: words of the form FROM=TO."""
    pairs = [word.partition("=") for word in text.split()]
    for prefix, found, replacement in pairs:
        if not (prefix and found and replacement):
            what = f"{prefix + found + replacement!r} is not of the form FROM=TO"
            raise UsageError(
                "bad-option", what, where=where, hint="for example https://github.com/=https://mirror.example/"
            )
    return tuple((prefix, replacement) for prefix, _, replacement in pairs)


def site_mirrors() -> Mirrors:
    """Return the mirrors that this site names in `ORTRIM_MIRRORS`."""
    return mirrors_in(os.environ.get(MIRRORS_VARIABLE, ""), MIRRORS_VARIABLE)
