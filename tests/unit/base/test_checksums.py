"""The form of `SHA256SUMS`."""

import re
import time
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base import checksums
from ortrim.errors import DiagnosticGroup, PackageError, StorageError
from refusing import refused

A = 64 * "a"
PATHS = st.lists(st.text(st.characters(codec="ascii"), min_size=1, max_size=9), min_size=1, max_size=3).map("/".join)


def entry(path: str, sha256: str = A) -> checksums.FileEntry:
    return checksums.FileEntry(path=path, size_bytes=1, sha256=sha256)


def test_lines_are_as_sha256sum_reads_them() -> None:
    """In order of the paths, whatever the order of the files."""
    text = checksums.checksums_text([entry("b/c"), entry("a d")])
    assert text == f"{A}  a d\n{A}  b/c\n"
    assert checksums.parse_sums(text) == {"a d": A, "b/c": A}


@given(
    st.dictionaries(
        PATHS.filter(lambda path: checksums.is_plain_path(path) and path != "SHA256SUMS"),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
        min_size=1,
    )
)
def test_what_is_written_is_read_back(files: dict[str, str]) -> None:
    assert (
        checksums.parse_sums(checksums.checksums_text(entry(path, sha256) for path, sha256 in files.items())) == files
    )


@given(st.text())
def test_no_text_is_read_as_more_than_it_says(text: str) -> None:
    """Either it is refused, or each line is in the result and stays in its folder."""
    try:
        found = checksums.parse_sums(text)
    except ValueError:
        return
    assert sorted(f"{sha256}  {path}" for path, sha256 in found.items()) == sorted(text.split("\n")[:-1])
    assert all(checksums.is_plain_path(path) for path in found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no file"),
        (f"{A}  a", "cut short"),
        (f"{A}  a\n{A}  a\n", "line 2"),
        (f"{A} a\n", "line 1"),
        (f"{A.upper()}  a\n", "line 1"),
        (f"{A[1:]}  a\n", "line 1"),
        (f"{A}  a\n\n", "line 2"),
        (f"{A}  ../a\n", "line 1"),
        (f"{A}  /a\n", "line 1"),
        (f"{A}  SHA256SUMS\n", "line 1"),
        ("".join(f"{A}  {number}\n" for number in range(checksums.MOST_FILES + 1)), "more than 5,000 files"),
        (" " * (checksums.LARGEST_SUMS + 1), "larger than 4,194,304"),
    ],
)
def test_what_is_no_list_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        checksums.parse_sums(text)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "a/..", "/a", "a//b", "a/", "./a", "a\\b", "C:a", "a\nb", "a\x1b[2J", "a\u202eb", "x" * 401, "a*"],
)
def test_paths_that_are_not_plain(path: str) -> None:
    """They climb, mean something else elsewhere, or look like something else."""
    assert not checksums.is_plain_path(path)


@pytest.mark.parametrize(
    "path", ["NUL", "con.txt", "a/aux", "COM1.tar.gz", "lpt¹", "nul .txt", "conin$", "a.", "a ", "a./b", "b /a", "..."]
)
def test_paths_that_windows_takes_for_others(path: str) -> None:
    """A device, or the name without the dots and spaces at its end: `a.` would be written over `a`.

    https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
    """
    assert not checksums.is_plain_path(path)


@pytest.mark.parametrize("path", [".git", ".git/hooks/post-checkout", "a/.GIT/config", "git~1/config"])
def test_paths_that_git_takes_for_its_own(path: str) -> None:
    """Whoever asks git for anything below such a folder runs the programs that its configuration names."""
    assert not checksums.is_plain_path(path)


@pytest.mark.parametrize(
    "paths",
    [
        ("a", "A"),
        ("a", "a"),
        ("a", "a/b"),
        ("a/b/c", "A/B"),
        ("Models/a", "models/b"),
        ("\u00e9.ort", "e\u0301.ort"),
        ("stra\u00dfe", "STRASSE"),
        ("\u00c9/a", "e\u0301/b"),
    ],
)
def test_paths_that_not_every_file_system_can_hold(paths: tuple[str, str]) -> None:
    """Twins in capitals or in the way that Unicode spells accents, also of folders; a file that is a folder, too."""
    assert checksums.first_clash(paths) == paths
    assert checksums.first_clash(paths[::-1]) == paths[::-1]


def test_paths_side_by_side() -> None:
    assert checksums.first_clash(("a/b", "a/c", "b", "a.b", "ab/c")) is None


def test_many_paths_take_no_time_that_grows_with_their_square() -> None:
    """20,000 are looked through at once."""
    started = time.process_time()
    assert checksums.first_clash(f"a/{number}" for number in range(20_000)) is None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "path", ["a", "a b/c.d", "ü/models/kws.ort", "..a", "a..b", ".hidden", ".github/a", "com", "nul2", "console.txt"]
)
def test_paths_that_are_plain(path: str) -> None:
    assert checksums.is_plain_path(path)


def listing(folder: Path, **contents: bytes) -> dict[str, str]:
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    digests = {name: sha256(content).hexdigest() for name, content in contents.items()}
    entries = [checksums.FileEntry(path=name, size_bytes=1, sha256=digest) for name, digest in digests.items()]
    (folder / checksums.SUMS).write_text(checksums.checksums_text(entries))
    return digests


def test_what_is_right_is_returned(tmp_path: Path) -> None:
    assert listing(tmp_path / "a", b=b"1", c=b"2") == checksums.check_listed(tmp_path / "a", "delivery", "x")


def test_differences_are_reported_in_the_words_that_were_given(tmp_path: Path) -> None:
    """The folder may be one of ours that nobody knows: it is called what it holds."""
    listing(tmp_path / "a", b=b"1", c=b"2")
    (tmp_path / "a" / "b").unlink()
    (tmp_path / "a" / "c").write_bytes(b"3")
    (tmp_path / "a" / "d").symlink_to("e")
    caught = refused(DiagnosticGroup, checksums.check_listed, tmp_path / "a", "delivery", "delivered-x")
    found = [(each.code, each.where, each.what) for each in caught.diagnostics]
    damaged = "the delivery is damaged"
    assert found == [
        ("file-missing", "delivered-x/b", damaged),
        ("digest-mismatch", "delivered-x/c", damaged),
        ("unlisted-file", "delivered-x/d", damaged),
    ]
    assert str(tmp_path) not in str(caught)


def test_sums_that_are_missing_or_cut_short_are_reported(tmp_path: Path) -> None:
    """Neither is taken for a folder without files."""
    listing(tmp_path / "a", b=b"1")
    (tmp_path / "a" / checksums.SUMS).write_bytes((tmp_path / "a" / checksums.SUMS).read_bytes()[:-1])
    for reference in ("checksums-damaged", "checksums-missing"):
        assert refused(PackageError, checksums.check_listed, tmp_path / "a", "package", "x").code == reference
        (tmp_path / "a" / checksums.SUMS).unlink(missing_ok=True)


def test_a_list_without_end_is_not_read(tmp_path: Path) -> None:
    """A hole of a terabyte takes no room on the disk, and none in memory."""
    with (tmp_path / checksums.SUMS).open("wb") as file:
        file.truncate(1 << 40)
    assert refused(PackageError, checksums.check_listed, tmp_path, "package", "shown").code == "checksums-damaged"


def test_the_first_differences_are_reported(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / str(number)).touch()
    (tmp_path / checksums.SUMS).write_text(f"{64 * 'a'}  absent\n")
    caught = refused(DiagnosticGroup, checksums.check_listed, tmp_path, "package", "shown")
    assert len(caught.diagnostics) == 50


def test_a_folder_that_cannot_be_read_is_a_matter_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a" / checksums.SUMS).mkdir(parents=True)
    refused(StorageError, checksums.check_listed, tmp_path / "a", "package", "x")
