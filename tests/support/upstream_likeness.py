"""A small likeness of ONNX Runtime's repository and of its dependencies: real git, real archives, on loopback."""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ortrim.pin_updates.update import NDK_TEMPLATE, pin_sources
from ortrim.pins.runtime import REPOSITORY, upstream_names
from ortrim.sources.commits import git
from zips import zipped

VERSION = "1.22.0"
NDK = "28.0.13004108"
FILES = {
    "tools/ci_build/build.py": "# build\n",
    "LICENSE": "MIT\n",
    "csharp/OnnxRuntime.sln": "left out",
    "onnxruntime/core/windows.cc": "one\r\ntwo\r\n",
    "onnxruntime/test/test.cc": "left out",
    ".gitattributes": "* text=auto\n*.sln text eol=crlf\n",
    "include/unix.h": "one\ntwo\n",
    NDK_TEMPLATE: f'parameters:\n- name: AndroidNdkVersion\n  type: string\n  default: "{NDK}"  # LTS version\n',
}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Serve the files of a folder on loopback; give the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with closing(server.socket):
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class Upstream:
    """A small likeness of ONNX Runtime and of its dependencies: a git repository, and archives that are served."""

    def __init__(self, folder: Path, port: int) -> None:
        self.pins = folder / "pins"
        self.served = folder / "served"
        self.repository = folder / "onnxruntime"
        self.dependency = folder / "re2"
        self.mirrors = (
            (f"{REPOSITORY}.git", str(self.repository)),
            ("https://github.com/a/re2.git", str(self.dependency)),
            ("https://github.com/", f"http://127.0.0.1:{port}/"),
        )
        self.served.mkdir()
        self.digests = self.make_dependencies()
        self.release(self.digests)

    def make_dependencies(self) -> dict[str, str]:
        digests = {}
        for name in upstream_names():
            path = self.archive_of(name)
            path.parent.mkdir(parents=True)
            files = {"LICENSE": f"licence of {name}", f"include/{name}.h": ""}
            path.write_bytes(zipped({f"{name}-1.2/{file}": text for file, text in files.items()}))
            digests[name] = hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
        return digests | {"re2": self.make_repository()}

    def make_repository(self) -> str:
        """Make a repository of one dependency, and its archive as GitHub does; return the archive's SHA-1."""
        self.dependency.mkdir()
        (self.dependency / "LICENSE").write_text("licence of re2")
        (self.dependency / "link").symlink_to("LICENSE")
        commit_all(self.dependency, "v1.2")
        path = self.archive_of("re2")
        git(self.dependency, "archive", "--prefix=re2-1.2/", f"--output={path}", "v1.2", TZ="America/Los_Angeles")
        return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()

    def archive_of(self, name: str) -> Path:
        return self.served / f"a/{name}/archive/refs/tags/v1.2.zip"

    def release(self, digests: dict[str, str], version: str = VERSION) -> None:
        """Commit, tag and serve a version with a `cmake/deps.txt` of these digests."""
        address = "https://github.com/a/{}/archive/refs/tags/v1.2.zip"
        lines = [f"{name};{address.format(name)};{sha1}" for name, sha1 in digests.items()]
        listed = "\n".join(["#Name;Url;SHA1", *lines, "unused;https://x.org;" + "0" * 40])
        files = FILES | {"VERSION_NUMBER": f"{version}\n", "cmake/deps.txt": listed}
        for name, text in files.items():
            (self.repository / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repository / name).write_bytes(text.encode())
        (self.repository / "tools/ci_build/build.py").chmod(0o755)
        commit_all(self.repository, f"v{version}")
        git(self.repository, "config", "uploadpack.allowFilter", "true")
        self.serve(f"v{version}")

    @property
    def commit(self) -> str:
        return git(self.repository, "rev-parse", "HEAD").strip()

    @property
    def served_commit(self) -> Path:
        return self.served / f"microsoft/onnxruntime/archive/{self.commit}.zip"

    def serve(self, reference: str) -> None:
        """Serve the files of a commit as the archive of the last release."""
        self.served_commit.parent.mkdir(parents=True, exist_ok=True)
        prefix = f"--prefix=onnxruntime-{self.commit}/"
        git(self.repository, "archive", prefix, f"--output={self.served_commit}", reference)

    def update(self) -> Path:
        return pin_sources(VERSION, mirrors=self.mirrors)[0]


def commit_all(repository: Path, tag: str) -> None:
    git(repository, "init", "--quiet")
    (repository / ".git/info/attributes").write_text("* -text\n")
    git(repository, "add", "--all")
    (repository / ".git/info/attributes").unlink()
    git(repository, "commit", "--quiet", "--message", "release")
    git(repository, "tag", "--force", "--annotate", "--message", "release", tag)


@contextmanager
def running_upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serve a likeness of upstream, which declares nothing to CMake, on loopback; pins and cache are the test's own."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    with served(tmp_path / "served") as port:
        upstream = Upstream(tmp_path, port)
        monkeypatch.setenv("ORTRIM_MIRRORS", " ".join("=".join(mirror) for mirror in upstream.mirrors))
        monkeypatch.setattr("ortrim.sources.sources.packages_folder", lambda *_: tmp_path)
        monkeypatch.setattr("ortrim.sources.sources.arrange_dependencies", lambda *_: None)
        yield upstream
