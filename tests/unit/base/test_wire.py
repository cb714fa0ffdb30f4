"""One request and its answer: what is read, and what is said when it goes wrong."""

from itertools import count
from socket import gaierror
from ssl import SSLCertVerificationError
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from requests.exceptions import ChunkedEncodingError, ConnectTimeout, InvalidURL, ProxyError, ReadTimeout, SSLError
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError, ProtocolError

from ortrim.base import http
from ortrim.base.http import PATIENCE_SECONDS, Clock, TransportError, chunks, transport_error_of, whole

SECRET = "signature0marker"  # noqa: S105
HOST: Any = SimpleNamespace(host="x.invalid")
URL = f"https://x.invalid/?sig={SECRET}"


def body_of(*parts: bytes) -> Any:
    """Return an answer whose body comes in these parts."""
    left = iter((*parts, b""))

    def read1(_: int, *, decode_content: bool) -> bytes:
        assert not decode_content
        return next(left)

    return SimpleNamespace(raw=SimpleNamespace(read1=read1), status_code=200, headers={"ETag": "x"})


def broken(reason: Exception) -> requests.ConnectionError:
    """Return what requests raises for a connection that did not come about."""
    inner: Any = SimpleNamespace(reason=reason)
    return requests.ConnectionError(inner)


def untrusted() -> SSLError:
    """Return what requests raises for a certificate that the system does not trust."""
    inner: Any = SimpleNamespace(reason=HTTPError(SSLCertVerificationError(1, URL)))
    return SSLError(inner)


def clock_of(seconds: float) -> Clock:
    """Return a clock that each look finds so much later."""
    ticks = count()
    return Clock(monotonic=lambda: next(ticks) * seconds)


def test_an_answer_is_read_whole() -> None:
    """In the parts in which it comes; names of headers in lower case."""
    answer = whole(body_of(b"a", b"bc"), Clock())
    assert (answer.body, dict(answer.headers)) == (b"abc", {"etag": "x"})


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is as long is read."""
    monkeypatch.setattr(http, "LARGEST_ANSWER", 3)
    assert whole(body_of(b"ab", b"c")).body == b"abc"
    with pytest.raises(TransportError, match="longer than 3 bytes"):
        whole(body_of(b"ab", b"cd"))


def test_a_server_that_drips_is_left() -> None:
    """A byte now and then keeps a connection alive for ever; what came before is handed over."""
    taken = chunks(body_of(*[b"x"] * 99), clock_of(25))
    assert [next(taken), next(taken)] == [b"x", b"x"]
    with pytest.raises(TransportError, match="no more than 3 bytes came within 75 seconds"):
        next(taken)


def test_a_slow_link_is_not_a_drip() -> None:
    """A few kilobytes a second do."""
    parts = [b"x" * 30_000] * (PATIENCE_SECONDS // 10)
    assert list(chunks(body_of(*parts), clock_of(25))) == parts


@pytest.mark.parametrize(
    ("error", "words", "sent", "permanent"),
    [
        (ConnectTimeout(URL), "connection timed out", False, False),
        (ReadTimeout(URL), "request timed out", True, False),
        (ProxyError(URL), "proxy", False, False),
        (SSLError(URL), "no TLS", True, False),
        (untrusted(), "does not trust", False, True),
        (broken(NameResolutionError(URL, HOST, gaierror())), "name", False, False),
        (broken(NewConnectionError(HOST, URL)), "refuses", False, False),
        (requests.ConnectionError(ProtocolError(URL)), "broke", True, False),
        (requests.ConnectionError(), "broke", True, False),
        (ChunkedEncodingError(URL), "broke", True, False),
        (InvalidURL(URL), "not valid", False, True),
        (ValueError(f"Invalid header value b'Bearer {SECRET}'"), "not valid", False, True),
        (OSError(f"no such file {URL}"), "not valid", False, True),
    ],
)  # fmt: skip
def test_errors_become_words(error: Exception, words: str, *, sent: bool, permanent: bool) -> None:
    """Which repeat nothing of the request, and say whether the server may have seen it."""
    failed = transport_error_of(error)
    assert words in str(failed)
    assert SECRET not in f"{failed!r} {vars(failed)}"
    assert (failed.sent, failed.permanent) == (sent, permanent)
