"""Zip archives from anywhere: what is refused, always with a diagnostic, and what is read."""

import errno
import io
import os
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortrim.base import archives
from ortrim.base.archives import open_zip, unpack
from ortrim.errors import ExitCode, StorageError

END = b"PK\x05\x06"
CENTRAL = b"PK\x01\x02"


def archive(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    """Return a zip archive with these members, in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def read_all(path: Path) -> None:
    """Read every member."""
    with open_zip(path, str(path)) as opened:
        for name in opened.members:
            opened.read(name)


def refused(data: bytes, path: Path) -> StorageError:
    """Open an archive, read all of it, and return the diagnostic that this ends with."""
    path.write_bytes(data)
    with pytest.raises(StorageError) as caught:
        read_all(path)
    assert caught.value.exit_code is ExitCode.STORAGE
    assert caught.value.where.startswith(str(path))
    return caught.value


def test_members_are_read_in_place(tmp_path: Path) -> None:
    """Files by name, folders left out, from disk and from memory."""
    data = archive(("jni/", b""), ("jni/a.so", b"a" * 1000), ("R.txt", b""))
    (tmp_path / "a.zip").write_bytes(data)
    for source in (tmp_path / "a.zip", io.BytesIO(data)):
        with open_zip(source, "a.zip") as opened:
            assert list(opened.members) == ["jni/a.so", "R.txt"]
            assert opened.read("jni/a.so") == b"a" * 1000
            with pytest.raises(KeyError):
                opened.read("absent")


@pytest.mark.parametrize("name", ["/etc/passwd", "../escape", "jni/../../escape", "a\\b", "x" * 2000])
def test_names_that_leave_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing is unpacked here, but who unpacks it next might."""
    assert refused(archive((name, b"")), tmp_path / "a.zip").code == "unsafe-archive"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["jni/a.so", "jni/a.so/"])
def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, second: str) -> None:
    """One reader would take the first, another the second."""
    error = refused(archive(("jni/a.so", b"good"), (second, b"")), tmp_path / "a.zip")
    assert error.code == "unsafe-archive"
    assert "twice" in error.why


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    """A zip can hold a symbolic link."""
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    assert refused(archive((link, b"/etc/passwd")), tmp_path / "a.zip").code == "unsafe-archive"


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    """Even when nobody reads them."""
    data = bytearray(archive(("a", b"content")))
    data[6] |= 1
    data[data.index(CENTRAL) + 8] |= 1
    error = refused(bytes(data), tmp_path / "a.zip")
    assert error.code == "corrupt-archive"
    assert "encrypted" in error.why


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip archive", END + bytes(18)[:3], b"\x1f\x8b" + bytes(100)])
def test_what_is_no_zip_is_refused(tmp_path: Path, data: bytes) -> None:
    """Empty, text, a cut end, gzip."""
    assert refused(data, tmp_path / "a.zip").code == "corrupt-archive"


def test_places_before_the_beginning_are_damage(tmp_path: Path) -> None:
    """A list of members that claims to begin, or to be, anywhere: the archive's fault, not the disk's."""
    data = bytearray(archive(("a", b"a" * 100)))
    end = data.index(END)
    references = set()
    for offset in range(12, 20):
        changed = bytes(data[: end + offset]) + b"\xff" + bytes(data[end + offset + 1 :])
        references.add(refused(changed, tmp_path / "a.zip").code)
    assert references == {"corrupt-archive"}


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    """As what the disk says."""
    for path in (tmp_path / "absent.zip", tmp_path):
        with pytest.raises(StorageError) as caught, open_zip(path, str(path)):
            pass
        assert caught.value.where == str(path)


def test_an_archive_that_was_cut_is_refused(tmp_path: Path) -> None:
    """At every hundredth byte."""
    data = archive(*((f"file{number}", bytes(range(256)) * 4) for number in range(8)))
    for size in range(0, len(data), 100):
        assert refused(data[:size], tmp_path / "a.zip").code == "corrupt-archive"


def test_a_member_with_another_checksum_is_refused(tmp_path: Path) -> None:
    """Damage inside is found when it is read."""
    data = bytearray(archive(("a", bytes(1000))))
    data[14] ^= 0xFF
    data[data.index(CENTRAL) + 16] ^= 0xFF
    assert refused(bytes(data), tmp_path / "a.zip").code == "corrupt-archive"


def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Sizes are added up as they are claimed: 5 GiB in all are too many."""
    data = bytearray(archive(*((f"file{number}", bytes(1000)) for number in range(5))))
    place = 0
    while (place := data.find(CENTRAL, place)) >= 0:
        struct.pack_into("<I", data, place + 24, 1 << 30)
        place += 4
    assert refused(bytes(data), tmp_path / "a.zip").code == "archive-too-large"


def crowded(claimed: int) -> bytes:
    """Return an archive of 250,000 empty members that claims another number of them."""
    entry = CENTRAL + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = entry * 250_000
    return directory + END + struct.pack("<HHHHIIH", 0, 0, claimed, claimed, len(directory), 0, 0)


@pytest.mark.parametrize("claimed", [0, 1, 0xFFFE])
def test_a_crowd_of_members_is_refused_before_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int
) -> None:
    """Whatever number the end of the archive claims: Python's reader makes an object of each, which takes long."""
    monkeypatch.setattr(zipfile, "ZipInfo", None)
    assert refused(crowded(claimed), tmp_path / "a.zip").code == "archive-too-large"
    with pytest.raises(StorageError) as caught:
        unpack(tmp_path / "a.zip", tmp_path / "unpacked")
    assert caught.value.code == "archive-too-large"


def test_members_may_hold_what_looks_like_many_members(tmp_path: Path) -> None:
    """Only the directory is counted: an archive may lie in an archive."""
    (tmp_path / "a.zip").write_bytes(archive(("inner.zip", crowded(1))))
    with open_zip(tmp_path / "a.zip", "a.zip") as opened:
        assert opened.read("inner.zip") == crowded(1)


def test_one_huge_member_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a limit for each."""
    monkeypatch.setattr(archives, "LARGEST_MEMBER", 999)
    assert refused(archive(("a", bytes(1000))), tmp_path / "a.zip").code == "archive-too-large"


def test_a_member_that_unpacks_to_more_than_it_claims_is_refused(tmp_path: Path) -> None:
    """Reading ends at the size that was claimed, and the checksum is then another."""
    data = bytearray(archive(("a", bytes(1 << 20))))
    struct.pack_into("<I", data, data.index(CENTRAL) + 24, 10)
    assert refused(bytes(data), tmp_path / "a.zip").code == "corrupt-archive"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=8))
def test_flipped_bytes_give_content_or_a_diagnostic(tmp_path: Path, flips: list[tuple[int, int]]) -> None:
    """Whatever is damaged, nothing but a `StorageError` escapes."""
    data = bytearray(archive(("jni/a.so", b"a" * 500), ("classes.jar", bytes(range(256)))))
    for place, mask in flips:
        data[place % len(data)] ^= mask
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with suppress(StorageError):
        read_all(path)


def test_what_the_system_says_of_a_file_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a link to itself, a network's disk that is away: nobody is told to remove what is whole."""
    folder, circle, whole = tmp_path / "a.zip", tmp_path / "b.zip", tmp_path / "c.zip"
    folder.mkdir()
    circle.symlink_to(circle)
    whole.write_bytes(archive(("a", b"1")))
    for path in (folder, circle):
        with pytest.raises(StorageError) as caught:
            read_all(path)
        assert (caught.value.code, "remove" in caught.value.hint) != ("corrupt-archive", True)

    def away(*_: object) -> bytes:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    monkeypatch.setattr(zipfile.ZipExtFile, "read", away)
    for take in (read_all, lambda path: unpack(path, tmp_path / "out")):
        with pytest.raises(StorageError) as caught:
            take(whole)
        assert caught.value.code == "storage-failed"
