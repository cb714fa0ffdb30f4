"""Static libraries: what is in them, and files that are none."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.binaries.objects import archive_members
from ortrim.errors import BinaryError, ExitCode


def member(name: str, content: bytes) -> bytes:
    """Return one member as `ar` writes it."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


ARCHIVE = (
    b"!<arch>\n" + member("/", bytes(8)) + member("//", b"x/\n") + member("a.o/", b"odd") + member("b.o/", b"even")
)


def written(folder: Path, data: bytes) -> Path:
    """Write a file."""
    path = folder / "lib.a"
    path.write_bytes(data)
    return path


def test_members_are_files_not_indices(tmp_path: Path) -> None:
    """The tables of symbols and of long names are the archive's own; odd sizes are padded."""
    assert archive_members(written(tmp_path, ARCHIVE)) == (("a.o", b"odd"), ("b.o", b"even"))


def test_an_empty_archive_has_no_member(tmp_path: Path) -> None:
    """It is an archive all the same."""
    assert archive_members(written(tmp_path, b"!<arch>\n")) == ()


@pytest.mark.parametrize(
    "data",
    [b"", b"!<thin>\n", b"\x7fELF" + bytes(100), ARCHIVE[:40], ARCHIVE[:-2], ARCHIVE.replace(b"`\n", b"''", 1)],
    ids=["empty", "thin", "elf", "cut in a header", "cut in a member", "bad header"],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    """What is no archive, or no whole one, is named with its reason."""
    path = written(tmp_path, data)
    with pytest.raises(BinaryError) as caught:
        archive_members(path)
    assert (caught.value.code, caught.value.exit_code) == ("not-an-archive", ExitCode.BINARY)
    assert caught.value.where == str(path)


def test_a_missing_archive_is_a_diagnostic(tmp_path: Path) -> None:
    """As for every library."""
    with pytest.raises(BinaryError) as caught:
        archive_members(tmp_path / "none.a")
    assert caught.value.code == "library-missing"


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_members_or_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever follows the magic."""
    path = tmp_path_factory.mktemp("archive") / "lib.a"
    path.write_bytes(b"!<arch>\n" + data)
    reference = "not-an-archive"
    try:
        assert sum(len(content) for _, content in archive_members(path)) <= len(data)
    except BinaryError as error:
        reference = error.code
    assert reference == "not-an-archive"
