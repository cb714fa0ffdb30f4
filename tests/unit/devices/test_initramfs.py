from pathlib import Path

import pytest
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.devices.machine_files import (
    LONGEST_NAME,
    folder,
    link,
    regular,
    with_folders,
    write_archive,
)

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60).filter(
    lambda name: not name.startswith("/") and name != "TRAILER!!!"
)
ENTRIES = (folder("bin"), regular("bin/sh", b"#!x", executable=True), link("lib", "usr/lib"), regular("notes", b""))


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a\0b", "TRAILER!!!", "x" * (LONGEST_NAME + 1)])
def test_names_that_cannot_be_held(name: str) -> None:
    """A name that the form cannot hold, or that would end the archive, is refused when it is written."""
    with pytest.raises(ValueError, match="cannot hold the name"):
        write_archive([regular(name, b"")])


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
