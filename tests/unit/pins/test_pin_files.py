import re
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.errors import ExitCode, SourcesError
from ortrim.pins.runtime import SourceSet, licence_ids, read_commit_pin, read_source_set
from ortrim.pins.shipped import pin_text

SHIPPED: Final = pin_text("onnxruntime-1.21.0-debian.toml") or ""
COMMIT: Final = pin_text("onnxruntime-1.21.0-upstream.toml") or ""


def read(text: str) -> SourceSet:
    """Read a text as the pin file of a set of archives."""
    return read_source_set(text, "file.toml", licence_ids())


def refused(text: str, reference: str) -> SourcesError:
    """Read a text that must be refused."""
    with pytest.raises(SourcesError) as caught:
        read(text)
    assert caught.value.code == reference
    assert caught.value.exit_code == ExitCode.SOURCES
    return caught.value


def test_shipped_file_is_read() -> None:
    """Each origin comes through with what is taken of its archive."""
    pins = {pin.name: pin for pin in read(SHIPPED).components}
    assert (pins["onnxruntime"].origin, pins["onnxruntime"].strip) == ("debian-source", 1)
    assert (pins["safeint"].origin, pins["safeint"].location) == ("debian-binary", "libsafeint-dev")
    assert (pins["eigen"].origin, pins["eigen"].location) == ("wheel", "cmeel-eigen==3.4.1")
    assert pins["eigen"].take == (("cmeel.prefix/include/eigen3", "include"),)
    assert pins["mp11"].licence == "BSL-1.0"


def test_entry_without_a_digest_is_refused() -> None:
    """An entry that says where a source is but not what it must be does not load."""
    text = re.sub(r'(name = "x"|\[components\.re2\][^\[]*?)sha256 = "[0-9a-f]+"\n', r"\1", SHIPPED)
    assert text != SHIPPED
    assert "components.re2" in refused(text, "pin-without-digest").where


def test_a_version_without_a_commit_is_refused() -> None:
    """All else in the file follows from it."""
    with pytest.raises(SourcesError) as caught:
        read_commit_pin(COMMIT.replace("commit = ", "# commit = ", 1), "upstream.toml")
    assert caught.value.code == "pin-without-digest"
    pin = read_commit_pin(COMMIT, "upstream.toml")
    assert pin.commit == "e0b66cad282043d4377cea5269083f17771b6dfc"
    assert pin.left_out["onnxruntime/test"].startswith("tree ")
    assert len(pin.witnesses) > 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('debian_source = "re2"\n', ""),
        ('debian_source = "re2"\n', 'debian_source = "re2"\nurl = "https://example.org/x"\n'),
        ('debian_source = "re2"\n', 'url = "file:///etc/passwd"\n'),
        ('debian_source = "re2"\n', 'debian_source = "--option"\n'),
        ('wheel = "cmeel-eigen==3.4.1"', 'wheel = "cmeel-eigen"'),
        ('file = "re2_', 'file = "../re2_'),
        ('file = "re2_', 'file = "-re2_'),
        ('sha256 = "eb2d', 'sha256 = "EB2D'),
        ('sha256 = "eb2d', 'sha256 = "eb2'),
        ('suite = "trixie"', ""),
        ('suite = "trixie"', 'sweet = "trixie"'),
        ("[components.re2]", "[components.re3]"),
        ("strip = 1", 'strip = "one"'),
        ("strip = 1", "strip = -1"),
        ('interface = "Eigen3::Eigen"', 'interface = "Eigen3)\\nexecute_process("'),
    ],
)
def test_wrong_entries_are_refused(old: str, new: str) -> None:
    """Anything that is not exactly a pin is refused, with the file and the place."""
    assert old in SHIPPED
    assert refused(SHIPPED.replace(old, new), "bad-pin-file").where == "file.toml"


@pytest.mark.parametrize("text", ["", "suite = ", "components = 3", "[components]\nre2 = 1", "[[components]]\na = 1"])
def test_other_toml_is_refused(text: str) -> None:
    """Files of another shape are refused without a traceback."""
    refused(text, "bad-pin-file")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('commit = "e0b66', 'commit = "0b66'),
        ('tree = "', 'tree = "--'),
        ('"csharp" =', '"../csharp" ='),
        ('"csharp" =', '"-csharp" ='),
        ('"csharp" = "tree', '"csharp" = "blob'),
        ("[archives]", "[archive]"),
    ],
)
def test_wrong_commit_pins_are_refused(old: str, new: str) -> None:
    """An abbreviated commit, what git would take for an option, and paths that lead out are refused."""
    assert old in COMMIT
    with pytest.raises(SourcesError) as caught:
        read_commit_pin(COMMIT.replace(old, new, 1), "upstream.toml")
    assert caught.value.code == "bad-pin-file"


@given(st.text(alphabet='[]{}="#.,\n abcu123'))
def test_any_text_ends_in_a_diagnostic(text: str) -> None:
    """No text makes the readers fail with anything but a diagnostic."""
    for reader in (read, lambda each: read_commit_pin(each, "upstream.toml")):
        with suppress(SourcesError):
            reader(text)
