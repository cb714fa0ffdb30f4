"""Zip archives whose bytes depend on nothing but what is in them."""

import io
import zipfile
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, PackageError, StorageError
from ortrim.package.manifest import PackagedFile
from ortrim.package.package import JAR_MANIFEST, PackagedLink, fill_zip, write_zip


def files(folder: Path) -> list[PackagedFile]:
    """Return files of both kinds, in no order."""
    (folder / "b").write_bytes(bytes(5000))
    return [
        PackagedFile(path="b/b", content=folder / "b", mode=0o755),
        PackagedFile(path=JAR_MANIFEST, content=b"Manifest-Version: 1.0\r\n"),
        PackagedFile(path="A", content=b"a"),
    ]


def test_members_are_in_order_and_carry_no_time_of_their_own(tmp_path: Path) -> None:
    """A jar's manifest comes first, where `JarInputStream` looks for it."""
    write_zip(tmp_path / "out" / "a.zip", files(tmp_path))
    with zipfile.ZipFile(tmp_path / "out" / "a.zip") as archive:
        entries = archive.infolist()
        assert [entry.filename for entry in entries] == [JAR_MANIFEST, "A", "b/b"]
        assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.create_system for entry in entries} == {3}
        assert [entry.external_attr >> 16 for entry in entries] == [0o100644, 0o100644, 0o100755]
        assert archive.read("b/b") == bytes(5000)
        assert entries[2].compress_size < 50


def test_order_of_files_does_not_matter(tmp_path: Path) -> None:
    """Nor does where a file's content comes from."""
    one, other = io.BytesIO(), io.BytesIO()
    fill_zip(one, files(tmp_path))
    reordered = [PackagedFile(path="b/b", content=bytes(5000), mode=0o755), *reversed(files(tmp_path)[1:])]
    fill_zip(other, reordered)
    assert one.getvalue() == other.getvalue()


def test_links_stay_links(tmp_path: Path) -> None:
    """As `unzip` and Apple's tools restore them; programs stay programs."""
    link = PackagedLink(path="a.framework/Versions/Current", target="A")
    write_zip(tmp_path / "a.zip", [PackagedFile(path="a.framework/Versions/A/a", content=b"a", mode=0o755)], [link])
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        entry = archive.getinfo(link.path)
        assert (entry.external_attr >> 16, archive.read(entry)) == (0o120777, b"A")


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", ""])
def test_paths_that_leave_the_archive_are_refused(tmp_path: Path, path: str) -> None:
    """Nothing is left of the archive."""
    with pytest.raises(PackageError) as caught:
        write_zip(tmp_path / "a.zip", [PackagedFile(path=path, content=b"")])
    assert (caught.value.code, caught.value.exit_code) == ("bad-package-path", ExitCode.PACKAGE)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_gone_leaves_no_archive(tmp_path: Path) -> None:
    """It is told with the archive's name."""
    with pytest.raises(StorageError) as caught:
        write_zip(tmp_path / "a.zip", [PackagedFile(path="a", content=tmp_path / "gone")])
    assert caught.value.code == "archive-not-written"
    assert list(tmp_path.iterdir()) == []
