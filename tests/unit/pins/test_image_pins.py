"""The pins of images: what is not pinned is refused, with the reason."""

from pathlib import Path

import pytest

from ortrim.errors import ExitCode, SourcesError
from ortrim.pins.runtime import versions_file
from ortrim.pins.shipped import BasePin, image_pins, read_image_pins

DIGEST = f"sha256:{'a' * 64}"
WHOLE = f"""
[bases.python]
reference = "python:3.13-slim"
digest = "{DIGEST}"
[archives."ndk;27.2.12479018"]
file = "android-ndk-r27c-linux.zip"
sha256 = "{"b" * 64}"
"""


def test_whole_pins_are_read() -> None:
    """A base is taken by its digest alone, an archive by its own."""
    pins = read_image_pins(WHOLE)
    assert pins.base("python").pinned == f"python@{DIGEST}"
    assert pins.archive("ndk;27.2.12479018") == ("android-ndk-r27c-linux.zip", "b" * 64)


def test_a_registry_with_a_port_is_no_tag() -> None:
    """The tag is what follows the last colon."""
    pin = BasePin(reference="registry.example.com:5000/company/python:3.13", digest=DIGEST)
    assert pin.pinned == f"registry.example.com:5000/company/python@{DIGEST}"


def test_the_pins_that_travel_with_ortrim_name_what_they_lack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No digest is invented: Linux has packages in place of one, Android is refused; all NDKs are named."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    pins = image_pins()
    assert pins.base("python").packages
    ndks = {entry["ndk"] for entry in versions_file()["versions"].values() if "ndk" in entry}
    assert {f"ndk;{version}" for version in ndks} <= set(pins.archives)
    with pytest.raises(SourcesError):
        pins.base("jdk")


@pytest.mark.parametrize("name", ["jdk", "python", "nobody"])
def test_a_base_without_digest_is_refused(name: str) -> None:
    """The entry, its human name and the command that fills it in are reported."""
    with pytest.raises(SourcesError) as caught:
        read_image_pins('[bases.jdk]\nreference = "jdk:17"\n').base(name)
    assert (caught.value.code, caught.value.exit_code) == ("image-not-pinned", ExitCode.SOURCES)
    assert f"bases.{name}" in caught.value.where
    assert "invoke pins.update --images" in caught.value.hint


@pytest.mark.parametrize("text", ['[archives."ndk;1.2.3"]\n', "", '[archives."ndk;1.2.3"]\nfile = "ndk.zip"\n'])
def test_an_archive_without_digest_is_refused(text: str) -> None:
    """Also one of which half is known, or none at all."""
    with pytest.raises(SourcesError) as caught:
        read_image_pins(text).archive("ndk;1.2.3")
    assert caught.value.code == "image-not-pinned"
    assert "ndk;1.2.3" in caught.value.where


@pytest.mark.parametrize(
    "text",
    [
        "[bases", "[bases]\npython = 1", "[bases.python]", '[bases.python]\nreference = "python"',
        '[bases.python]\nreference = "python:3\\nRUN evil"', '[bases.python]\nreference = "-f:x"',
        f'[bases.python]\nreference = "python:3"\ndigest = "{"a" * 64}"',
        f'[bases.python]\nreference = "python:3"\ndigest = "sha256:{"A" * 64}"',
        f'[bases.python]\nreference = "python:3"\ndigest = "{DIGEST}\\n"',
        '[bases.python]\nreference = "python:3"\nsuite = "trixie"\npackages = ["--option"]',
        '[bases.python]\nreference = "python:3"\nsuite = "trixie; rm"', '[archives."ndk;../x"]', '[archives."ndk"]',
        '[archives."ndk;1.2.3"]\nfile = "../ndk.zip"', '[archives."ndk;1.2.3"]\nsha256 = "b"', "[other]", "x = 1",
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(text: str) -> None:
    """Nothing of it reaches a Dockerfile or a command line."""
    with pytest.raises(SourcesError) as caught:
        read_image_pins(text)
    assert (caught.value.code, caught.value.where) == ("bad-pin-file", "images.toml")
    assert caught.value.why
