"""New versions of ONNX Runtime: releases from the stand-in of GitHub, sources from a likeness of upstream."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from github_checks import OCTO, Remote, refused, running_remote
from github_service import answer, message
from github_state import Release
from ortrim.base.console import Console
from ortrim.errors import NetworkError, SourcesError, StorageError
from ortrim.models.full_runtime import full_runtime, runtime_entry
from ortrim.pin_updates import new_versions
from ortrim.pin_updates.new_versions import model_limits, pin_new_versions, released_versions, wanted_versions
from ortrim.pin_updates.update import converter_text
from ortrim.pins.runtime import limits_of, newest_pinned, pin_file_name, runtime_pins, supported_versions
from ortrim.sources.commits import git
from upstream_likeness import NDK, Upstream, running_upstream

FIRST, NEW = "1.98.0", "1.99.0"
REQUIREMENTS = f"onnxruntime=={NEW} \\\n    --hash=sha256:{'0' * 64}\n"


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """Run the stand-in, with a repository of its own in the place of upstream's."""
    monkeypatch.setattr(new_versions, "UPSTREAM", OCTO)
    with running_remote(monkeypatch) as running:
        yield running


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serve a likeness of upstream that has released two more versions; their wheel is that of the installed one."""
    with running_upstream(tmp_path, monkeypatch) as running:
        running.release(running.digests, FIRST)
        running.release(running.digests, NEW)
        monkeypatch.setattr(new_versions, "converter_text", lambda version, _: REQUIREMENTS.replace(NEW, version))
        monkeypatch.setattr(new_versions, "full_runtime", lambda *_: full_runtime("1.21.0", None))
        yield running


def released(remote: Remote, *tags: str, draft: bool = False, prerelease: bool = False) -> None:
    first = len(remote.service.releases) + 1
    remote.service.releases += [
        Release(id=number, tag=tag, files={}, draft=draft, prerelease=prerelease)
        for number, tag in enumerate(tags, start=first)
    ]


def test_releases_are_listed_by_number(remote: Remote) -> None:
    """Over all pages; drafts, pre-releases and tags of another form are none."""
    released(remote, "v1.9.0", "v1.22.1", "v1.22.0", "v1.10.0", "nightly", "v1.23", "rel-1.2.3", "v1.2.3-rc1")
    released(remote, "v2.0.0", draft=True)
    released(remote, "v3.0.0", prerelease=True)
    released(remote, *(f"v0.0.{number}" for number in range(150)))
    found = released_versions(remote.client)
    assert found[-4:] == ("1.9.0", "1.10.0", "1.22.0", "1.22.1")
    assert len(found) == 4 + 150
    assert [line for line in remote.service.lines() if not line.endswith(" 200")] == []


@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        (message(404, "Not Found"), "github-not-found"),
        (message(403, "Must have admin rights"), "github-refused"),
        (answer({"message": "no list"}), "github-unexpected-answer"),
        (answer([{"id": 1, "tag_name": 7, "html_url": ""}]), "github-unexpected-answer"),
    ],
)
def test_a_list_that_cannot_be_had_is_reported(remote: Remote, reply: Any, reference: str) -> None:
    """Nothing is taken for "no new version"."""
    remote.service.fault("GET /repos", reply)
    refused(reference, NetworkError, released_versions, remote.client)


@pytest.mark.needs("git")
def test_new_versions_are_pinned_whole(upstream: Upstream) -> None:
    """With converter, limits and NDK; what is older than the newest pinned one, and what is broken, is left alone."""
    last = newest_pinned()
    update = pin_new_versions(("1.20.0", "1.22.1", FIRST, NEW), Console(), mirrors=upstream.mirrors)
    assert (update.last, update.pinned, update.refused) == (last, (FIRST, NEW), ())
    pins = runtime_pins(NEW)
    assert (limits_of(NEW), pins.ndk) == (limits_of("1.21.0"), NDK)
    assert pins.converter_requirements == REQUIREMENTS
    assert supported_versions()[-1] == newest_pinned() == NEW
    assert pins.commit is not None
    assert pins.commit.commit == upstream.commit
    assert wanted_versions((FIRST, NEW), last) == ()


@pytest.mark.needs("git")
def test_the_newest_version_gets_what_its_pin_lacks(upstream: Upstream) -> None:
    """One that was pinned by its commit alone gets the ids of its files; it is not new for that."""
    last = newest_pinned()
    upstream.pins.mkdir()
    (upstream.pins / pin_file_name(last, "upstream")).write_text(f'commit = "{"a" * 40}"\n')
    upstream.release(upstream.digests, last)
    update = pin_new_versions((last,), Console(), mirrors=upstream.mirrors)
    assert (update.last, update.pinned, update.refused) == (last, (), ())
    pin = runtime_pins(last).commit
    assert pin is not None
    assert (pin.commit, bool(pin.tree)) == (upstream.commit, True)


def no_tag(upstream: Upstream, _: pytest.MonkeyPatch) -> None:
    git(upstream.repository, "tag", "--delete", f"v{NEW}")


def no_converter(_: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:

    def absent(version: str, *_: object) -> str:
        if version != NEW:
            return REQUIREMENTS.replace(NEW, version)
        raise SourcesError("no-converter", "there is no wheel", why="one\ntwo")

    monkeypatch.setattr(new_versions, "converter_text", absent)


@pytest.mark.needs("git")
@pytest.mark.parametrize(("spoil", "reference"), [(no_tag, "no-such-tag"), (no_converter, "no-converter")])
def test_a_version_that_cannot_be_pinned_stops_no_other(
    upstream: Upstream,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Upstream, pytest.MonkeyPatch], None],
    reference: str,
) -> None:
    """The record says why; nothing of it is written."""
    spoil(upstream, monkeypatch)
    update = pin_new_versions((FIRST, NEW), Console(), mirrors=upstream.mirrors)
    assert update.pinned == (FIRST,)
    (refusal,) = update.refused
    assert (refusal.version, refusal.reference) == (NEW, reference)
    assert NEW not in supported_versions()
    assert [path.name for path in upstream.pins.rglob("*") if NEW in path.name] == []


@pytest.mark.needs("git")
def test_an_interrupted_version_is_not_known(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry is written last; those before it stay, and the next run goes on."""

    def interrupt(version: str, *_: object) -> str:
        if version != NEW:
            return REQUIREMENTS.replace(NEW, version)
        raise KeyboardInterrupt

    monkeypatch.setattr(new_versions, "converter_text", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pin_new_versions((FIRST, NEW), Console(), mirrors=upstream.mirrors)
    assert NEW not in supported_versions()
    assert wanted_versions((FIRST, NEW), "1.21.0") == (NEW,)


@pytest.mark.needs("git")
def test_pins_that_cannot_be_written_are_reported(upstream: Upstream) -> None:
    """That is no fault of a version: it stops the update."""
    upstream.pins.write_text("")
    with pytest.raises(StorageError) as caught:
        pin_new_versions((NEW,), Console(), mirrors=upstream.mirrors)
    assert caught.value.code == "path-in-the-way"


def test_limits_are_found_by_trying() -> None:
    """They are those that were written down when the version was added by hand."""
    assert model_limits(full_runtime("1.21.0", None)) == limits_of("1.21.0")


@pytest.mark.slow
@pytest.mark.network
def test_limits_of_another_version() -> None:
    """Its wheel comes from the package index, by its digest."""
    pins = runtime_pins("1.23.2")
    assert model_limits(full_runtime(pins.version, pins.converter_requirements)) == limits_of("1.23.2")


@pytest.mark.slow
@pytest.mark.network
def test_the_index_gives_the_digests_that_were_pinned_by_hand() -> None:
    """Of every wheel for the machines and Pythons that ortrim runs on, and of no other version."""
    pinned = runtime_pins("1.23.2").converter_requirements or ""
    found = converter_text("1.23.2", lambda _: None)
    ours, theirs = (set(re.findall("[0-9a-f]{64}", runtime_entry(text, "1.23.2"))) for text in (found, pinned))
    assert len(ours) == 3 * 3
    assert ours <= theirs
