"""The one HTTP client: requests within limits, redirects, credentials by host, and downloads that are checked.

What the libraries below raise holds the request, and that a token or a signed address. None of it gets out of this
module: their exceptions become words, and are not chained.
"""

import hashlib
import os
import tempfile
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
from ortrim.base.files import sha256_of, storage_errors
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


ATTEMPTS: Final = 4
MAXIMUM_BYTES: Final = 8 << 30
PARTIAL: Final = 206
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
    prefix = f".{destination.name}.partial-"
    with tempfile.NamedTemporaryFile(dir=destination.parent, prefix=prefix, delete=False) as file:
        partial = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()  # Windows neither renames nor removes what is open
            partial.chmod(0o644)
            partial.replace(destination)
        finally:
            file.close()
            partial.unlink(missing_ok=True)


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
    begun = ""
    unless = {"If-None-Match": etag} if etag else {}
    for attempt in range(ATTEMPTS):
        try:
            with opened_at_last(url, headers={**unless, **_from_where_it_broke_off(file, begun)}) as response:
                if etag and response.status_code == UNCHANGED:
                    return None
                begun = _receive(response, file)
                _append(url, response, file)
                return response.headers.get("ETag", "")
        except TransportError as failed:
            _give_up_or_wait(url, failed, attempt)
    raise AssertionError


def _from_where_it_broke_off(file: IO[bytes], begun: str) -> dict[str, str]:
    """Return the headers that ask for the rest of a file, if it is still the one of which `begun` is the mark."""
    return {"Range": f"bytes={file.tell()}-", "If-Range": begun} if begun and file.tell() else {}


def _receive(response: Response, file: IO[bytes]) -> str:
    """Put `file` to where the answer goes on, and return the server's mark of this file, empty for none."""
    if not response.ok:
        raise TransportError(f"the server answered {response.status_code}", status=response.status_code)
    rest = response.headers.get("Content-Range", "").startswith(f"bytes {file.tell()}-")
    if response.status_code != PARTIAL:
        file.seek(0)
        file.truncate()
    elif not rest:
        file.seek(0)
        file.truncate()
        raise TransportError("the server sent another part than was asked for")
    mark = response.headers.get("ETag", "")
    return "" if mark.startswith("W/") or "Content-Encoding" in response.headers else mark


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


def _append(url: str, response: Response, file: IO[bytes]) -> None:
    for chunk in chunks(response, unpacked=True):
        file.write(chunk)
        if file.tell() > MAXIMUM_BYTES:
            raise NetworkError("download-too-large", f"is larger than {MAXIMUM_BYTES} bytes", where=url)


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
