import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.verify.devices.machine_files import (
    BadArchive,
    Entry,
    folder,
    init_script,
    read_answer,
    regular,
    write_archive,
)

ARCHIVE = write_archive([folder("."), regular("0", b"{}"), folder("saved"), regular("saved/a/x.npy", b"1")])
WHOLE = b"@@BEGIN\n@@EXIT 0\n@@BEGIN\n@@EXIT 139\n@@FILES\n" + ARCHIVE
LATE = b"@@BEGIN\n@@LATE\n@@EXIT 137\n@@FILES\n" + ARCHIVE


def test_a_whole_answer() -> None:
    """Exit codes come in order, files by name, folders not at all; padding after the archive does not matter."""
    answer = read_answer(WHOLE + bytes(100))
    assert (answer.begun, answer.exit_codes) == (2, (0, 139))
    assert dict(answer.files or {}) == {"0": b"{}", "saved/a/x.npy": b"1"}


@given(st.integers(0, len(WHOLE)))
def test_a_cut_answer_is_never_whole(length: int) -> None:
    """However much came, what is missing is missing, and nothing is made up."""
    answer = read_answer(WHOLE[:length])
    assert answer.exit_codes == (0, 139)[: len(answer.exit_codes)]
    assert len(answer.exit_codes) <= answer.begun <= len(answer.exit_codes) + 1
    if b"TRAILER!!!\0" not in WHOLE[:length]:
        assert answer.files is None


@given(st.integers(0, len(LATE)))
def test_a_cut_answer_tells_of_a_limit(length: int) -> None:
    """A command that was killed at its limit is told as soon as that is known, however much comes after."""
    answer = read_answer(LATE[:length])
    assert answer.late == int(length >= len(b"@@BEGIN\n@@LATE\n"))


@pytest.mark.parametrize(("code", "late"), [(0, 0), (139, 0), (137, 1)])
def test_a_command_that_just_made_it(code: int, late: int) -> None:
    """The limit may come up between a command's end and its mark; then it ended in another way than by being killed."""
    assert read_answer(b"@@BEGIN\n@@LATE\n@@EXIT %d\n" % code).late == late


def test_nothing_at_all() -> None:
    """A machine that never started has an empty answer."""
    answer = read_answer(b"")
    assert (answer.begun, answer.exit_codes, answer.files) == (0, (), None)


@pytest.mark.parametrize(
    "data",
    [
        b"hello, this is not a machine\n",
        b"\xff" * 64,
        b"@@EXIT 0\n@@FILES\n",
        b"@@BEGIN\n@@EXIT 0\n@@EXIT 0\n@@FILES\n",
        b"@@BEGIN\n@@EXIT 1000\n@@FILES\n",
        b"@@BEGIN\n@@EXIT -1\n",
        b"@@LATE\n@@EXIT 137\n",
        b"@@BEGIN\n@@EXIT 137\n@@LATE\n",
        b"@@BEGIN\nKernel panic - not syncing\n",
        WHOLE.replace(b"@@FILES", b"@@FILED"),
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    """What no machine of ours sends is told apart from what was cut off."""
    with pytest.raises(BadArchive, match="no mark"):
        read_answer(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_refused(data: bytes) -> None:
    """Nothing else happens, whatever comes over the port."""
    for candidate in (data, b"@@BEGIN\n" + data, b"@@FILES\n" + data, WHOLE[:60] + data):
        with suppress(BadArchive):
            assert len(read_answer(candidate).exit_codes) <= len(candidate)


@pytest.mark.parametrize("name", ["../outside", "a/../../b", "saved/.."])
def test_names_that_climb(name: str) -> None:
    """A file that would land outside is refused with all the rest."""
    entry = Entry(name=name, mode=stat.S_IFREG | 0o644, content=b"x")
    with pytest.raises(BadArchive, match="outside"):
        read_answer(b"@@FILES\n" + write_archive([entry]))


def test_links_in_an_answer_are_left_out() -> None:
    """Only files come back."""
    entry = Entry(name="saved/link", mode=stat.S_IFLNK | 0o777, content=b"/etc/passwd")
    assert read_answer(b"@@FILES\n" + write_archive([entry])).files == {}


def test_the_script_runs_under_a_shell(tmp_path: Path) -> None:
    """With a folder for a machine, the script does what it says, in order, loses no exit code, and ends what hangs."""
    box = tmp_path / "box"
    box.write_text('#!/bin/sh\ncase $1 in mount|poweroff|usleep) exit 0;; sleep) exec sleep 1;; esac\nexec "$@"\n')
    box.chmod(0o755)
    commands = [
        ["sh", "-c", 'printf %s "$0" >&2; exit 7', "it's; $HOME\n2 @limit@ @number@ @commands@"],
        ["sh", "-c", "kill -9 $$"],
        ["/bin/sleep", "60"],
    ]
    script = init_script(commands, limit_seconds=1, machine_seconds=5)
    script = script.replace("/bin/busybox", str(box)).replace("/dev/vport0p1", "/dev/null").replace(">/dev/null", ">a")
    script = script.replace("/out", str(tmp_path / "out")).replace("cd /\n", f"cd {tmp_path}\n")
    script = script.replace("/proc/sys/vm/overcommit_memory", str(tmp_path / "overcommit"))
    (tmp_path / "out").mkdir()
    cut = script.replace("cpio -o -H newc", "cat")
    done = run(["/bin/sh", "-c", cut], cwd=tmp_path, environment={**os.environ, "PATH": "/usr/bin:/bin"})
    assert "it's; $HOME\n2 @limit@ @number@ @commands@" in done.stderr
    assert (tmp_path / "overcommit").read_text() == "1\n"
    lines = (tmp_path / "a").read_text().splitlines()
    ends = ["@@BEGIN", "@@EXIT 7", "@@BEGIN", "@@EXIT 137", "@@BEGIN", "@@LATE", "@@EXIT 137", "@@FILES"]
    assert lines[:8] == ends
    assert {"./0", "./1", "./2", "./cpuinfo", "./meminfo", "./release"} < set(lines[8:])
