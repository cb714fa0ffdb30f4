"""Downloads through a proxy that cuts, drips and lies: the right file or a diagnostic, soon, and never a wrong file."""

import hashlib
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lying_proxy import ADDRESS, LyingProxy, lying_proxy
from ortrim.base import http
from ortrim.base.http import download, fetch
from ortrim.errors import NetworkError

CONTENT: Final = bytes(n % 251 for n in range(300_000))
DIGEST: Final = hashlib.sha256(CONTENT).hexdigest()


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


@pytest.mark.parametrize("way", ["good", "packed", "trouble that passes"])
def test_the_right_file_arrives(proxy: LyingProxy, tmp_path: Path, way: str) -> None:
    """Also when it was packed on the way though nobody asked for that, and after trouble."""
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
    with pytest.raises(NetworkError) as caught:
        download(ADDRESS, tmp_path / "file", DIGEST)
    assert caught.value.code == reference
    assert len(proxy.asked) == times
    assert time.monotonic() - started < 5
    assert {path.name for path in tmp_path.iterdir()} == {".file.lock"}


def test_a_length_that_is_none_does_no_harm(proxy: LyingProxy, tmp_path: Path) -> None:
    """All of it came, as its digest says."""
    proxy.way = "no number for a length"
    download(ADDRESS, tmp_path / "file", DIGEST)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_link_that_brings_almost_nothing_is_said_to_be_slow(proxy: LyingProxy, tmp_path: Path) -> None:
    """Each byte is a sign of life, and the file would take weeks."""
    proxy.way = "drip"
    with pytest.raises(NetworkError) as caught:
        download(ADDRESS, tmp_path / "file", DIGEST)
    assert "bytes came within" in caught.value.why


def test_a_page_instead_of_a_file_is_said_to_be_one(proxy: LyingProxy, tmp_path: Path) -> None:
    """As networks that want a login first send for everything."""
    proxy.way = "page"
    with pytest.raises(NetworkError) as caught:
        download(ADDRESS, tmp_path / "file", DIGEST)
    assert "web page" in caught.value.why
    assert "proxy" in caught.value.hint


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS.replace("http:", "https:")])
def test_a_proxy_that_wants_a_login_is_named(proxy: LyingProxy, tmp_path: Path, address: str) -> None:
    """Encrypted or not: asking again would not help."""
    proxy.way = "login"
    with pytest.raises(NetworkError) as caught:
        download(address, tmp_path / "file", DIGEST)
    assert caught.value.code == "download-refused"
    assert "407" in caught.value.what
    assert "user:password@" in caught.value.hint
    assert len(proxy.asked) == 1


class Redirecting(BaseHTTPRequestHandler):
    """Sends everybody on to the proxy's address, which is not encrypted."""

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Send on."""
        self.send_response(302)
        self.send_header("Location", ADDRESS)
        self.send_header("Content-Length", "0")
        self.end_headers()


def certificate(folder: Path) -> Path:
    """Write a certificate of this machine's own, with its key."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")]),
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key(), serial_number=1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "certificate.pem"
    path.write_bytes(made.public_bytes(encoding) + private)
    return path


def test_what_is_encrypted_stays_so(proxy: LyingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect from https to http is not followed: whoever makes pins would keep whatever comes from there."""
    (tmp_path / "own").mkdir()
    pem = certificate(tmp_path / "own")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pem))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with pytest.raises(NetworkError) as caught:
            fetch(f"https://127.0.0.1:{server.server_port}/", tmp_path / "file", "sha256", None)
        server.shutdown()
        thread.join()
    assert (caught.value.code, caught.value.why) == (
        "bad-address",
        "the server redirects to an address that is not https",
    )
    assert proxy.asked == []
