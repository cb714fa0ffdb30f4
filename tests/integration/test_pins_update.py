"""`pins.update` against a server on loopback and a local git repository."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ortrim.errors import Diagnostic, SourcesError, SpecError, StorageError
from ortrim.pin_updates.new_versions import pin_version
from ortrim.pin_updates.update import pin_sources
from ortrim.pins.runtime import runtime_pins, upstream_names
from ortrim.sources.commits import git
from refusing import refused
from upstream_likeness import Upstream, running_upstream

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with running_upstream(tmp_path, monkeypatch) as running:
        yield running


def test_update_pins_what_upstream_vouches_for(upstream: Upstream) -> None:
    """The tag's commit, git's ids of what is built and of what is left out, and the SHA-256 of every archive."""
    assert upstream.update().name == "onnxruntime-1.22.0-upstream.toml"
    pin = runtime_pins("1.22.0").commit
    assert pin is not None
    assert pin.commit == upstream.commit
    assert pin.tree == git(upstream.repository, "rev-parse", "HEAD^{tree}").strip()
    assert set(pin.left_out) == {"csharp", "onnxruntime/test"}
    served = [upstream.archive_of(name).read_bytes() for name in upstream_names()]
    assert set(pin.archives.values()) == {hashlib.sha256(each).hexdigest() for each in served}


def test_second_update_changes_nothing(upstream: Upstream) -> None:
    first = upstream.update().read_bytes()
    assert upstream.update().read_bytes() == first


def changed(path: Path) -> None:
    path.write_bytes(b"changed")


@pytest.mark.parametrize("spoil", [changed, Path.unlink])
def test_an_archive_that_is_not_to_be_had_has_no_sha_256(upstream: Upstream, spoil: Callable[[Path], None]) -> None:
    spoil(upstream.archive_of("date"))
    upstream.update()
    pin = runtime_pins("1.22.0").commit
    assert pin is not None
    assert set(upstream.digests.values()) - set(pin.archives) == {upstream.digests["date"]}


def missing_tag(upstream: Upstream) -> None:
    git(upstream.repository, "tag", "--delete", "v1.22.0")


def unlisted(upstream: Upstream) -> None:
    """Release with a list of dependencies that lacks one."""
    digests = {name: "0" * 40 for name in upstream_names() if name != "abseil_cpp"}
    upstream.release(digests)


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    ("spoil", "reference", "kind"),
    [
        (missing_tag, "no-such-tag", SourcesError),
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
    before = {upstream.update(): upstream.update().read_bytes()} if existing else {}
    spoil(upstream)
    with pytest.raises(kind) as caught:
        upstream.update()
    assert caught.value.code == reference
    assert {path: path.read_bytes() for path in upstream.pins.glob("*")} == before


def test_interrupted_update_leaves_the_old_pins(upstream: Upstream) -> None:
    """Ctrl-C while archives are fetched changes no pin."""
    before = {upstream.update(): upstream.update().read_bytes()}

    def interrupt(step: str) -> None:
        if "re2" in step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pin_sources("1.22.0", mirrors=upstream.mirrors, announce=interrupt)
    assert {path: path.read_bytes() for path in upstream.pins.glob("*")} == before


def test_pins_folder_that_is_a_file(upstream: Upstream) -> None:
    upstream.pins.write_text("")
    assert refused(StorageError, upstream.update).code == "path-in-the-way"


@pytest.mark.parametrize(("version", "reference"), [("1.22.1", "known-broken-version"), ("nightly", "unknown-version")])
def test_versions_that_are_not_built_are_not_pinned(upstream: Upstream, version: str, reference: str) -> None:
    """Broken and unknown versions are refused before anything is fetched."""
    assert refused(SpecError, pin_version, version, lambda _: None, upstream.mirrors).code == reference
    assert not upstream.pins.exists()
