from pathlib import Path

import pytest

from ortrim.base.command import Completed, run
from ortrim.devices.host import cut_tail, redirected


def test_without_files_nothing_changes() -> None:
    """The words are run as they are."""
    assert redirected(("echo", "$x")) == ("echo", "$x")


def test_all_three_streams(tmp_path: Path) -> None:
    """Each stream is its file, whatever the names, and the exit code is the program's."""
    given, printed, complaints = (tmp_path / name for name in ("in '$x\n", "out ; true", "err *"))
    given.write_bytes(b"\0\xff")
    words = ("sh", "-c", 'cat; echo "$1" >&2; exit 3', "sh", "a 'b' $c")
    done = run(redirected(words, given=given, printed=printed, complaints=complaints))
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert printed.read_bytes() == b"\0\xff"
    assert complaints.read_text() == "a 'b' $c\n"


def test_one_stream_alone(tmp_path: Path) -> None:
    """The others stay as they are."""
    (tmp_path / "in").write_text("hello")
    done = run(redirected(("sh", "-c", "cat; echo err >&2"), given=tmp_path / "in"))
    assert (done.stdout, done.stderr) == ("hello", "err\n")


@pytest.mark.parametrize(
    ("content", "left", "stdout"),
    [
        (b"data\n@@m 0 0\n", b"data", "\n@@m 0 0\n"),
        (b"\n@@ a\ndata\n@@m 0 0\n", b"\n@@ a\ndata", "\n@@m 0 0\n"),
        (b"x" * 5000 + b"\n@@m 0 0\n", b"x" * 5000, "\n@@m 0 0\n"),
        (b"cut", b"cut", "before"),
        (b"", b"", "before"),
        (b"\n@@m" + b"x" * 500, b"\n@@m" + b"x" * 500, "before"),
    ],
)
def test_the_tail_is_cut(tmp_path: Path, content: bytes, left: bytes, stdout: str) -> None:
    """What follows the last mark near the end is taken out of a file; without one it stays whole."""
    path = tmp_path / "file"
    path.write_bytes(content)
    done = cut_tail(path, b"\n@@", Completed(argv=("x",), returncode=0, stdout="before", stderr="e"))
    assert (path.read_bytes(), done.stdout, done.stderr) == (left, stdout, "e")
