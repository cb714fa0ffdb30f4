"""Zip files of Google's SDK as tar files."""

import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_ndk import PREBUILT, write_ndk
from ortrim.base import archives
from ortrim.compiling.containers import root_file_systems
from ortrim.compiling.containers.root_file_systems import zip_as_tar
from ortrim.errors import ExitCode, StorageError


def members(archive: Path) -> dict[str, tarfile.TarInfo]:
    """Return what a tar file holds."""
    with tarfile.open(archive) as file:
        return {member.name: member for member in file}


def write(path: Path, *entries: tuple[str, int, str]) -> Path:
    """Write a zip file of (name, Unix mode, content)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, mode, content in entries:
            entry = zipfile.ZipInfo(name)
            entry.create_system, entry.external_attr = 3, mode << 16
            archive.writestr(entry, content)
    return path


def test_links_and_permissions_are_kept(tmp_path: Path) -> None:
    """The top folder goes; programs can be run, links lead where they led; owners and times are plain."""
    write_ndk(tmp_path / "ndk.zip")
    zip_as_tar(tmp_path / "ndk.zip", tmp_path / "ndk.tar")
    found = members(tmp_path / "ndk.tar")
    assert found["source.properties"].mode == 0o644
    assert found[f"{PREBUILT}/bin/clang-18"].mode == 0o755
    assert found[f"{PREBUILT}/bin/clang++"].linkname == "clang-18"
    assert {(member.uid, member.gid, member.mtime) for member in found.values()} == {
        (0, 0, root_file_systems.SOURCE_DATE)
    }


def test_the_same_zip_gives_the_same_tar(tmp_path: Path) -> None:
    """Byte for byte."""
    write_ndk(tmp_path / "ndk.zip")
    for name in ("a.tar", "b.tar"):
        zip_as_tar(tmp_path / "ndk.zip", tmp_path / name)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_folders_are_folders(tmp_path: Path) -> None:
    """With or without an entry of their own; the top one has no name left."""
    archive = write(tmp_path / "x.zip", ("top/", 0o40755, ""), ("top/a/", 0o40755, ""), ("top/b/c", 0o100600, "c"))
    zip_as_tar(archive, tmp_path / "x.tar")
    found = members(tmp_path / "x.tar")
    assert set(found) == {"a", "b/c"}
    assert found["a"].isdir()


LINK, DEVICE, FILE = stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o666, stat.S_IFREG | 0o644


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [
        ("top/../../x", FILE, ""), ("/top/x", FILE, ""), ("top/a\\..\\x", FILE, ""), ("top/x", DEVICE, ""),
        ("top/x", LINK, "/etc/passwd"), ("top/x", LINK, "../x"), ("top/a/x", LINK, "../../x"),
        ("top/a/x", LINK, "b/../../../x"), ("top/x", LINK, "x" * 5000),
    ],
)  # fmt: skip
def test_what_leads_outside_is_refused(tmp_path: Path, name: str, mode: int, content: str) -> None:
    """By its name or by where a link leads; a device too."""
    archive = write(tmp_path / "x.zip", ("top/good", FILE, "good"), (name, mode, content))
    with pytest.raises(StorageError) as caught:
        zip_as_tar(archive, tmp_path / "x.tar")
    assert (caught.value.code, caught.value.exit_code) == ("unsafe-archive", ExitCode.STORAGE)
    assert not (tmp_path / "x.tar").exists()


def cut(content: bytes) -> bytes:
    """Cut a zip file short."""
    return content[: len(content) // 2]


def damage(content: bytes) -> bytes:
    """Change bytes of the first entry's content."""
    return content[:60] + bytes(byte ^ 255 for byte in content[60:90]) + content[90:]


@pytest.mark.parametrize("change", [cut, damage, lambda _: b"", lambda _: b"not a zip file"])
def test_a_damaged_zip_is_refused(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    """Cut short, changed, empty, or another thing."""
    archive = write(tmp_path / "x.zip", ("top/file", FILE, "some content " * 100))
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(StorageError) as caught:
        zip_as_tar(archive, tmp_path / "x.tar")
    assert caught.value.code == "corrupt-archive"


@pytest.mark.parametrize("limit", ["MAXIMUM_BYTES", "MAXIMUM_ENTRIES"])
def test_a_zip_without_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """By what it says of itself, before anything is unpacked."""
    monkeypatch.setattr(archives, limit, 1)
    archive = write(tmp_path / "x.zip", ("top/a", FILE, "aa"), ("top/b", FILE, "b"))
    with pytest.raises(StorageError) as caught:
        zip_as_tar(archive, tmp_path / "x.tar")
    assert caught.value.code == "archive-too-large"
    assert not (tmp_path / "x.tar").exists()
