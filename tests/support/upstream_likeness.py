"""A small likeness of ONNX Runtime's repository and of its dependencies: real git, real archives, on loopback."""

import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ortrim.build.source_archives import git
from ortrim.pins.runtime import upstream_names, versions_file
from ortrim.pins.update import NDK_TEMPLATE, REPOSITORY, update_pins

VERSION = "1.22.0"
NDK = "28.0.13004108"
FILES = {
    "tools/ci_build/build.py": "# build\n",
    "LICENSE": "MIT\n",
    NDK_TEMPLATE: f'parameters:\n- name: AndroidNdkVersion\n  type: string\n  default: "{NDK}"  # LTS version\n',
}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class Upstream:
    """A small likeness of ONNX Runtime and of its dependencies: a git repository, and archives that are served."""

    def __init__(self, folder: Path, port: int) -> None:
        self.pins = folder / "pins"
        self.served = folder / "served"
        self.repository = folder / "onnxruntime"
        self.mirrors = (
            (f"{REPOSITORY}.git", str(self.repository)),
            ("https://github.com/", f"http://127.0.0.1:{port}/"),
        )
        self.served.mkdir()
        self.digests = self.make_dependencies()
        self.release(self.digests)

    def make_dependencies(self) -> dict[str, str]:
        """Make an archive for each dependency; return the SHA-1 of each."""
        digests = {}
        for name in upstream_names():
            path = self.served / f"{name}/archive/v1.2.zip"
            path.parent.mkdir(parents=True)
            with zipfile.ZipFile(path, "w") as file:
                file.writestr(f"{name}-1.2/LICENSE", f"licence of {name}")
                file.writestr(f"{name}-1.2/include/{name}.h", "")
            digests[name] = hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
        return digests

    def release(self, digests: dict[str, str], version: str = VERSION) -> None:
        """Commit, tag and serve a version with a `cmake/deps.txt` of these digests."""
        lines = [f"{name};https://github.com/{name}/archive/v1.2.zip;{sha1}" for name, sha1 in digests.items()]
        listed = "\n".join(["#Name;Url;SHA1", *lines, "unused;https://x.org;" + "0" * 40])
        files = FILES | {"VERSION_NUMBER": f"{version}\n", "cmake/deps.txt": listed}
        for name, text in files.items():
            (self.repository / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repository / name).write_text(text)
        git(self.repository, "init", "--quiet")
        git(self.repository, "add", "--all")
        git(self.repository, "commit", "--quiet", "--message", "release")
        git(self.repository, "tag", "--force", "--annotate", "--message", "release", f"v{version}")
        self.serve(f"v{version}", version)

    def serve(self, reference: str, version: str = VERSION) -> None:
        """Serve the archive of a commit as that of a version's tag."""
        path = self.served / f"microsoft/onnxruntime/archive/refs/tags/v{version}.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        git(self.repository, "archive", f"--prefix=onnxruntime-{version}/", f"--output={path}", reference)

    def update(self) -> tuple[Path, ...]:
        """Run the update."""
        return update_pins(VERSION, mirrors=self.mirrors, destination=self.pins)


@contextmanager
def running_upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serve a likeness of upstream on loopback, with pins and a cache of the test's own."""
    versions_file.cache_clear()
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    handler = partial(QuietHandler, directory=str(tmp_path / "served"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with closing(server.socket):
        try:
            yield Upstream(tmp_path, server.server_port)
        finally:
            server.shutdown()
            thread.join()
    versions_file.cache_clear()
