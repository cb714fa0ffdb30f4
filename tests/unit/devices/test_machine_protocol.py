import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_machine import sent_files
from ortrim.base.command import run
from ortrim.devices.machine_files import (
    BadAnswer,
    init_script,
    read_answer,
)
from program_files import write_program

ARCHIVE = sent_files({"0": b"{}", "saved/a/x.npy": b"1"})
WHOLE = b"@@BEGIN\n@@EXIT 0\n@@BEGIN\n@@EXIT 139\n@@FILES\n" + ARCHIVE
LATE = b"@@BEGIN\n@@LATE\n@@EXIT 137\n@@FILES\n" + ARCHIVE


@given(st.integers(0, len(WHOLE)))
def test_a_cut_answer_is_never_whole(length: int) -> None:
    """However much came, what is missing is missing, and nothing is made up."""
    answer = read_answer(WHOLE[:length])
    assert answer.exit_codes == (0, 139)[: len(answer.exit_codes)]
    assert len(answer.exit_codes) <= answer.begun <= len(answer.exit_codes) + 1
    assert (answer.files is None) == (length < len(WHOLE))


@given(st.integers(0, len(LATE)))
def test_a_cut_answer_tells_of_a_limit(length: int) -> None:
    """A command that was killed at its limit is told as soon as that is known, however much comes after."""
    answer = read_answer(LATE[:length])
    assert answer.late == int(length >= len(b"@@BEGIN\n@@LATE\n"))


@pytest.mark.parametrize(("code", "late"), [(0, 0), (139, 0), (137, 1)])
def test_a_command_that_just_made_it(code: int, late: int) -> None:
    """The limit may come up between a command's end and its mark; then it ended in another way than by being killed."""
    assert read_answer(b"@@BEGIN\n@@LATE\n@@EXIT %d\n" % code).late == late


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
    with pytest.raises(BadAnswer, match="no mark"):
        read_answer(data)


@pytest.mark.parametrize("name", ["../outside", "a/../../b", "saved/.."])
def test_names_that_climb(name: str) -> None:
    with pytest.raises(BadAnswer, match="outside"):
        read_answer(b"@@FILES\n" + sent_files({name: b"x"}))


def test_the_script_runs_under_a_shell(tmp_path: Path) -> None:
    """With a folder for a machine, the script does what it says, in order, loses no exit code, and ends what hangs."""
    box = write_program(
        tmp_path / "box", 'case $1 in mount|poweroff|usleep) exit 0;; sleep) exec sleep 1;; esac\nexec "$@"'
    )
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
    done = run(["/bin/sh", "-c", script], cwd=tmp_path, environment={**os.environ, "PATH": "/usr/bin:/bin"})
    assert "it's; $HOME\n2 @limit@ @number@ @commands@" in done.stderr
    assert (tmp_path / "overcommit").read_text() == "1\n"
    answer = read_answer((tmp_path / "a").read_bytes())
    assert (answer.begun, answer.exit_codes, answer.late) == (3, (7, 137, 137), 1)
    assert set(answer.files or {}) == {"0", "1", "2", "cpuinfo", "meminfo", "release"}
