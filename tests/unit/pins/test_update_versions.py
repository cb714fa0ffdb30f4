"""Entries of new versions, and what upstream's archive says of them."""

import tomllib
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import NetworkError
from ortrim.pins.shipped import pin_text
from ortrim.pins.update import NDK_TEMPLATE, VERSIONS_FILE, ndk_of, release_number, with_version

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
    return with_version(SHIPPED, version, max_opset=26, max_ir_version=13, ndk=ndk)


@pytest.mark.parametrize("version", ["1.24.1", "1.22.3", "1.9.9", "10.0.0"])
def test_an_entry_takes_its_place(version: str) -> None:
    """Versions stay in their order, and all else stays as it was, comments too."""
    before, after = tomllib.loads(SHIPPED), tomllib.loads(added(version, "28.0.13004108"))
    entry = {"max_opset": 26, "max_ir_version": 13, "ndk": "28.0.13004108"}
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


def archive(folder: Path, text: str, name: str = NDK_TEMPLATE) -> Path:
    """Return an archive as GitHub makes it."""
    path = folder / "onnxruntime.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"onnxruntime-1.24.1/{name}", text)
    return path


def test_the_ndk_is_upstreams_own(tmp_path: Path) -> None:
    """By the default of its template."""
    assert ndk_of(archive(tmp_path, TEMPLATE)) == "26.1.10909125"


@pytest.mark.parametrize("text", ["", 'default: "1.2.3"\n', TEMPLATE.replace("26.1.10909125", "latest"), "\xff" * 99])
def test_a_template_that_says_nothing_gives_none(tmp_path: Path, text: str) -> None:
    """Nothing is guessed; so for one of another name, and one that is far too long."""
    assert ndk_of(archive(tmp_path, text)) is None
    assert ndk_of(archive(tmp_path, TEMPLATE, "other.yml")) is None
    assert ndk_of(archive(tmp_path, TEMPLATE + "#" * (1 << 17))) is None


def test_what_is_no_archive_is_reported(tmp_path: Path) -> None:
    """A login page, say."""
    (tmp_path / "x.zip").write_text("<html>")
    with pytest.raises(NetworkError) as caught:
        ndk_of(tmp_path / "x.zip")
    assert caught.value.code == "corrupt-download"
