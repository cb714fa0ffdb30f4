"""What the command line and the lock file come to together."""

from dataclasses import replace
from typing import Any, Final

import pytest

from ortrim.errors import UsageError
from ortrim.github.fetch.lock import Lock, LockedFile, Origin
from ortrim.github.fetch.offers import Selection
from ortrim.github.fetch.run import FetchRequest, completed

LOCK: Final = Lock(
    origin=Origin(
        host="github.com", repository="octo/ort", release="v1", commit=40 * "c", spec="kws", target="android"
    ),
    files=(LockedFile(path="a", size=1, sha256=64 * "a"),),
)
KWS: Final = Selection(spec="kws", target="android")


@pytest.mark.parametrize(
    "wanted",
    [
        FetchRequest(),
        FetchRequest(release="v1"),
        FetchRequest(selection=KWS),
        FetchRequest(release="v1", selection=KWS),
        FetchRequest(offline=True),
    ],
)
def test_a_lock_file_is_followed_by_who_says_nothing_else(wanted: FetchRequest) -> None:
    """Saying the same again does no harm."""
    assert completed(wanted, LOCK) is None


@pytest.mark.parametrize(
    "says",
    [
        {"release": "v2"}, {"run": 5}, {"latest": True}, {"selection": Selection(spec="vad")},
        {"selection": Selection(target="linux-x64")},
    ],
)  # fmt: skip
def test_a_lock_file_is_not_overruled(says: dict[str, Any]) -> None:
    """Both words are shown, and the way to change the lock file."""
    with pytest.raises(UsageError) as caught:
        completed(FetchRequest(**says), LOCK)
    assert (caught.value.code, caught.value.hint) == ("lock-differs", "to change the lock file: --update")
    assert caught.value.why.startswith("given ")


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({}, {"release": "v1", "selection": KWS}),
        ({"release": "v2"}, {"release": "v2", "selection": KWS}),
        ({"run": 5}, {"run": 5, "selection": KWS}),
        ({"latest": True}, {"latest": True, "selection": KWS}),
        (
            {"selection": Selection(target="linux")},
            {"release": "v1", "selection": Selection(spec="kws", target="linux")},
        ),
    ],
)
def test_an_update_keeps_what_it_does_not_change(says: dict[str, Any], expected: dict[str, Any]) -> None:
    """The newest run is taken only when it is asked for."""
    assert completed(FetchRequest(**says, update=True), LOCK) == FetchRequest(**expected, update=True)


@pytest.mark.parametrize(
    ("wanted", "reference"),
    [
        (FetchRequest(), "fetch-which"),
        (FetchRequest(selection=KWS), "fetch-which"),
        (FetchRequest(update=True), "fetch-which"),
        (FetchRequest(release="v1", offline=True), "offline-needs-lock"),
        (FetchRequest(release="v1", run=5), "bad-option"),
        (FetchRequest(run=5, latest=True), "bad-option"),
        (FetchRequest(release="v1\n"), "bad-option"),
        (FetchRequest(run=5, selection=Selection(target="android,\x1b[2J")), "bad-option"),
        (FetchRequest(run=5, selection=Selection(spec="x" * 1000)), "bad-option"),
    ],
)
def test_without_a_lock_file_something_has_to_be_named(wanted: FetchRequest, reference: str) -> None:
    """And only one thing."""
    with pytest.raises(UsageError) as caught:
        completed(wanted, None)
    assert caught.value.code == reference


def test_an_update_needs_the_network() -> None:
    """What is newer cannot be in the cache."""
    with pytest.raises(UsageError) as caught:
        completed(FetchRequest(update=True, offline=True), LOCK)
    assert caught.value.code == "offline-needs-lock"


def test_what_is_named_is_taken_as_it_is() -> None:
    """Nothing is added."""
    wanted = FetchRequest(release="v1", selection=KWS)
    assert completed(wanted, None) == wanted
    assert completed(replace(wanted, update=True), None) == replace(wanted, update=True)
