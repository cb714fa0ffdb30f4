"""Entries of new versions, and what upstream's files say of them."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.pin_updates.update import commit_text, ndk_of, release_number, with_version
from ortrim.pins.runtime import VERSIONS_FILE, CommitPin, VersionLimits, read_commit_pin
from ortrim.pins.shipped import pin_text

SHIPPED = pin_text(VERSIONS_FILE) or ""
TEMPLATE = """\
  parameters:
  - name: AndroidNdkVersion
    type: string
    default: "26.1.10909125"  # LTS version

  steps:
  - bash: |
"""


def added(version: str, ndk: str | None = None) -> str:
    """Return the shipped file with another version."""
    return with_version(SHIPPED, version, VersionLimits(opset=26, ml_opset=5, ir_version=13), ndk)


@pytest.mark.parametrize("version", ["1.24.1", "1.22.3", "1.9.9", "10.0.0"])
def test_an_entry_takes_its_place(version: str) -> None:
    """Versions stay in their order, and all else stays as it was, comments too."""
    before, after = tomllib.loads(SHIPPED), tomllib.loads(added(version, "28.0.13004108"))
    entry = {"max_opset": 26, "max_ml_opset": 5, "max_ir_version": 13, "ndk": "28.0.13004108"}
    assert after["versions"].pop(version) == entry
    assert after == before
    names = list(tomllib.loads(added(version))["versions"])
    assert names == sorted(names, key=lambda name: release_number(name) or ())
    kept = [line for line in added(version).splitlines() if line.startswith("#")]
    assert kept == [line for line in SHIPPED.splitlines() if line.startswith("#")]


def test_an_ndk_that_is_not_known_is_left_out() -> None:
    """As in the entries that are there."""
    assert "ndk" not in tomllib.loads(added("1.24.1"))["versions"]["1.24.1"]


@pytest.mark.parametrize("text", ["1.22", "1.22.0-rc1", "v1.22.0", "1.22.0.1", "", "1.2.x", "1.22.0\n", "99999.0.0"])
def test_what_is_no_release_has_no_number(text: str) -> None:
    """Candidates and floating tags among them."""
    assert release_number(text) is None


@given(st.text())
def test_any_text_has_a_number_or_none(text: str) -> None:
    """No tag of upstream's can do harm."""
    number = release_number(text)
    assert number is None or len(number) == 3


def test_the_ndk_is_upstreams_own() -> None:
    """By the default of its template."""
    assert ndk_of(TEMPLATE) == "26.1.10909125"


@pytest.mark.parametrize("text", ["", 'default: "1.2.3"\n', TEMPLATE.replace("26.1.10909125", "latest"), "\xff" * 99])
def test_a_template_that_says_nothing_gives_none(text: str) -> None:
    """Nothing is guessed."""
    assert ndk_of(text) is None


def test_what_is_written_of_a_commit_reads_back() -> None:
    """Whole, and with nothing but the commit."""
    whole = CommitPin(
        commit="a" * 40, tree="b" * 40, witnesses=("one", "two"), left_out={"docs": f"tree {'c' * 40}"},
        archives={"d" * 40: "e" * 64},
    )  # fmt: skip
    for pin in (whole, CommitPin(commit="a" * 40)):
        assert read_commit_pin(commit_text("1.24.1", pin), "upstream.toml") == pin
