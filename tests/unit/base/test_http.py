"""One request and its answer: what is read, and what is said when it goes wrong."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from socket import gaierror, socket
from ssl import SSLCertVerificationError
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from requests.exceptions import ChunkedEncodingError, ConnectTimeout, InvalidURL, ProxyError, ReadTimeout, SSLError
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError, ProtocolError

import refusing
from lying_proxy import ADDRESS, LyingProxy, lying_proxy
from ortrim.base import http
from ortrim.base.command import run
from ortrim.base.http import PATIENCE_SECONDS, Clock, TransportError, chunks, download, fetch, transport_error_of, whole
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import CERTIFICATES as VARIABLE
from ortrim.errors import Diagnostic, ExitCode, NetworkError, StorageError
from ortrim.pin_updates.update import resolved
from ortrim.sources.commits import tagged_commit
from small_wheels import write_wheel
from tls_server import TlsServer, forget_certificates, tls_server

CONTENT = bytes(n % 256 for n in range(300_000))
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[str] = []
        self.parts: list[int] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Answers(BaseHTTPRequestHandler):
    """Answers by path: `ok`, `flaky` (500 first), `cut-once`, `redirect`, `labelled`, `marked`."""

    server: Server

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        name = self.path.strip("/")
        self.server.asked.append(name)
        times = self.server.asked.count(name)
        if name == "flaky" and times == 1:
            self.send_error(500)
        elif name == "redirect":
            self.send_response(302)
            self.send_header("Location", "/ok")
            self.end_headers()
        elif name.startswith("marked"):
            self._send_marked(name, times)
        else:
            self._send(cut=name == "cut-once" and times == 1, labelled=name == "labelled")

    def _send_marked(self, name: str, times: int) -> None:
        mark = '"2"' if name == "marked-changed" and times > 1 else '"1"'
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        whole = self.headers.get("If-Range") != mark
        self.server.parts.append(0 if whole else start)
        self.send_response(200 if whole else 206)
        self.send_header("ETag", mark)
        self.send_header("Content-Length", str(len(CONTENT) - self.server.parts[-1]))
        if not whole:
            first = start - 1 if name == "marked-wrong" and times == 2 else start
            self.send_header("Content-Range", f"bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.end_headers()
        self.wfile.write(CONTENT[self.server.parts[-1] : len(CONTENT) // 2 if times == 1 else None])
        self.close_connection = True

    def _send(self, *, cut: bool, labelled: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        if labelled and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if cut else CONTENT)
        self.close_connection = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with closing(running.socket):
        yield running
        running.shutdown()
        thread.join()


def refused(url: str, tmp_path: Path, reference: str, digest: str = DIGEST) -> NetworkError:
    caught = refusing.refused(NetworkError, download, url, tmp_path / "file", digest)
    assert caught.code == reference
    assert {path.name for path in tmp_path.iterdir()} == {".file.lock"}
    return caught


@pytest.mark.parametrize("path", ["ok", "redirect", "labelled"])
def test_file_arrives(server: Server, tmp_path: Path, path: str) -> None:
    """A good answer is stored as it is, also after a redirect, also when the server would label it compressed."""
    download(server.url(path), tmp_path / "deep/file", DIGEST)
    assert (tmp_path / "deep/file").read_bytes() == CONTENT
    assert (tmp_path / "deep/file").stat().st_mode & 0o777 == 0o644


def test_file_that_is_there_is_not_fetched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    download(server.url("ok"), tmp_path / "file", DIGEST)
    assert server.asked == []
    (tmp_path / "file").write_bytes(b"old")
    download(server.url("ok"), tmp_path / "file", DIGEST)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["flaky", "cut-once"])
def test_trouble_that_passes_is_overcome(server: Server, tmp_path: Path, path: str) -> None:
    """A server error or a cut connection is tried again, from the start where the file has no mark."""
    download(server.url(path), tmp_path / "file", DIGEST)
    assert server.asked == [path, path]
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "parts"),
    [("marked", [0, len(CONTENT) // 2]), ("marked-changed", [0, 0]), ("marked-wrong", [0, len(CONTENT) // 2, 0])],
)
def test_a_download_goes_on_where_it_broke_off(server: Server, tmp_path: Path, path: str, parts: list[int]) -> None:
    """If the server says that it is still the same file, and sends just the rest; else it begins anew."""
    download(server.url(path), tmp_path / "file", DIGEST)
    assert server.parts == parts
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_wrong_digest_shows_both(server: Server, tmp_path: Path) -> None:
    error = refused(server.url("ok"), tmp_path, "digest-mismatch", "0" * 64)
    assert error.why == f"expected {'0' * 64}\nactual   {DIGEST}"


@pytest.mark.parametrize("url", ["not an address", "ftp://127.0.0.1/x", "http://", "file:///etc/passwd"])
def test_address_that_cannot_be_fetched(tmp_path: Path, url: str) -> None:
    refused(url, tmp_path, "bad-address")


def test_unreachable_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused(f"http://127.0.0.1:{unused.getsockname()[1]}/", tmp_path, "download-failed")
    assert pauses == [1, 2, 4]


def test_endless_file_is_cut_off(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAXIMUM_BYTES", 1000)
    refused(server.url("ok"), tmp_path, "download-too-large")


def test_other_digests_serve_those_who_make_pins(server: Server, tmp_path: Path) -> None:
    """SHA-1 can be asked for, and no digest at all takes what comes."""
    fetch(server.url("ok"), tmp_path / "a", "sha1", hashlib.sha1(CONTENT, usedforsecurity=False).hexdigest())
    fetch(server.url("ok"), tmp_path / "b", "sha256", None)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == CONTENT
    with pytest.raises(NetworkError):
        fetch(server.url("ok"), tmp_path / "c", "sha1", "0" * 40)


def test_leftovers_of_a_killed_download_go(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".file.partial-x").write_bytes(b"half")
    download(server.url("ok"), tmp_path / "file", DIGEST)
    assert {path.name for path in tmp_path.iterdir()} == {"file", ".file.lock"}


def test_folder_in_the_way(server: Server, tmp_path: Path) -> None:
    """A folder where the file should go is a diagnostic about the disk, not the network."""
    (tmp_path / "file").mkdir()
    with pytest.raises(StorageError) as caught:
        download(server.url("ok"), tmp_path / "file", DIGEST)
    assert caught.value.code == "path-in-the-way"


def test_two_threads_fetch_once(server: Server, tmp_path: Path) -> None:
    threads = [threading.Thread(target=download, args=(server.url("ok"), tmp_path / "file", DIGEST)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.asked == ["ok"]


SECRET = "signature0marker"  # noqa: S105
HOST: Any = SimpleNamespace(host="x.invalid")
URL = f"https://x.invalid/?sig={SECRET}"


def body_of(*parts: bytes) -> Any:
    left = iter((*parts, b""))

    def read1(_: int, *, decode_content: bool) -> bytes:
        assert not decode_content
        return next(left)

    return SimpleNamespace(raw=SimpleNamespace(read1=read1), status_code=200, headers={"ETag": "x"})


def broken(reason: Exception) -> requests.ConnectionError:
    inner: Any = SimpleNamespace(reason=reason)
    return requests.ConnectionError(inner)


def untrusted() -> SSLError:
    inner: Any = SimpleNamespace(reason=HTTPError(SSLCertVerificationError(1, URL)))
    return SSLError(inner)


def clock_of(seconds: float) -> Clock:
    ticks = count()
    return Clock(monotonic=lambda: next(ticks) * seconds)


def test_an_answer_is_read_whole() -> None:
    """In the parts in which it comes; names of headers in lower case."""
    answer = whole(body_of(b"a", b"bc"), Clock())
    assert (answer.body, dict(answer.headers)) == (b"abc", {"etag": "x"})


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[LyingProxy]:
    """Have everything go through the proxy; no pause between attempts takes time, and patience is short."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(http, "TIMEOUT_SECONDS", (0.2, 0.2))
    monkeypatch.setattr(http, "PATIENCE_SECONDS", 0.2)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with lying_proxy(CONTENT) as running:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, running.address)
        yield running


@pytest.mark.parametrize("way", ["good", "packed", "no number for a length", "trouble that passes"])
def test_the_right_file_arrives(proxy: LyingProxy, tmp_path: Path, way: str) -> None:
    """Also when it was packed on the way though nobody asked for that, with a false length, and after trouble."""
    proxy.way = way
    download(ADDRESS, tmp_path / "file", DIGEST)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("way", "reference", "times"),
    [
        ("cut", "download-failed", 4),
        ("too long a length", "download-failed", 4),
        ("too short a length", "digest-mismatch", 1),
        ("drip", "download-failed", 4),
        ("silence", "download-failed", 4),
        ("vanish", "download-failed", 4),
        ("packed and cut", "digest-mismatch", 1),
        ("labelled as packed", "download-failed", 4),
        ("page", "digest-mismatch", 1),
        ("changed", "digest-mismatch", 1),
        ("login", "download-refused", 1),
        ("forbidden", "download-refused", 1),
        ("circle", "bad-address", 31),
        ("to a file", "bad-address", 1),
        ("trouble that stays", "download-failed", 4),
        ("a part", "download-failed", 4),
        ("nothing", "digest-mismatch", 1),
    ],
)
def test_a_wrong_file_is_not_kept(proxy: LyingProxy, tmp_path: Path, way: str, reference: str, times: int) -> None:
    """Whatever comes instead of it; what may pass is tried four times, what will not is not."""
    proxy.way = way
    started = time.monotonic()
    caught = refusing.refused(NetworkError, download, ADDRESS, tmp_path / "file", DIGEST)
    assert caught.code == reference
    assert len(proxy.asked) == times
    assert time.monotonic() - started < 5
    assert {path.name for path in tmp_path.iterdir()} == {".file.lock"}


def test_a_link_that_brings_almost_nothing_is_said_to_be_slow(proxy: LyingProxy, tmp_path: Path) -> None:
    """Each byte is a sign of life, and the file would take weeks."""
    proxy.way = "drip"
    caught = refusing.refused(NetworkError, download, ADDRESS, tmp_path / "file", DIGEST)
    assert "bytes came within" in caught.why


def test_a_page_instead_of_a_file_is_said_to_be_one(proxy: LyingProxy, tmp_path: Path) -> None:
    """As networks that want a login first send for everything."""
    proxy.way = "page"
    caught = refusing.refused(NetworkError, download, ADDRESS, tmp_path / "file", DIGEST)
    assert "web page" in caught.why
    assert "proxy" in caught.hint


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS.replace("http:", "https:")])
def test_a_proxy_that_wants_a_login_is_named(proxy: LyingProxy, tmp_path: Path, address: str) -> None:
    proxy.way = "login"
    caught = refusing.refused(NetworkError, download, address, tmp_path / "file", DIGEST)
    assert caught.code == "download-refused"
    assert "407" in caught.what
    assert "user:password@" in caught.hint
    assert len(proxy.asked) == 1


def test_what_is_encrypted_stays_so(proxy: LyingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect from https to http is not followed: whoever makes pins would keep whatever comes from there."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with tls_server(tmp_path) as served:
        served.redirects = ADDRESS
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(served.certificate))
        caught = refusing.refused(NetworkError, fetch, served.address, tmp_path / "file", "sha256", None)
    assert (caught.code, caught.why) == ("bad-address", "the server redirects to an address that is not https")
    assert proxy.asked == []


CERTIFICATES_CONTENT = b"an archive\n"


@pytest.fixture
def proxy_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TlsServer]:
    forget_certificates(monkeypatch)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    with tls_server(tmp_path) as served:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.address}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        yield served


def refused_certificates(ask: Callable[[], object], proxy_certificates: TlsServer) -> Diagnostic:
    caught = refusing.refused(Diagnostic, ask)
    assert proxy_certificates.connections
    assert f"export {VARIABLE}=" in caught.hint
    assert "certificate" in caught.why
    return caught


def test_pip_reads_the_file_that_is_named(proxy_certificates: TlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy's certificate is no index out of reach, and no missing version."""
    folder = proxy_certificates.files / "simple" / "onepackage"
    folder.mkdir(parents=True)
    line = write_wheel(folder, "onepackage", "1.5")
    for ask in (lambda: packages_folder("tools", line), lambda: resolved(["onepackage"], "3.12", ["any"])):
        error = refused_certificates(ask, proxy_certificates)
        assert isinstance(error, NetworkError)
        assert (error.code, error.exit_code) == ("untrusted-certificate", ExitCode.NETWORK)
    monkeypatch.setenv(VARIABLE, str(proxy_certificates.certificate))
    assert (packages_folder("tools", line) / "onepackage.py").is_file()


def test_a_download_is_refused_once(
    proxy_certificates: TlsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (proxy_certificates.files / "archive").write_bytes(CERTIFICATES_CONTENT)
    destination, digest = tmp_path / "archive", hashlib.sha256(CERTIFICATES_CONTENT).hexdigest()
    error = refused_certificates(
        lambda: download(f"{proxy_certificates.address}/archive", destination, digest), proxy_certificates
    )
    assert error.code == "untrusted-certificate"
    assert proxy_certificates.connections == 1
    monkeypatch.setenv(VARIABLE, str(proxy_certificates.certificate))
    download(f"{proxy_certificates.address}/archive", destination, digest)
    assert destination.read_bytes() == CERTIFICATES_CONTENT


def test_git_is_told_of_the_same_file(
    proxy_certificates: TlsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = proxy_certificates.files / "repository.git"
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", repository)
    repository.mkdir()
    for words in ("init -q", "commit -q --allow-empty -m one", "tag v1", "update-server-info"):
        assert run((*git, *words.split())).returncode == 0
    url = f"{proxy_certificates.address}/repository.git/.git"
    assert refused_certificates(lambda: tagged_commit(url, "v1"), proxy_certificates).code == "git-failed"
    monkeypatch.setenv(VARIABLE, str(proxy_certificates.certificate))
    assert len(tagged_commit(url, "v1")) == 40
    monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "absent"))
    refusing.refused(Diagnostic, tagged_commit, url, "v1")
