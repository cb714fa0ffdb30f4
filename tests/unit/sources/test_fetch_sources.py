import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_sources import RUNTIME_FILES, FakeSources
from ortrim.base.cache import watched_cache
from ortrim.base.command import Completed
from ortrim.base.http import digest_of
from ortrim.errors import ExitCode, NetworkError, SourcesError, StorageError, ToolError
from ortrim.pins.runtime import COMPONENTS, CommitPin, RuntimePins, upstream_names
from ortrim.sources import archives, commits, debian
from ortrim.sources import sources as fetch_module
from ortrim.sources.archives import Dependency, declared_components, parse_dependencies, read_dependencies, version_in
from ortrim.sources.debian import Mirror
from ortrim.sources.sources import fetch_sources, licences, sound_sources
from refusing import refused

SPAWN: Final = get_context("spawn")
COMMIT: Final = CommitPin(commit="c" * 40, tree="d" * 40)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix not in {".lock", ".record"})


def nothing_published(cache: Path) -> bool:
    return visible(cache / "sources") == []


def fail_on_use(*_: object, **__: object) -> Completed:
    pytest.fail("a tree in the cache needs nothing else")


def fetch_slowly(runtime: RuntimePins, entered: Event) -> None:
    def hang(*_: object) -> None:
        entered.set()
        time.sleep(60)

    with patch.object(fetch_module, "lay_out", hang):
        fetch_sources(runtime, "debian")


def test_sources_for_which_there_is_no_room_are_not_begun(
    fake: FakeSources, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither fetched nor unpacked; no other kind of source is tried, which would need the same."""
    runtime = fake.runtime()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**9, free=10**7))
    caught = refused(StorageError, fetch_sources, runtime, "debian")
    assert caught.what == "unpacking the sources takes about 492 MB, and 10 MB are free"
    for archive in (cache / "downloads").iterdir():
        archive.unlink()
    caught = refused(StorageError, fetch_sources, runtime, "debian")
    assert caught.what == "fetching the sources takes about 96 MB, and 10 MB are free"
    assert nothing_published(cache)


def test_tree_has_one_folder_for_each_component(fake: FakeSources) -> None:
    tree = fetch_sources(fake.runtime(), "debian")
    assert visible(tree.folder) == sorted(
        [*fake.components, "utf8_range", "kleidiai", "licences", "dependencies.cmake", "pins.json"]
    )
    assert (tree.folder / "onnxruntime/tools/ci_build/build.py").read_text() == "# build\n"
    assert (tree.folder / "re2/include/x.h").read_text() == "re2"
    assert not list((tree.folder / "utf8_range").iterdir())
    assert tree.kind == "debian"
    assert [pin.digest for pin in tree.pins] == [pin.sha256 for pin in fake.components.values()]


def test_licences_are_found_for_every_component(fake: FakeSources) -> None:
    """Each component comes with its licence's identifier and text; a known text stands in for one that lacks it."""
    fake.add("eigen", {"include/Eigen/Core": ""})
    fake.change("eigen", licence="MPL-2.0", interface="Eigen3::Eigen")
    tree = fetch_sources(fake.runtime(), "debian")
    found = {name: (licence, path.read_text()) for name, licence, path in licences(tree)}
    assert set(found) == set(fake.components)
    assert found["re2"] == ("MIT", "re2")
    assert found["eigen"][0] == "MPL-2.0"
    assert "Mozilla Public License Version 2.0" in found["eigen"][1]
    assert "add_library(Eigen3::Eigen ALIAS" in (tree.folder / "eigen/CMakeLists.txt").read_text()


def test_a_zip_of_git_may_have_links_and_lack_the_boost_licence(fake: FakeSources) -> None:
    """As upstream's own list has them: mp11 ships no text, which its headers name; re2 has a link."""
    fake.add_zip("mp11", {"include/boost/mp11.hpp": ""})
    fake.change("mp11", licence="BSL-1.0")
    fake.add_zip("re2", {"LICENSE": "re2's own"}, links={"python/LICENSE": "../LICENSE"})
    tree = fetch_sources(fake.runtime(), "debian")
    found = {name: path.read_text() for name, _, path in licences(tree)}
    assert found["mp11"].startswith("Boost Software License - Version 1.0")
    assert (tree.folder / "re2/python/LICENSE").read_text() == found["re2"] == "re2's own"


def test_a_wheel_has_no_links(fake: FakeSources, cache: Path) -> None:
    fake.add_zip("re2", {"LICENSE": "text"}, links={"python/LICENSE": "../LICENSE"})
    fake.change("re2", origin="wheel", location="re2==1")
    caught = refused(StorageError, fetch_sources, fake.runtime(), "debian")
    assert caught.code == "unsafe-archive"
    assert nothing_published(cache)


def test_missing_licence_is_refused(fake: FakeSources, cache: Path) -> None:
    """Sources whose licence text is nowhere cannot be shipped, so they are not used."""
    fake.add("re2", {"re2.h": ""})
    caught = refused(SourcesError, fetch_sources, fake.runtime(), "debian")
    assert caught.code == "licence-missing"
    assert nothing_published(cache)


def test_second_call_uses_nothing_but_the_cache(fake: FakeSources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree that is there is used without network, apt or unpacking."""
    runtime = fake.runtime()
    first = fetch_sources(runtime, "auto")
    monkeypatch.setattr(archives, "fetch_debian", fail_on_use)
    monkeypatch.setattr(archives, "fetch", fail_on_use)
    monkeypatch.setattr(fetch_module, "fetch_archives", fail_on_use)
    again = fetch_sources(runtime, "auto")
    assert again.folder == first.folder
    assert "debian: taken from the cache" in again.notes


def test_a_source_that_was_edited_is_not_compiled(fake: FakeSources) -> None:
    """One literal in an unpacked file: the tree is unpacked anew when it is looked at, and before it is read at all."""
    tree = fetch_sources(fake.runtime(), "debian")
    file = tree.folder / "onnxruntime/tools/ci_build/build.py"

    def found_again() -> Path:
        return fetch_sources(fake.runtime(), "debian").folder

    for look in (found_again, partial(sound_sources, tree)):
        file.chmod(0o644)
        file.write_text("# built\n")
        assert fetch_sources(fake.runtime(), "debian", unread=True).folder == tree.folder
        assert file.read_text() == "# built\n"
        assert look() == tree.folder
        assert file.read_text() == "# build\n"


@pytest.mark.parametrize("kind", ["auto", "upstream", "debian"])
def test_unpinned_sources_are_refused(fake: FakeSources, cache: Path, kind: str) -> None:
    """What has no digest is not fetched; the hint names the command that pins it."""
    caught = refused(SourcesError, fetch_sources, replace(fake.runtime(), debian=None), kind)
    assert caught.code == "unpinned-source"
    assert caught.exit_code == ExitCode.SOURCES
    assert "invoke pins.update --version 1.21.0" in caught.hint
    assert not (cache / "sources").exists()


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, *_: object) -> None:
        raise NetworkError("download-failed", "no network", where=url)

    def refuse_git(*_: object, **__: object) -> str:
        raise SourcesError("git-failed", "git fetch failed")

    monkeypatch.setattr(commits, "fetch", refuse)
    monkeypatch.setattr(commits, "git", refuse_git)
    monkeypatch.setattr(archives, "fetch", refuse)
    monkeypatch.setattr(archives, "git", refuse_git)


@pytest.mark.usefixtures("unreachable")
def test_auto_falls_to_the_next_and_says_why(fake: FakeSources) -> None:
    """When upstream cannot be reached a distribution's archives are taken, with a note of what was passed over."""
    tree = fetch_sources(fake.runtime(COMMIT), "auto")
    assert tree.kind == "debian"
    (note,) = tree.notes
    assert note == f"upstream: commit-unavailable: the commit {COMMIT.commit} could not be fetched in any way"


@pytest.mark.usefixtures("unreachable")
def test_all_ways_failing_lists_them_all(fake: FakeSources, cache: Path) -> None:
    """When no kind works, the diagnostic tells of each and of each way that was tried."""
    for file in (cache / "downloads").iterdir():
        file.unlink()
    caught = refused(SourcesError, fetch_sources, fake.runtime(COMMIT), "auto")
    assert caught.code == "no-source-works"
    assert "with git: error: git-failed" in caught.why
    assert "as an archive: error: download-failed" in caught.why
    assert "debian: download-failed: no network" in caught.why
    assert nothing_published(cache)


def test_damaged_download_in_the_cache_is_not_opened(
    fake: FakeSources, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the cache that is no longer what was pinned is removed and fetched anew, never unpacked."""
    pin = fake.components["onnx"]
    path = archives.kept_path(pin)
    good = path.read_bytes()
    path.write_bytes(good + b"damage")
    monkeypatch.setattr(archives, "fetch", lambda _url, destination, *_: destination.write_bytes(good))
    tree = fetch_sources(fake.runtime(), "debian")
    assert (tree.folder / "onnx/include/x.h").is_file()


def test_a_download_that_another_process_has_mended_meanwhile_stays(
    fake: FakeSources, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two builds find the same damage at once; what one of them fetched anew is not the damaged one."""
    path, look = archives.kept_path(fake.components["onnx"]), digest_of
    good = path.read_bytes()
    path.write_bytes(good + b"damage")

    def mended_after(file: Path, algorithm: str) -> str:
        found = look(file, algorithm)
        if file == path:
            path.write_bytes(good)
        return found

    monkeypatch.setattr(archives, "digest_of", mended_after)
    monkeypatch.setattr(archives, "fetch", fail_on_use)
    with watched_cache(lambda _: None) as watch:
        fetch_sources(fake.runtime(), "debian")
    assert path.read_bytes() == good
    assert watch.damages == []


def test_a_download_that_another_process_removes_meanwhile_is_fetched(
    fake: FakeSources, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, look = archives.kept_path(fake.components["onnx"]), digest_of
    good = path.read_bytes()
    gone: list[Path] = []

    def vanished(file: Path, algorithm: str) -> str:
        if file == path and not gone:
            path.unlink()
            gone.append(path)
        return look(file, algorithm)

    monkeypatch.setattr(archives, "digest_of", vanished)
    monkeypatch.setattr(archives, "fetch", lambda _url, destination, *_: destination.write_bytes(good))
    fetch_sources(fake.runtime(), "debian")
    assert path.read_bytes() == good


@pytest.mark.parametrize(
    ("files", "reference"),
    [(RUNTIME_FILES | {"VERSION_NUMBER": "1.20.0"}, "version-mismatch"), ({"README": ""}, "not-onnxruntime")],
)
def test_wrong_runtime_is_refused(fake: FakeSources, cache: Path, files: dict[str, str], reference: str) -> None:
    """An archive that is of another version, or not ONNX Runtime at all, does not become a tree."""
    fake.add("onnxruntime", files)
    caught = refused(SourcesError, fetch_sources, fake.runtime(), "debian")
    assert caught.code == reference
    assert nothing_published(cache)


def test_killed_in_the_middle_leaves_the_cache_usable(fake: FakeSources, cache: Path) -> None:
    """After SIGKILL while unpacking there is no tree; the next run makes it and clears up."""
    entered = SPAWN.Event()
    child = SPAWN.Process(target=fetch_slowly, args=(fake.runtime(), entered))
    child.start()
    assert entered.wait(60)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join(30)
    assert all(".partial-" in name for name in visible(cache / "sources"))
    tree = fetch_sources(fake.runtime(), "debian")
    assert visible(cache / "sources") == [tree.folder.name]


def test_no_tool_is_needed_for_archives(fake: FakeSources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert fetch_sources(fake.runtime(), "debian").kind == "debian"


def test_apt_that_hangs_is_passed_over_by_auto(fake: FakeSources, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that does not end is one more reason to try the next kind, and is shown when there is none."""

    def hang(*_: object, **__: object) -> Completed:
        raise ToolError("tool-timeout", "did not end")

    fake.change("onnx", origin="debian-source")
    archives.kept_path(fake.components["onnx"]).unlink()
    monkeypatch.setattr(debian, "run", hang)
    monkeypatch.setattr(debian, "host_mirrors", lambda _: [Mirror(uri="http://mirror.invalid/debian")])
    caught = refused(ToolError, fetch_sources, fake.runtime(), "auto")
    assert caught.code == "tool-timeout"
    assert visible(cache / "apt") == []


RECORDED = """\
#Name;Url;SHA1
#This is a CSV file.
#
abseil_cpp;https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.zip;36ee53eb1466fb6e593fc5c286680de31f8a494a
# Issue link: https://gitlab.com/libeigen/eigen/-/issues/2744
eigen;https://gitlab.com/libeigen/eigen/-/archive/1d8b82b/eigen-1d8b82b.zip;5ea4d05e62d7f954a46b3213f9b2535bdd866803
"""


def test_recorded_list_is_read() -> None:
    """Lines of upstream's file become dependencies; comments do not."""
    first, second = parse_dependencies(RECORDED)
    assert first == Dependency(
        name="abseil_cpp",
        url="https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.zip",
        sha1="36ee53eb1466fb6e593fc5c286680de31f8a494a",
    )
    assert second.name == "eigen"


@pytest.mark.parametrize("line", ["a;b", "a;b;c", "a;b;" + "g" * 40, "a;b;c;" + "0" * 40, "<html>"])
def test_other_lines_are_refused(line: str) -> None:
    """A line that is not `name;url;sha1` stops the update: nothing is guessed."""
    caught = refused(SourcesError, parse_dependencies, RECORDED + line)
    assert caught.code == "bad-dependency-list"


@given(st.text())
def test_any_text_ends_in_a_list_or_a_diagnostic(text: str) -> None:
    """Whatever the file holds, reading it ends."""
    with suppress(SourcesError):
        assert all(len(each.sha1) == 40 for each in parse_dependencies(text))


@pytest.mark.parametrize(
    ("url", "version"),
    [
        ("https://x.org/archive/refs/tags/v3.11.3.zip", "3.11.3"),
        ("https://x.org/archive/refs/tags/2024-07-02.zip", "2024-07-02"),
        ("https://x.org/archive/refs/tags/boost-1.82.0.tar.gz?x=1", "boost-1.82.0"),
        ("https://github.com/a/b/archive/1d8b82b/eigen-1d8b82b.zip", "1d8b82b"),
        ("https://gitlab.com/a/b/c/-/archive/v1.5/c-v1.5.tar.gz", "1.5"),
    ],
)
def test_version_is_what_the_address_says(url: str, version: str) -> None:
    assert version_in(url) == version


def listed(**others: str) -> list[Dependency]:
    return [
        Dependency(
            name=name, url=f"https://github.com/a/{name}/archive/refs/tags/v1.2.zip", sha1=others.get(name, "a" * 40)
        )
        for name in (*upstream_names(), "something_else")
    ]


def test_what_a_library_is_made_of_has_our_names() -> None:
    """Of what some libraries alone need, that which is asked for; all else that upstream lists is left alone."""
    found = {pin.name: pin for pin in declared_components(listed(), {"a" * 40: "b" * 64}, frozenset({"cpuinfo"}))}
    assert set(found) == {*COMPONENTS, "cpuinfo"} - {"onnxruntime"}
    json = found["nlohmann_json"]
    assert (json.version, json.file, json.digest) == ("1.2", "nlohmann_json-v1.2.zip", ("sha256", "b" * 64))
    (unknown, *_) = declared_components(listed(), {}, frozenset())
    assert unknown.digest == ("sha1", "a" * 40)


def test_what_is_gone_is_taken_from_elsewhere() -> None:
    """GitLab's archive of Eigen has had other bytes since May 2025; a mirror of the repository has its files."""
    gone = "5ea4d05e62d7f954a46b3213f9b2535bdd866803"
    found = {pin.name: pin for pin in declared_components(listed(eigen=gone), {}, frozenset())}
    assert found["eigen"].location.startswith("https://github.com/eigen-mirror/")
    assert found["eigen"].sha1 != gone


def test_a_list_that_lacks_one_is_refused() -> None:
    """Nothing could be built of it; of what only some libraries need it may lack anything."""
    short = [each for each in listed() if each.name not in {"re2", "kleidiai"}]
    caught = refused(SourcesError, declared_components, short, {}, frozenset({"kleidiai"}))
    assert (caught.code, caught.what) == ("bad-dependency-list", "does not list re2")


def test_a_tree_without_a_list_is_refused(tmp_path: Path) -> None:
    caught = refused(SourcesError, read_dependencies, tmp_path)
    assert caught.code == "bad-dependency-list"
