"""A folder compared with its `SHA256SUMS`: the words; what is found out is tested with packages and deliveries."""

from hashlib import sha256
from pathlib import Path

import pytest

from ortrim.base.checksums import SUMS, FileEntry, check_listed, checksums_text
from ortrim.errors import DiagnosticGroup, ExitCode, PackageError, StorageError


def listing(folder: Path, **contents: bytes) -> dict[str, str]:
    """Write files and their sums, and return these."""
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    digests = {name: sha256(content).hexdigest() for name, content in contents.items()}
    entries = [FileEntry(path=name, size_bytes=1, sha256=digest) for name, digest in digests.items()]
    (folder / SUMS).write_text(checksums_text(entries))
    return digests


def test_what_is_right_is_returned(tmp_path: Path) -> None:
    """Path by path."""
    assert listing(tmp_path / "a", b=b"1", c=b"2") == check_listed(tmp_path / "a", "delivery", "x")


def test_differences_are_reported_in_the_words_that_were_given(tmp_path: Path) -> None:
    """The folder may be one of ours that nobody knows: it is called what it holds."""
    listing(tmp_path / "a", b=b"1", c=b"2")
    (tmp_path / "a" / "b").unlink()
    (tmp_path / "a" / "c").write_bytes(b"3")
    (tmp_path / "a" / "d").symlink_to("e")
    with pytest.raises(DiagnosticGroup) as caught:
        check_listed(tmp_path / "a", "delivery", "delivered-x")
    found = [(each.code, each.where, each.what) for each in caught.value.diagnostics]
    damaged = "the delivery is damaged"
    assert found == [
        ("file-missing", "delivered-x/b", damaged),
        ("digest-mismatch", "delivered-x/c", damaged),
        ("unlisted-file", "delivered-x/d", damaged),
    ]
    assert str(tmp_path) not in str(caught.value)


def test_sums_that_are_missing_or_cut_short_are_reported(tmp_path: Path) -> None:
    """Neither is taken for a folder without files."""
    listing(tmp_path / "a", b=b"1")
    (tmp_path / "a" / SUMS).write_bytes((tmp_path / "a" / SUMS).read_bytes()[:-1])
    for reference in ("checksums-damaged", "checksums-missing"):
        with pytest.raises(PackageError) as caught:
            check_listed(tmp_path / "a", "package", "x")
        assert (caught.value.code, caught.value.exit_code) == (reference, ExitCode.PACKAGE)
        (tmp_path / "a" / SUMS).unlink(missing_ok=True)


def test_a_list_without_end_is_not_read(tmp_path: Path) -> None:
    """A hole of a terabyte takes no room on the disk, and none in memory."""
    with (tmp_path / SUMS).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(PackageError) as caught:
        check_listed(tmp_path, "package", "shown")
    assert caught.value.code == "checksums-damaged"


def test_the_first_differences_are_reported(tmp_path: Path) -> None:
    """Not each of thousands."""
    for number in range(200):
        (tmp_path / str(number)).touch()
    (tmp_path / SUMS).write_text(f"{64 * 'a'}  absent\n")
    with pytest.raises(DiagnosticGroup) as caught:
        check_listed(tmp_path, "package", "shown")
    assert len(caught.value.diagnostics) == 50


def test_a_folder_that_cannot_be_read_is_a_matter_of_the_disk(tmp_path: Path) -> None:
    """Not of the package."""
    (tmp_path / "a" / SUMS).mkdir(parents=True)
    with pytest.raises(StorageError):
        check_listed(tmp_path / "a", "package", "x")
