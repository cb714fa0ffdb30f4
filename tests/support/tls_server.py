"""Files over https on loopback, with a certificate that no system knows: a company's proxy as a client meets it."""

import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT", "GIT_SSL_CAINFO")
"""What may name certificates to pip, git and our own client."""


@dataclass(kw_only=True)
class TlsServer:
    """A server: `files` is what it gives, unless it sends all to another address with `redirects`.

    `certificate` makes a client trust it; `connections` are all so far.
    """

    address: str
    files: Path
    certificate: Path
    connections: int = 0
    redirects: str = ""


def forget_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@contextmanager
def tls_server(folder: Path) -> Iterator[TlsServer]:
    key, certificate, files = folder / "key.pem", folder / "certificate.pem", folder / "files"
    _make_certificate(key, certificate)
    files.mkdir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Handler(SimpleHTTPRequestHandler):
        """Shakes hands in a connection's own thread; a client that hangs up at the certificate is nothing new."""

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

        def do_GET(self) -> None:
            if not served.redirects:
                super().do_GET()
                return
            self.send_response(302)
            self.send_header("Location", served.redirects)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def handle(self) -> None:
            served.connections += 1
            with suppress(ssl.SSLError, ConnectionError):
                super().handle()

        def setup(self) -> None:
            self.request = context.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
            super().setup()

        def finish(self) -> None:
            with self.request, suppress(ssl.SSLError, ConnectionError):
                super().finish()

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(files))) as server:
        served = TlsServer(address=f"https://127.0.0.1:{server.server_port}", files=files, certificate=certificate)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


def _make_certificate(key_file: Path, file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "A company's proxy")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    file.write_bytes(made.public_bytes(encoding))
