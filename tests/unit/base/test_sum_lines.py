"""The form of `SHA256SUMS`."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.checksums import (
    LARGEST_SUMS,
    MOST_FILES,
    FileEntry,
    checksums_text,
    first_clash,
    is_plain_path,
    parse_sums,
)

A = 64 * "a"
PATHS = st.lists(st.text(st.characters(codec="ascii"), min_size=1, max_size=9), min_size=1, max_size=3).map("/".join)


def entry(path: str, sha256: str = A) -> FileEntry:
    """Return a file."""
    return FileEntry(path=path, size_bytes=1, sha256=sha256)


def test_lines_are_as_sha256sum_reads_them() -> None:
    """In order of the paths, whatever the order of the files."""
    text = checksums_text([entry("b/c"), entry("a d")])
    assert text == f"{A}  a d\n{A}  b/c\n"
    assert parse_sums(text) == {"a d": A, "b/c": A}


@given(
    st.dictionaries(
        PATHS.filter(lambda path: is_plain_path(path) and path != "SHA256SUMS"),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
        min_size=1,
    )
)
def test_what_is_written_is_read_back(files: dict[str, str]) -> None:
    """Every list of plain paths."""
    assert parse_sums(checksums_text(entry(path, sha256) for path, sha256 in files.items())) == files


@given(st.text())
def test_no_text_is_read_as_more_than_it_says(text: str) -> None:
    """Either it is refused, or each line is in the result and stays in its folder."""
    try:
        found = parse_sums(text)
    except ValueError:
        return
    assert sorted(f"{sha256}  {path}" for path, sha256 in found.items()) == sorted(text.split("\n")[:-1])
    assert all(is_plain_path(path) for path in found)


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
        ("".join(f"{A}  {number}\n" for number in range(MOST_FILES + 1)), "more than 5,000 files"),
        (" " * (LARGEST_SUMS + 1), "larger than 4,194,304"),
    ],
)
def test_what_is_no_list_is_refused(text: str, told: str) -> None:
    """With the line."""
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_sums(text)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "a/..", "/a", "a//b", "a/", "./a", "a\\b", "C:a", "a\nb", "a\x1b[2J", "a\u202eb", "x" * 401, "a*"],
)
def test_paths_that_are_not_plain(path: str) -> None:
    """They climb, mean something else elsewhere, or look like something else."""
    assert not is_plain_path(path)


@pytest.mark.parametrize(
    "path",
    ["NUL", "con.txt", "a/aux", "COM1.tar.gz", "lpt¹", "nul .txt", "conin$", "a.", "a ", "a./b", "b /a", "..."],
)
def test_paths_that_windows_takes_for_others(path: str) -> None:
    """A device, or the name without the dots and spaces at its end: `a.` would be written over `a`.

    https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
    """
    assert not is_plain_path(path)


@pytest.mark.parametrize("path", [".git", ".git/hooks/post-checkout", "a/.GIT/config", "git~1/config"])
def test_paths_that_git_takes_for_its_own(path: str) -> None:
    """Whoever asks git for anything below such a folder runs the programs that its configuration names."""
    assert not is_plain_path(path)


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
    assert first_clash(paths) == paths
    assert first_clash(paths[::-1]) == paths[::-1]


def test_paths_side_by_side() -> None:
    """Files of one folder and of several."""
    assert first_clash(("a/b", "a/c", "b", "a.b", "ab/c")) is None


def test_many_paths_take_no_time_that_grows_with_their_square() -> None:
    """20,000 are looked through at once."""
    started = time.process_time()
    assert first_clash(f"a/{number}" for number in range(20_000)) is None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "path", ["a", "a b/c.d", "ü/models/kws.ort", "..a", "a..b", ".hidden", ".github/a", "com", "nul2", "console.txt"]
)
def test_paths_that_are_plain(path: str) -> None:
    """Everything else."""
    assert is_plain_path(path)
