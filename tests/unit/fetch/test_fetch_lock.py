"""`ortrim.lock`: written, read back, and refused when it is anything else."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.checksums import SUMS, is_plain_path
from ortrim.errors import StorageError
from ortrim.github.fetch.lock import (
    Lock,
    LockedArtifact,
    LockedFile,
    Origin,
    lock_text,
    parse_lock,
    read_lock,
    write_lock,
)

A: Final = 64 * "a"
COMMIT: Final = 40 * "c"
LOCK: Final = Lock(
    origin=Origin(host="github.com", repository="octo/ort", release="v1", commit=COMMIT, spec="kws", target="android"),
    files=(LockedFile(path="ort.aar", size=3, sha256=A, signer="https://github.com/octo/ort/x.yml@refs/tags/v1"),),
)
RUN: Final = Lock(
    origin=Origin(host="github.com", repository="octo/ort", run=5000, commit=COMMIT),
    output="third_party/ort",
    artifacts=(LockedArtifact(name="delivered-kws-android", sha256=A),),
    files=(LockedFile(path="a/b", size=0, sha256=A), LockedFile(path="c", size=2**53, sha256=A)),
)
WORDS: Final = st.text(st.characters(exclude_categories=["C"]), max_size=40)
DIGESTS: Final = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
PATHS: Final = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20).filter(
    lambda text: is_plain_path(text) and "/" not in text and text != SUMS
)
FILES: Final = st.lists(
    st.builds(LockedFile, path=PATHS, size=st.integers(0, 2**53), sha256=DIGESTS, signer=WORDS),
    min_size=1,
    max_size=5,
    unique_by=lambda file: file.path.lower(),
).map(tuple)
ORIGINS: Final = st.builds(
    Origin,
    host=st.sampled_from(["github.com", "ghe.example:8443"]),
    repository=st.sampled_from(["octo/ort", "a/b.c_d"]),
    release=WORDS.filter(bool),
    commit=st.sampled_from([COMMIT, A]),
    spec=WORDS,
    target=WORDS,
)


@given(st.builds(Lock, origin=ORIGINS, output=PATHS, files=FILES))
def test_what_is_written_is_read_back(lock: Lock) -> None:
    """Whatever characters names have."""
    assert parse_lock(lock_text(lock).encode()) == lock


def test_a_run_is_read_back() -> None:
    """With its archives."""
    assert parse_lock(lock_text(RUN).encode()) == RUN


def read(content: bytes) -> Lock | str:
    """Return a lock, or why it is refused."""
    try:
        return parse_lock(content)
    except StorageError as error:
        return error.code


@given(st.binary())
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    """With a diagnostic."""
    assert read(content) == "lock-damaged"


@given(st.data())
def test_a_lock_file_with_a_changed_character_is_another_or_none(data: st.DataObject) -> None:
    """Nothing in between, and never an exception of another kind."""
    text = lock_text(RUN)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters()) + text[place + 1 :]
    outcome = read(changed.encode("utf-8", "surrogatepass"))
    assert outcome == "lock-damaged" or (isinstance(outcome, Lock) and read(lock_text(outcome).encode()) == outcome)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('schema = "ortrim-lock/1"', 'schema = "ortrim-lock/2"'),
        ('schema = "ortrim-lock/1"\n', ""),
        ("ortrim-runtime", "../ortrim-runtime"),
        ("ortrim-runtime", "/ortrim-runtime"),
        ('release = "v1"\n', ""),
        ('release = "v1"\n', 'release = "v1"\nrun = 3\n'),
        ("octo/ort", "octo/.."),
        ("octo/ort", "octo/ort/more"),
        ('"github.com"', '"https://github.com"'),
        ('"github.com"', '"github.com/evil"'),
        (COMMIT, COMMIT[1:]),
        (COMMIT, COMMIT + "\\n"),
        ("ort.aar", "../ort.aar"),
        ("ort.aar", SUMS),
        ("ort.aar", "a\\u001b[2J"),
        ("size = 3", "size = -1"),
        ("size = 3", 'size = "3"'),
        ("size = 3", "size = 3.0"),
        ("size = 3", "size = true"),
        ("size = 3", "size = 1979-05-27"),
        ("size = 3", "size = nan"),
        ("size = 3\n", "size = 3\nmode = 7\n"),
        (A, A.upper()),
        ("[[file]]", "[[files]]"),
        ("[origin]", "[[origin]]"),
    ],
)
def test_what_ortrim_would_not_write_is_refused(before: str, after: str) -> None:
    """Unknown keys and schemas, wrong types, paths that climb, contradictions."""
    text = lock_text(LOCK)
    assert before in text
    with pytest.raises(StorageError) as caught:
        parse_lock(text.replace(before, after, 1).encode(), "app/ortrim.lock")
    assert (caught.value.code, caught.value.where) == ("lock-damaged", "app/ortrim.lock")
    assert caught.value.why


@pytest.mark.parametrize("paths", [("a", "A"), ("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_files_that_cannot_lie_side_by_side_are_refused(paths: tuple[str, ...]) -> None:
    """On every system."""
    files = tuple(LockedFile(path=path, size=1, sha256=A) for path in paths)
    with pytest.raises(StorageError):
        parse_lock(lock_text(replace(LOCK, files=files)).encode())


def test_a_lock_file_without_end_is_not_read(tmp_path: Path) -> None:
    """A device or a mistake."""
    (tmp_path / "ortrim.lock").write_bytes(lock_text(LOCK).encode() + b"#" * (4 << 20))
    with pytest.raises(StorageError) as caught:
        read_lock(tmp_path / "ortrim.lock")
    assert caught.value.code == "lock-damaged"


def test_a_lock_file_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    """More files than any release has."""
    files = tuple(LockedFile(path=f"{number:0400}", size=1, sha256=A) for number in range(12_000))
    with pytest.raises(StorageError) as caught:
        write_lock(tmp_path / "ortrim.lock", replace(LOCK, files=files))
    assert caught.value.code == "lock-too-large"
    assert list(tmp_path.iterdir()) == []


def test_no_lock_file_is_none(tmp_path: Path) -> None:
    """And a folder of its name is not taken for one."""
    assert read_lock(tmp_path / "ortrim.lock") is None
    write_lock(tmp_path / "ortrim.lock", LOCK)
    assert read_lock(tmp_path / "ortrim.lock") == LOCK
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError) as caught:
        read_lock(tmp_path / "folder")
    assert caught.value.code == "path-in-the-way"


@pytest.mark.parametrize("value", [5, None, "x\x00y"])
def test_words_are_checked_when_they_are_made(value: Any) -> None:
    """So that nothing can be written that could not be read."""
    with pytest.raises(ValueError, match="release"):
        Origin(host="github.com", repository="octo/ort", release=value, commit=COMMIT)
