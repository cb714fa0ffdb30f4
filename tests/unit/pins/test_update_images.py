"""Filling in the pins of images, with an engine of a few lines and Google's server on this machine."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from ortrim.compiling.containers.engines import DOCKER, UsableEngine
from ortrim.errors import Diagnostic
from ortrim.pin_updates.update import update_image_pins, with_values
from ortrim.pins.shipped import IMAGES_FILE, read_image_pins
from ortrim.platforms.android.ndk import REPOSITORY

PINS = """\
# What a reader should know.
[bases.python]
reference = "python:3.13-slim"
digest = "sha256:{old}"
suite = "trixie"

# Of the SDK.
[archives."ndk;27.2.12479018"]

[archives."cmdline-tools;19.0"]
file = "old.zip"
sha256 = "{old}"
""".format(old="0" * 64)
DIGEST = f"sha256:{'a' * 64}"
NDK, TOOLS = b"the ndk", b"the tools"
PACKAGE = (
    '<remotePackage path="{path}"><archives><archive><complete><checksum>{sha1}</checksum><url>{file}</url></complete>'
    "<host-os>linux</host-os></archive></archives></remotePackage>"
)


def sha1(content: bytes) -> str:
    """Return the digest that Google publishes."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


class Server:
    """A server of files; what it has can be changed."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/ndk.zip": NDK, "/tools.zip": TOOLS}
        self.list(NDK)
        files = self.files

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def list(self, ndk: bytes) -> None:
        """Publish a list in which the NDK has the digest of this content."""
        packages = (("ndk;27.2.12479018", ndk, "ndk.zip"), ("cmdline-tools;19.0", TOOLS, "tools.zip"))
        entries = (PACKAGE.format(path=path, sha1=sha1(content), file=file) for path, content, file in packages)
        self.files["/repository2-3.xml"] = f"<list>{''.join(entries)}</list>".encode()


@pytest.fixture
def server() -> Iterator[Server]:
    """Run the server."""
    server = Server()
    server.thread.start()
    yield server
    server.server.shutdown()
    server.thread.join()
    server.server.server_close()


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have an engine that knows one digest, and pins of the test's own."""
    engine = fake_engine(tmp_path, monkeypatch)
    program = engine.home / "bin" / "docker"
    program.write_text(f"#!/bin/sh\necho \"$@\" >>'{engine.home}/words'\necho python@{DIGEST}\n")
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins" / IMAGES_FILE).write_text(PINS)
    return engine


def update(server: Server) -> Path:
    """Update the pins."""
    address = f"http://127.0.0.1:{server.server.server_port}"
    usable = UsableEngine(engine=DOCKER, version="28", rootless=False)
    return update_image_pins(usable, mirrors=((REPOSITORY, address),))


def test_every_digest_is_computed_from_the_thing_itself(docker: FakeEngine, server: Server, tmp_path: Path) -> None:
    """Images by what the registry says, archives by their bytes; comments and the rest of the file stay."""
    path = update(server)
    assert path == tmp_path / "pins" / IMAGES_FILE
    pins = read_image_pins(path.read_text())
    assert pins.base("python").digest == DIGEST
    assert pins.archive("ndk;27.2.12479018") == ("ndk.zip", hashlib.sha256(NDK).hexdigest())
    assert pins.archive("cmdline-tools;19.0") == ("tools.zip", hashlib.sha256(TOOLS).hexdigest())
    assert "0" * 64 not in path.read_text()
    assert path.read_text().startswith("# What a reader should know.\n[bases.python]\n")
    assert (docker.home / "words").read_text().splitlines()[0] == "pull --quiet python:3.13-slim"


def test_the_same_again_changes_nothing(docker: FakeEngine, server: Server) -> None:
    """Lines that were filled in are replaced, not added."""
    first = update(server).read_text()
    assert update(server).read_text() == first


@pytest.mark.parametrize("archives", ["another digest", "no archive", "no list"])
def test_an_archive_that_cannot_be_pinned_keeps_its_pin(
    docker: FakeEngine, server: Server, tmp_path: Path, archives: str
) -> None:
    """Its SHA-1 is not the one in Google's list, or it is not there; the others are pinned, and the error is raised."""
    if archives == "another digest":
        server.list(b"another")
    else:
        del server.files["/ndk.zip" if archives == "no archive" else "/repository2-3.xml"]
    with pytest.raises(Diagnostic) as caught:
        update(server)
    assert caught.value.code == ("digest-mismatch" if archives == "another digest" else "download-refused")
    old, pins = read_image_pins(PINS), read_image_pins((tmp_path / "pins" / IMAGES_FILE).read_text())
    assert pins.base("python").digest == DIGEST
    assert pins.archives["ndk;27.2.12479018"] == old.archives["ndk;27.2.12479018"]
    assert (pins.archives == old.archives) == (archives == "no list")


def test_an_image_that_cannot_be_pulled_keeps_its_pin(docker: FakeEngine, server: Server, tmp_path: Path) -> None:
    """The archives are pinned, and the engine's error is raised."""
    (docker.home / "bin" / "docker").write_text("#!/bin/sh\necho 'manifest unknown' >&2\nexit 1\n")
    with pytest.raises(Diagnostic) as caught:
        update(server)
    assert "manifest unknown" in caught.value.why
    old, pins = read_image_pins(PINS), read_image_pins((tmp_path / "pins" / IMAGES_FILE).read_text())
    assert pins.bases == old.bases
    assert pins.archive("cmdline-tools;19.0")[0] == "tools.zip"


def test_values_go_to_their_own_tables() -> None:
    """The old ones of a table are replaced as a whole; a table that gets none keeps its own."""
    text = with_values(PINS, {("archives", "cmdline-tools;19.0"): ('file = "x.zip"',)})
    assert text == PINS.replace(f'file = "old.zip"\nsha256 = "{"0" * 64}"', 'file = "x.zip"')
