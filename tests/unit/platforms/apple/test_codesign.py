"""Apple's program that signs, with a stand-in."""

from pathlib import Path

import pytest

from ortrim.errors import ExitCode, PackageError, ToolError
from ortrim.platforms.apple.xcode import find_codesign, sign
from program_files import write_program
from refusing import refused


def stand_in(folder: Path, body: str) -> Path:
    """Return a program that writes down what it is called with, then does what `body` says."""
    return write_program(folder / "codesign", f'echo "$@" >> "{folder}/calls"\n{body}')


def test_it_signs_and_looks_at_what_it_signed(tmp_path: Path) -> None:
    """With a time stamp, which the store wants, and in the words that every version knows."""
    sign(stand_in(tmp_path, "exit 0"), "Apple Distribution: A", tmp_path / "a.xcframework")
    bundle = tmp_path / "a.xcframework"
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"--force --timestamp --sign Apple Distribution: A {bundle}",
        f"--verify --strict {bundle}",
    ]


@pytest.mark.parametrize("body", ['echo "A: no identity found" >&2; exit 1', '[ "$1" = --force ] || exit 3'])
def test_a_refusal_is_told_in_its_own_words(tmp_path: Path, body: str) -> None:
    """Of signing and of checking alike."""
    caught = refused(PackageError, sign, stand_in(tmp_path, body), "A", tmp_path / "a.xcframework")
    assert (caught.code, caught.exit_code) == ("not-signed", ExitCode.PACKAGE)
    assert ("no identity found" in caught.why) == ("identity" in body)
    assert "find-identity" in caught.hint


def test_where_there_is_none_it_is_said(tmp_path: Path) -> None:
    """With the command for a Mac."""
    caught = refused(ToolError, find_codesign, str(tmp_path))
    assert (caught.code, caught.exit_code) == ("codesign-missing", ExitCode.TOOL)
    assert find_codesign(str(stand_in(tmp_path, "").parent)) == tmp_path / "codesign"
