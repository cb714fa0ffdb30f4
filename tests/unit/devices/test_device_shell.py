import os
import secrets
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.base.command import Completed, run
from ortrim.devices.remote import EndedCommand, marked_script, quoted, read_ended, run_marked, signalled
from ortrim.errors import ExitCode, ToolError, VerifyError
from refusing import refused
from running import running

MARK = f"@@{secrets.token_hex(8)}"
"""Of these tests alone, since all that carries it is killed, on the whole machine."""
OURS = f"{os.getpid()}"
"""At the end of a number of seconds, it tells our sleeping programs from those of other tests at the same time."""
SHELLS = [shell for shell in ("sh", "bash", "mksh", "busybox") if shutil.which(shell)]
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


def shell_run(shell: str, words: tuple[str, ...], limit: float = 20) -> tuple[Completed, EndedCommand]:
    called = ("busybox", "sh") if shell == "busybox" else (shell,)
    done = run((*called, "-c", marked_script(words, MARK, limit)), timeout_seconds=60)
    ended = read_ended(done.stdout, MARK)
    assert ended is not None
    return done, ended


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("code", [0, 1, 126, 255])
def test_exit_codes_come_back(shell: str, code: int) -> None:
    done, ended = shell_run(shell, ("sh", "-c", f"echo out; echo err >&2; exit {code}"))
    assert ended == EndedCommand(returncode=code, timed_out=False, stdout="out\n")
    assert done.stderr == "err\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_signals_come_back(shell: str) -> None:
    assert shell_run(shell, ("sh", "-c", "kill -SEGV $$"))[1].returncode == 139
    assert shell_run(shell, ("sh", "-c", "kill -KILL $$"))[1] == EndedCommand(
        returncode=137, timed_out=False, stdout=""
    )


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "script", ["exec sleep 1{ours}", "sleep 2{ours}; echo on", "trap '' TERM; while :; do sleep 3{ours}; done"]
)
def test_the_limit_ends_a_command_and_its_children(shell: str, script: str) -> None:
    """A command is killed at its limit with whatever it started: nothing keeps the streams open."""
    _, ended = shell_run(shell, ("sh", "-c", f"echo before; {script.replace('{ours}', OURS)}"), 1)
    assert ended == EndedCommand(returncode=137, timed_out=True, stdout="before\n")
    assert not {f"sleep {digit}{OURS}" for digit in (1, 2, 3)} & set(running().splitlines())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_clock_does_not_stay(shell: str) -> None:
    """A short command leaves no process that waits for its limit, however quick it was."""
    for _ in range(25):
        shell_run(shell, ("true",), float(f"4{OURS}"))
    assert f"sleep 4{OURS}" not in running().splitlines()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("first", ["if", "{", "!", "A=b", "no such program", "'", "~", "-n"])
def test_the_first_word_is_a_program(shell: str, first: str) -> None:
    assert shell_run(shell, (first, "x"))[1].returncode == 127


@given(st.lists(WORDS, max_size=5))
@settings(max_examples=25, deadline=None)
def test_words_mean_nothing_to_the_shell(words: list[str]) -> None:
    _, ended = shell_run("sh", ("printf", "%s|", *words))
    printed = run(("printf", "%s|", *words)).stdout
    assert ended.stdout == printed


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_scripts_are_one_line_if_words_are(words: list[str]) -> None:
    one_line = ["".join(word.split("\n")) for word in words]
    assert "\n" not in marked_script(one_line, MARK, 5)
    assert quoted(words).startswith("'")


@given(st.text(max_size=200))
def test_any_output_can_be_read(printed: str) -> None:
    assert read_ended(printed, MARK) is None
    ended = read_ended(f"{printed}\n{MARK} 3 137\n", MARK)
    assert ended == EndedCommand(returncode=3, timed_out=False, stdout=printed)


@pytest.mark.parametrize(
    "tail", ["", "\n{mark}", "\n{mark} ", "\n{mark} 0", "\n{mark} x y", "\n{mark} 0 0 0", "{mark} 0 0"]
)
def test_an_end_that_was_cut_is_none(tail: str) -> None:
    assert read_ended(f"output{tail.replace('{mark}', MARK)}", MARK) is None


def test_a_command_can_print_marks() -> None:
    """Only the last mark counts."""
    ended = read_ended(f"\n{MARK} 5 5\nmore\n{MARK} 0 137\n", MARK)
    assert ended == EndedCommand(returncode=0, timed_out=False, stdout=f"\n{MARK} 5 5\nmore")


@pytest.mark.parametrize(
    ("shell", "ours"), [(0, 0), (1, 1), (128, 128), (139, -11), (192, -64), (193, 193), (255, 255)]
)
def test_exit_codes_of_shells(shell: int, ours: int) -> None:
    """A shell's 128 plus a signal becomes the negative signal; other codes stay."""
    assert signalled(shell) == ours


class Machine:
    """A shell of this machine that notes what it was given; `cut` gives all but the end of an output."""

    def __init__(self, *, cut: bool = False, error: BaseException | None = None) -> None:
        self.cut = cut
        self.error = error
        self.scripts: list[str] = []

    def __call__(self, script: str, seconds: float) -> Completed:
        self.scripts.append(script)
        if self.error and len(self.scripts) == 1:
            raise self.error
        done = run(("sh", "-c", script), timeout_seconds=seconds)
        stdout = done.stdout.partition("\n@@")[0] if self.cut else done.stdout
        return Completed(argv=done.argv, returncode=0, stdout=stdout, stderr="cut" if self.cut else done.stderr)


def explained(printed: str) -> VerifyError:
    return VerifyError("device-lost", printed)


def marked(machine: Machine, *words: str, limit: float = 10) -> Completed:
    return run_marked(words, machine, limit_seconds=limit, name="adb:x", explain=explained)


def failed(machine: Machine, *words: str, limit: float = 10) -> VerifyError:
    return refused(VerifyError, marked, machine, *words, limit=limit)


def test_a_connection_that_ends_well_too_early_is_lost() -> None:
    """An exit code of 0 without an end is what `adb shell` gives when a device vanishes; the command is ended."""
    machine = Machine(cut=True)
    error = failed(machine, "echo", "half")
    assert (error.code, error.what) == ("device-lost", "cut")
    assert "kill -9" in machine.scripts[1]


def test_a_connection_over_its_limit() -> None:
    """When nothing comes back in time, the command is ended by a second call."""
    machine = Machine(error=ToolError("tool-timeout", "did not end"))
    assert failed(machine, "true").code == "device-timeout"
    assert len(machine.scripts) == 2


def test_an_endless_command() -> None:
    """A command that prints and prints is ended on the machine, by a second call, and told apart from a slow one."""
    machine = Machine(error=ToolError("tool-endless", "printed too much"))
    error = failed(machine, "yes")
    assert (error.code, error.where, error.exit_code) == ("endless-output", "adb:x", ExitCode.VERIFY)
    assert "kill -9" in machine.scripts[1]


def test_an_interruption_leaves_no_command_behind() -> None:
    machine = Machine(error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        marked(machine, "true")
    assert "kill -9" in machine.scripts[1]


def test_a_program_that_is_not_there() -> None:
    """Without adb or ssh there is nothing to end."""
    machine = Machine(error=ToolError("tool-missing", "is not installed"))
    assert (refused(ToolError, marked, machine, "true").code, len(machine.scripts)) == ("tool-missing", 1)
