import gzip
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initramfs import read_archive
from ortrim.base.command import run
from ortrim.devices.machine_files import (
    LONGEST_NAME,
    Entry,
    compress,
    folder,
    link,
    regular,
    with_folders,
    write_archive,
)

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60).filter(
    lambda name: not name.startswith("/") and name != "TRAILER!!!"
)
modes = st.sampled_from([stat.S_IFREG | 0o644, stat.S_IFREG | 0o755, stat.S_IFDIR | 0o755, stat.S_IFLNK | 0o777])
entries = st.lists(st.builds(Entry, name=names, mode=modes, content=st.binary(max_size=40)), max_size=8)
ENTRIES = (folder("bin"), regular("bin/sh", b"#!x", executable=True), link("lib", "usr/lib"), regular("notes", b""))


@given(entries)
def test_what_is_written_is_read(given_entries: list[Entry]) -> None:
    """Any entries come back as they were, from bytes whose length is a multiple of four."""
    archive = write_archive(given_entries)
    assert read_archive(archive) == tuple(given_entries)
    assert len(archive) % 4 == 0


@given(entries)
def test_equal_entries_give_equal_bytes(given_entries: list[Entry]) -> None:
    """Nothing but the entries is in the archive, compressed or not."""
    archive = write_archive(given_entries)
    assert write_archive(tuple(given_entries)) == archive
    assert compress(archive) == compress(archive)
    assert gzip.decompress(compress(archive)) == archive


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a\0b", "TRAILER!!!", "x" * (LONGEST_NAME + 1)])
def test_names_that_cannot_be_held(name: str) -> None:
    """A name that the form cannot hold, or that would end the archive, is refused when it is written."""
    with pytest.raises(ValueError, match="cannot hold the name"):
        write_archive([regular(name, b"")])


def test_folders_come_before_what_is_in_them() -> None:
    """Missing folders are added once, and a folder that was given is kept as it is."""
    own = Entry(name="a/b", mode=stat.S_IFDIR | 0o700)
    found = with_folders([regular("a/b/c", b"1"), regular("a/b/d/e", b"2"), own])
    assert [entry.name for entry in found] == ["a", "a/b", "a/b/c", "a/b/d", "a/b/d/e"]
    assert found[1] == own


@pytest.mark.needs("cpio")
def test_cpio_reads_it(tmp_path: Path) -> None:
    """The archive is one for the real `cpio` too: names, permissions, contents and links."""
    (tmp_path / "archive").write_bytes(write_archive(with_folders([*ENTRIES, regular("Zürich/x y", b"z" * 5)])))
    command = "cpio -t --quiet <archive && mkdir out && cd out && cpio -i --quiet <../archive"
    done = run(["/bin/sh", "-c", command], cwd=tmp_path, environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "Zürich" / "x y").read_bytes() == b"zzzzz"
    assert (tmp_path / "out" / "lib").readlink() == Path("usr/lib")
    assert (tmp_path / "out" / "bin" / "sh").stat().st_mode & 0o777 == 0o755
