"""Snippets in builds for real: CMake, Gradle and Ruby read them, fetch from a loopback server, and refuse other bytes.

What has not been tried here: Xcode and CocoaPods, which run on macOS alone, and Gradle's newer versions.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from cmake_application import Application, new_application
from loopback_service import Asked, LoopbackService, Reply
from ortrim.base.command import Completed, run
from ortrim.github.fetch.snippets import SnippetFile, snippet
from podspecs import PODS
from wheel_package import make_wheel_package

EVIL: Final = "a'; println('hacked'); new File('hacked').text = 'x' ; '$(touch hacked) #{`touch hacked`} ]==] ${x}.aar"
"""A name that would be code in one language or another, if it got there as anything but text."""


class Server(LoopbackService):
    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}

    def name_of(self, asked: Asked) -> str:
        return asked.path

    def answer(self, asked: Asked) -> Reply:
        content = self.files.get(asked.path)
        return Reply(status=404) if content is None else Reply(body=content)

    def offer(self, name: str, content: bytes) -> SnippetFile:
        path = f"/{len(self.files)}"
        self.files[path] = content
        digest = hashlib.sha256(content).hexdigest()
        return SnippetFile(name=name, url=self.address + path, sha256=digest, size_bytes=len(content))


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as served:
        yield served


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the archive of a package with the installed wheel's library."""
    return make_wheel_package(tmp_path_factory.mktemp("package")).archive.read_bytes()


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return new_application(tmp_path)


@pytest.mark.network
def test_cmake_fetches_builds_and_runs(application: Application, server: Server, archive: bytes) -> None:
    """Nothing of ours is there but the snippet; configured again, nothing is fetched again."""
    text = snippet("cmake", [server.offer(EVIL.removesuffix(".aar") + ".tar.gz", archive)])
    done = application.configure(text)
    assert done.returncode == 0, done.stderr
    assert "_deps/ortrim_onnxruntime-src/models" in done.stdout
    assert application.build_and_run() == f"version {onnxruntime.__version__}\n"
    assert application.configure(text).returncode == 0
    assert server.names() == ["/0"]
    assert not list(application.folder.rglob("hacked"))


@pytest.mark.network
def test_cmake_stops_at_other_bytes(application: Application, server: Server, archive: bytes) -> None:
    """The package is not unpacked, and the words name what was expected."""
    offered = replace(server.offer("package.tar.gz", archive), sha256="0" * 64)
    done = application.configure(snippet("cmake", [offered]))
    assert done.returncode != 0
    assert "0" * 64 in done.stderr + done.stdout
    assert not list(application.folder.rglob("onnxruntimeConfig.cmake"))


SETTINGS: Final = "rootProject.name = 'app'\n"
BUILD: Final = """
apply plugin: 'java'
apply from: 'ortrim.gradle'
task show(dependsOn: configurations.compileClasspath) {
    doLast { configurations.compileClasspath.files.each { println 'have ' + it.length() + ' ' + it.name } }
}
"""
Gradle = Callable[[str], Completed]


@pytest.fixture
def gradle(tmp_path: Path) -> Gradle:
    """Build an app with a snippet, as far as its class path."""
    folder = tmp_path / "an app"
    folder.mkdir()
    (folder / "settings.gradle").write_text(SETTINGS)
    (folder / "build.gradle").write_text(BUILD)

    def build(text: str) -> Completed:
        (folder / "ortrim.gradle").write_text(text)
        words = (
            "gradle",
            "--no-daemon",
            "--quiet",
            "--offline",
            "--continue",
            "--gradle-user-home",
            tmp_path / "home",
            "show",
        )
        return run(words, cwd=folder, timeout_seconds=300)

    return build


def fetched(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "an app" / "build" / "ortrim").iterdir())


@pytest.mark.needs("gradle", "java")
def test_gradle_fetches_once_and_again_when_it_was_changed(gradle: Gradle, server: Server, tmp_path: Path) -> None:
    first, second = server.offer("first.aar", b"one" * 100_000), server.offer(EVIL, b"two")
    text = snippet("gradle", [first, second])
    done = gradle(text)
    assert done.returncode == 0, done.stderr
    assert "have 300000 first.aar" in done.stdout
    assert f"have 3 {EVIL}" in done.stdout
    assert server.names() == ["/0", "/1"]
    (tmp_path / "an app" / "build" / "ortrim" / "first.aar").write_bytes(b"changed")
    assert "have 300000 first.aar" in gradle(text).stdout
    assert server.names() == ["/0", "/1", "/0"]
    assert not list(tmp_path.rglob("hacked"))
    assert "hacked" not in done.stdout.replace(EVIL, "")


@pytest.mark.needs("gradle", "java")
def test_gradle_stops_at_other_bytes(gradle: Gradle, server: Server, tmp_path: Path) -> None:
    """Of another digest, more than there should be, less, none; nothing gets onto the class path."""
    other, more, less, none = (server.offer(f"{name}.aar", name.encode()) for name in ("other", "more", "less", "none"))
    server.files |= {"/1": b"more" * 1000, "/2": b"les"}
    del server.files["/3"]
    done = gradle(snippet("gradle", [replace(other, sha256="0" * 64), more, less, none]))
    assert done.returncode != 0
    assert "have " not in done.stdout
    assert fetched(tmp_path) == []
    assert f"other.aar: expected SHA-256 {'0' * 64}, found {other.sha256}" in done.stderr
    assert "more.aar: more than the 4 bytes that it should have" in done.stderr
    assert f"less.aar: expected SHA-256 {less.sha256}" in done.stderr
    assert none.url in done.stderr


@pytest.mark.needs("ruby")
def test_ruby_reads_the_podspec(tmp_path: Path) -> None:
    """With a stand-in for CocoaPods' own words; a name and an address are text, whatever is in them."""
    address = "https://example.org/#{`touch_hacked`}'+`touch_hacked`+'/1.2.3.zip"
    name = f"{EVIL.removesuffix('.aar')}-1.21.0.xcframework.zip"
    file = SnippetFile(name=name, url=address, sha256="a" * 64, size_bytes=1)
    (tmp_path / "stub.rb").write_text(PODS)
    (tmp_path / "ortrim.podspec").write_text(snippet("podfile", [file]))
    done = run(["ruby", "-w", tmp_path / "stub.rb", tmp_path / "ortrim.podspec"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["source"]["sha256"] == "a" * 64
    assert said["source"]["http"] == "https://example.org/#%7B%60touch_hacked%60%7D%27+%60touch_hacked%60+%27/1.2.3.zip"
    assert said["version"] == "1.21.0"
    assert {"name", "summary", "homepage", "license", "authors", "vendored_frameworks"} <= set(said)
    assert not list(tmp_path.rglob("hacked"))
