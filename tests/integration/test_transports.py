"""Sources by every way on which they may come: git, archives and what git makes anew, from a likeness of upstream."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.errors import SourcesError
from ortrim.pins.runtime import CommitPin, RuntimePins, runtime_pins
from ortrim.sources.commits import git
from ortrim.sources.sources import SourceTree, fetch_sources
from refusing import refused
from upstream_likeness import VERSION, Upstream, running_upstream
from zips import zipped

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serve a likeness of upstream on loopback, with a version that is pinned."""
    with running_upstream(tmp_path, monkeypatch) as running:
        running.update()
        yield running


def pins(**changes: object) -> RuntimePins:
    found = runtime_pins(VERSION)
    assert found.commit is not None
    commit: CommitPin = replace(found.commit, **changes)  # type: ignore[arg-type]
    return replace(found, commit=commit)


def files_of(tree: SourceTree) -> dict[str, tuple[int, bytes]]:
    """Return the files of ONNX Runtime in a tree: whether each can be run, and its content."""
    root = tree.folder / "onnxruntime"
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.stat().st_mode & 0o100, path.read_bytes()) for path in files}


def no_git(upstream: Upstream) -> None:
    upstream.repository.rename(upstream.repository.with_name("gone"))


def no_archive(upstream: Upstream) -> None:
    upstream.served_commit.unlink()


def no_filter(upstream: Upstream) -> None:
    no_archive(upstream)
    git(upstream.repository, "config", "uploadpack.allowFilter", "false")


@pytest.mark.parametrize("close", [no_git, no_archive, no_filter])
def test_the_files_are_the_commits_on_every_way(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, close: Callable[[Upstream], None]
) -> None:
    """Without what no build reads, and whatever the user's settings and upstream's say of line ends."""
    settings = tmp_path / "gitconfig"
    settings.write_text("[core]\nautocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    commit = upstream.commit
    close(upstream)
    tree = fetch_sources(pins(), "upstream")
    files = files_of(tree)
    assert files["onnxruntime/core/windows.cc"] == (0, b"one\r\ntwo\r\n")
    assert files["include/unix.h"] == (0, b"one\ntwo\n")
    assert files["tools/ci_build/build.py"] == (0o100, b"# build\n")
    assert not [name for name in files if "csharp" in name or "/test/" in name or ".git/" in name]
    assert (tree.folder / "re2" / "link").read_text() == "licence of re2"
    assert [pin.kind for pin in tree.pins] == ["upstream"] * len(tree.pins)
    assert tree.pins[0].digest == commit


def test_a_commit_alone_is_enough_for_git(upstream: Upstream) -> None:
    """Its id proves the files, and their list the dependencies, of which only the SHA-1 is known then."""
    tree = fetch_sources(pins(tree=None, left_out={}, archives={}), "upstream")
    assert files_of(tree) == files_of(fetch_sources(pins(), "upstream"))
    assert all(len(pin.digest) == 64 for pin in tree.pins[1:])
    no_git(upstream)
    error = refused(SourcesError, fetch_sources, pins(tree=None, commit="a" * 40), "upstream")
    assert error.code == "commit-unavailable"
    assert error.why.startswith("with git: error: git-failed")


def test_the_cache_needs_no_upstream(upstream: Upstream) -> None:
    """A tree that is there is used, and what pins it is written in it."""
    first = fetch_sources(pins(), "upstream")
    no_archive(upstream)
    no_git(upstream)
    again = fetch_sources(pins(), "upstream")
    assert (again.folder, again.pins) == (first.folder, first.pins)
    (first.folder / "pins.json").write_text("{}")
    refused(SourcesError, fetch_sources, pins(), "upstream", unread=True)


def edited(upstream: Upstream) -> None:
    (upstream.repository / "LICENSE").write_text("MIT, changed\n")
    git(upstream.repository, "add", "--all")
    git(upstream.repository, "stash", "--quiet")
    upstream.serve("stash@{0}")


def hostile(upstream: Upstream) -> None:
    """Let the archive of the commit lead out of where it is unpacked."""
    upstream.served_commit.write_bytes(zipped({"onnxruntime/../../../outside": ""}))


def page(upstream: Upstream) -> None:
    upstream.served_commit.write_text("<html>")


@pytest.mark.parametrize(
    ("spoil", "reason"), [(edited, "tree-mismatch"), (hostile, "unsafe-archive"), (page, "corrupt-archive")]
)
def test_what_is_not_the_commit_is_not_used(
    upstream: Upstream, tmp_path: Path, spoil: Callable[[Upstream], None], reason: str
) -> None:
    """Each way says why it failed, and nothing is left."""
    spoil(upstream)
    no_git(upstream)
    error = refused(SourcesError, fetch_sources, pins(), "upstream")
    assert error.code == "commit-unavailable"
    assert "with git: error: git-failed" in error.why
    assert f"as an archive: error: {reason}" in error.why
    assert not [path for path in (tmp_path / "cache" / "sources").iterdir() if path.is_dir()]
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("spoil", [Path.unlink, Path.touch])
def test_git_makes_an_archive_that_is_gone(upstream: Upstream, spoil: Callable[[Path], None]) -> None:
    """Byte for byte as its host made it, wherever this machine is; or that it was changed there."""
    archive = upstream.archive_of("re2")
    content = archive.read_bytes()
    archive.write_bytes(b"changed")
    spoil(archive)
    tree = fetch_sources(pins(), "upstream")
    assert (tree.folder / "re2" / "link").read_text() == "licence of re2"
    (kept,) = (upstream.pins.parent / "cache" / "downloads").glob("*-re2-*.zip")
    assert kept.read_bytes() == content


def test_a_dependency_that_cannot_be_had(upstream: Upstream) -> None:
    """Of no way may it be another than upstream names: all are told, and nothing is left."""
    upstream.archive_of("re2").write_bytes(b"changed")
    (upstream.dependency / "LICENSE").write_text("changed")
    git(upstream.dependency, "add", "--all")
    git(upstream.dependency, "commit", "--quiet", "--message", "changed")
    git(upstream.dependency, "tag", "--force", "v1.2")
    error = refused(SourcesError, fetch_sources, pins(), "upstream")
    assert error.code == "archive-unavailable"
    assert "from its address: error: digest-mismatch" in error.why
    assert "made with git: error: digest-mismatch" in error.why
    assert not list((upstream.pins.parent / "cache" / "downloads").glob("*-re2-*.zip"))
