"""`pins.update` against a server on loopback and a local git repository."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ortrim.build.source_archives import git
from ortrim.build.sources import fetch_sources
from ortrim.errors import Diagnostic, ExitCode, NetworkError, SourcesError, SpecError, StorageError
from ortrim.pins.runtime import runtime_pins, upstream_names
from ortrim.pins.update import update_pins
from upstream_likeness import Upstream, running_upstream

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serve a likeness of upstream on loopback."""
    with running_upstream(tmp_path, monkeypatch) as running:
        yield running


def test_update_pins_what_upstream_vouches_for(upstream: Upstream) -> None:
    """Every archive gets the SHA-256 of what came, under upstream's own address, and the tag gets its commit."""
    written = upstream.update()
    assert [path.name for path in written] == ["onnxruntime-1.22.0-archive.toml", "onnxruntime-1.22.0-git.toml"]
    pins = runtime_pins("1.22.0")
    (archive,) = pins.sources
    for pin in archive.components:
        served = upstream.served / pin.location.removeprefix("https://github.com/")
        assert pin.sha256 == hashlib.sha256(served.read_bytes()).hexdigest()
    assert pins.git is not None
    assert pins.git.commit == git(upstream.repository, "rev-parse", "HEAD").strip()


def test_second_update_changes_nothing(upstream: Upstream) -> None:
    """The same upstream gives the same bytes."""
    first = [path.read_bytes() for path in upstream.update()]
    assert [path.read_bytes() for path in upstream.update()] == first


def test_updated_pins_can_be_built_from(upstream: Upstream) -> None:
    """What was unpinned before the update is fetched after it, from archives and from git."""
    with pytest.raises(SourcesError) as caught:
        fetch_sources(runtime_pins("1.22.0"), "auto")
    assert caught.value.code == "unpinned-source"
    for path in upstream.update():
        text = path.read_text()
        for prefix, replacement in upstream.mirrors:
            text = text.replace(prefix, replacement)
        path.write_text(text)
    from_archive = fetch_sources(runtime_pins("1.22.0"), "auto")
    from_git = fetch_sources(runtime_pins("1.22.0"), "git")
    assert (from_archive.kind, from_git.kind) == ("archive", "git")
    for tree in (from_archive, from_git):
        assert (tree.folder / "onnxruntime/VERSION_NUMBER").read_text() == "1.22.0\n"
        assert (tree.folder / "gsl/include/microsoft_gsl.h").is_file()


def wrong_sha1(upstream: Upstream) -> None:
    """Change an archive behind upstream's back."""
    with (upstream.served / "re2/archive/v1.2.zip").open("ab") as file:
        file.write(b"changed")


def other_commit(upstream: Upstream) -> None:
    """Serve the archive of a commit that is not the tag's."""
    (upstream.repository / "more").write_text("")
    git(upstream.repository, "add", "--all")
    git(upstream.repository, "commit", "--quiet", "--message", "later")
    upstream.serve("HEAD")


def missing_archive(upstream: Upstream) -> None:
    """Let an archive be gone."""
    (upstream.served / "re2/archive/v1.2.zip").unlink()


def missing_tag(upstream: Upstream) -> None:
    """Let the tag be gone."""
    git(upstream.repository, "tag", "--delete", "v1.22.0")


def not_an_archive(upstream: Upstream) -> None:
    """Serve a login page in place of ONNX Runtime."""
    (upstream.served / "microsoft/onnxruntime/archive/refs/tags/v1.22.0.zip").write_text("<html>")


def unlisted(upstream: Upstream) -> None:
    """Release with a list of dependencies that lacks one."""
    digests = {name: "0" * 40 for name in upstream_names() if name != "abseil_cpp"}
    upstream.release(digests)


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    ("spoil", "reference", "kind"),
    [
        (wrong_sha1, "digest-mismatch", NetworkError),
        (other_commit, "commit-mismatch", SourcesError),
        (missing_archive, "download-refused", NetworkError),
        (missing_tag, "no-such-tag", SourcesError),
        (not_an_archive, "corrupt-download", NetworkError),
        (unlisted, "bad-dependency-list", SourcesError),
    ],
)
def test_doubt_leaves_the_pins_as_they_were(
    upstream: Upstream,
    spoil: Callable[[Upstream], None],
    reference: str,
    kind: type[Diagnostic],
    existing: bool,  # noqa: FBT001
) -> None:
    """Whatever does not fit upstream's own word stops the update, and no pin is written or changed."""
    before = {path: path.read_bytes() for path in upstream.update()} if existing else {}
    spoil(upstream)
    with pytest.raises(kind) as caught:
        upstream.update()
    assert caught.value.code == reference
    assert {path: path.read_bytes() for path in upstream.pins.glob("*")} == before


def test_interrupted_update_leaves_the_old_pins(upstream: Upstream) -> None:
    """Ctrl-C while archives are fetched changes no pin."""
    before = {path: path.read_bytes() for path in upstream.update()}

    def interrupt(step: str) -> None:
        if "re2" in step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_pins("1.22.0", mirrors=upstream.mirrors, destination=upstream.pins, announce=interrupt)
    assert {path: path.read_bytes() for path in upstream.pins.glob("*")} == before


def test_pins_folder_that_is_a_file(upstream: Upstream) -> None:
    """A file in place of the pins folder is a diagnostic."""
    upstream.pins.write_text("")
    with pytest.raises(StorageError) as caught:
        upstream.update()
    assert caught.value.code == "path-in-the-way"
    assert caught.value.exit_code == ExitCode.STORAGE


@pytest.mark.parametrize(("version", "reference"), [("1.22.1", "known-broken-version"), ("9.9.9", "unknown-version")])
def test_versions_that_are_not_built_are_not_pinned(upstream: Upstream, version: str, reference: str) -> None:
    """Broken and unknown versions are refused before anything is fetched."""
    with pytest.raises(SpecError) as caught:
        update_pins(version, mirrors=upstream.mirrors, destination=upstream.pins)
    assert caught.value.code == reference
    assert not upstream.pins.exists()
