import gzip
import os
import tarfile
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, PackageError, StorageError
from ortrim.package.manifest import SOURCE_DATE_EPOCH
from ortrim.package.package import write_archive


def make_folder(folder: Path) -> Path:
    """Make a folder with files of several kinds, in an order that is not that of their names."""
    (folder / "lib").mkdir(parents=True)
    (folder / "z.txt").write_text("last")
    (folder / "lib" / "a.so.1").write_bytes(b"\x7fELF")
    (folder / "lib" / "a.so.1").chmod(0o700)
    (folder / "lib" / "a.so").symlink_to("a.so.1")
    (folder / ("long-" * 30)).write_text("long")
    (folder / "Gr\u00fc\u00dfe.txt").write_text("unicode")
    return folder


def test_entries_carry_nothing_of_the_machine(tmp_path: Path) -> None:
    """Owner, time and umask are not in the archive; order is that of the paths; links are kept."""
    write_archive(make_folder(tmp_path / "p"), tmp_path / "out" / "p.tar.gz")
    with tarfile.open(tmp_path / "out" / "p.tar.gz") as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {member.mtime for member in members} == {SOURCE_DATE_EPOCH}
    modes = {member.name.removeprefix("p/"): member.mode for member in members}
    assert modes["lib/a.so.1"] == 0o755
    assert modes["z.txt"] == 0o644
    assert next(member.linkname for member in members if member.issym()) == "a.so.1"


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    """Neither the order of creation, the times of the files nor the archive's own name matter."""
    one, other = make_folder(tmp_path / "a" / "p"), make_folder(tmp_path / "b" / "p")
    os.utime(other / "z.txt", (1, 1))
    (other / "lib" / "a.so.1").chmod(0o755)
    (other / "z.txt").chmod(0o600)
    write_archive(one, tmp_path / "one.tar.gz")
    write_archive(other, tmp_path / "other.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "other.tar.gz").read_bytes()


def test_gzip_header_has_no_name_and_no_time(tmp_path: Path) -> None:
    """Flags and time of the header are zero, and the content is whole."""
    write_archive(make_folder(tmp_path / "p"), tmp_path / "p.tar.gz")
    data = (tmp_path / "p.tar.gz").read_bytes()
    assert data[:4] == b"\x1f\x8b\x08\x00"
    assert data[4:8] == bytes(4)
    assert len(gzip.decompress(data)) % 512 == 0


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../p2/file"])
def test_link_that_leaves_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    """Such a link would lead into the files of whoever unpacks it; no archive is left."""
    folder = make_folder(tmp_path / "p")
    (folder / "link").symlink_to(target)
    with pytest.raises(PackageError) as caught:
        write_archive(folder, tmp_path / "p.tar.gz")
    assert caught.value.code == "not-archivable"
    assert caught.value.exit_code == ExitCode.PACKAGE
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_special_file_is_refused(tmp_path: Path) -> None:
    """A named pipe would block for ever if it were read."""
    folder = make_folder(tmp_path / "p")
    os.mkfifo(folder / "pipe")
    with pytest.raises(PackageError) as caught:
        write_archive(folder, tmp_path / "p.tar.gz")
    assert caught.value.code == "not-archivable"
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_unwritable_destination_is_a_storage_error(tmp_path: Path) -> None:
    """A file where a folder should be, and a folder where the archive should be, are reported."""
    folder = make_folder(tmp_path / "p")
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "inner").mkdir(parents=True)
    for destination in (tmp_path / "file" / "p.tar.gz", tmp_path / "taken"):
        with pytest.raises(StorageError) as caught:
            write_archive(folder, destination)
        assert caught.value.code == "archive-not-written"
    assert {path.name for path in tmp_path.iterdir()} == {"p", "file", "taken"}
