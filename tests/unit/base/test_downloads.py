import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket

import pytest

from ortrim.base import http
from ortrim.base.http import download, fetch
from ortrim.errors import ExitCode, NetworkError, StorageError

CONTENT = bytes(n % 256 for n in range(300_000))
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """A server on loopback that remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[str] = []
        self.parts: list[int] = []

    def url(self, path: str) -> str:
        """Return the address of `path`."""
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Answers(BaseHTTPRequestHandler):
    """Answers by path: `ok`, `404`, `flaky` (500 first), `cut`, `redirect`, `loop`, `labelled`."""

    server: Server

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Answer."""
        name = self.path.strip("/")
        self.server.asked.append(name)
        times = self.server.asked.count(name)
        if name == "404" or (name == "flaky" and times == 1):
            self.send_error(404 if name == "404" else 500)
        elif name in {"redirect", "loop"}:
            self.send_response(302)
            self.send_header("Location", "/ok" if name == "redirect" else "/loop")
            self.end_headers()
        elif name.startswith("marked"):
            self._send_marked(name, times)
        else:
            self._send(cut=name == "cut" or (name == "cut-once" and times == 1), labelled=name == "labelled")

    def _send_marked(self, name: str, times: int) -> None:
        """Cut the first answer; then send the rest of the file, if it is still the one with the mark, or all of it."""
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
    """Run a server on loopback, and let no pause between attempts take time."""
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
    """Download, which must fail, and check that nothing but the lock is left."""
    with pytest.raises(NetworkError) as caught:
        download(url, tmp_path / "file", digest)
    assert caught.value.code == reference
    assert caught.value.exit_code == ExitCode.NETWORK
    assert {path.name for path in tmp_path.iterdir()} == {".file.lock"}
    return caught.value


@pytest.mark.parametrize("path", ["ok", "redirect", "labelled"])
def test_file_arrives(server: Server, tmp_path: Path, path: str) -> None:
    """A good answer is stored as it is, also after a redirect, also when the server would label it compressed."""
    download(server.url(path), tmp_path / "deep/file", DIGEST)
    assert (tmp_path / "deep/file").read_bytes() == CONTENT
    assert (tmp_path / "deep/file").stat().st_mode & 0o777 == 0o644


def test_file_that_is_there_is_not_fetched(server: Server, tmp_path: Path) -> None:
    """A file with the right digest stays; one with another is replaced."""
    (tmp_path / "file").write_bytes(CONTENT)
    download(server.url("ok"), tmp_path / "file", DIGEST)
    assert server.asked == []
    (tmp_path / "file").write_bytes(b"old")
    download(server.url("ok"), tmp_path / "file", DIGEST)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_refusal_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    """A 404 is reported at once."""
    assert "404" in refused(server.url("404"), tmp_path, "download-refused").what
    assert server.asked == ["404"]


@pytest.mark.parametrize("path", ["flaky", "cut-once"])
def test_trouble_that_passes_is_overcome(server: Server, tmp_path: Path, path: str) -> None:
    """A server error or a cut connection is tried again, from the start where the file has no mark."""
    download(server.url(path), tmp_path / "file", DIGEST)
    assert server.asked == [path, path]
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("marked", [0, len(CONTENT) // 2]),
        ("marked-changed", [0, 0]),
        ("marked-wrong", [0, len(CONTENT) // 2, 0]),
    ],
)
def test_a_download_goes_on_where_it_broke_off(server: Server, tmp_path: Path, path: str, parts: list[int]) -> None:
    """If the server says that it is still the same file, and sends just the rest; else it begins anew."""
    download(server.url(path), tmp_path / "file", DIGEST)
    assert server.parts == parts
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_trouble_that_stays_is_reported(server: Server, tmp_path: Path) -> None:
    """A connection that is always cut gives up after a few attempts."""
    refused(server.url("cut"), tmp_path, "download-failed")
    assert len(server.asked) == http.ATTEMPTS


def test_wrong_digest_shows_both(server: Server, tmp_path: Path) -> None:
    """Another file than the pinned one is refused with both digests, one below the other."""
    error = refused(server.url("ok"), tmp_path, "digest-mismatch", "0" * 64)
    assert error.why == f"expected {'0' * 64}\nactual   {DIGEST}"


@pytest.mark.parametrize("url", ["not an address", "ftp://127.0.0.1/x", "http://", "file:///etc/passwd"])
def test_address_that_cannot_be_fetched(tmp_path: Path, url: str) -> None:
    """An address that is none is refused without waiting for a better time."""
    refused(url, tmp_path, "bad-address")


def test_endless_redirect_is_refused(server: Server, tmp_path: Path) -> None:
    """A redirect that goes round in circles is given up once."""
    refused(server.url("loop"), tmp_path, "bad-address")


def test_unreachable_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody listens, the download fails after its attempts."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused(f"http://127.0.0.1:{unused.getsockname()[1]}/", tmp_path, "download-failed")
    assert pauses == [1, 2, 4]


def test_endless_file_is_cut_off(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More bytes than any source has are not written to the disk."""
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
    """What a killed download left is removed by the next one."""
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
    """Two that want the same file at once fetch it once."""
    threads = [threading.Thread(target=download, args=(server.url("ok"), tmp_path / "file", DIGEST)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.asked == ["ok"]
