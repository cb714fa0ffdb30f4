"""What is sent to a machine's shell for one command, and what comes back of it. Pure.

A shell's own exit code is not believed: `adb shell` ends with 0 when the device vanishes half way (seen with 29.0.6
and 36.0.0), and `ssh` with 255 when the connection breaks or the command says so. The script therefore prints a last
line of its own; an output without it was cut off.

The time limit is kept on the machine, where it also holds when nobody is connected any more. It is not kept by
`timeout`: toybox's (0.8.9; Android's commands are toybox) gave 127 for every third of many commands that went well.

- Running one command through a machine's shell: whatever happens, it is said what, and the command is ended.
"""

import math
import re
import secrets
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ortrim.base.command import Completed
from ortrim.errors import Diagnostic, ToolError, VerifyError
from ortrim.parity.runner import endless_output

VARIABLE: Final = "ORTRIM_RUN"
"""Set to the mark for the command and all its children, so that they can be found again."""
KILLED: Final = 137
"""The exit code that a shell gives for SIGKILL: 128 and 9."""
TAIL: Final = re.compile(r"(\d{1,3}) (\d{1,3})\s*", re.ASCII)
"""After the mark: the command's exit code, and the clock's."""


@dataclass(frozen=True, kw_only=True)
class EndedCommand:
    """A command that ended on a machine: how, whether it was killed at its limit, and what it printed."""

    returncode: int
    timed_out: bool
    stdout: str


def quoted(words: Sequence[str]) -> str:
    """Return a command line that any POSIX shell splits into exactly these words.

    The first is quoted in any case: bare, it could be a reserved word, an alias or an assignment.
    """
    first, *others = words
    return " ".join(["'" + first.replace("'", "'\"'\"'") + "'", *(shlex.quote(word) for word in others)])


def marked_script(words: Sequence[str], mark: str, limit_seconds: float) -> str:
    """Return the script that runs a command, kills it at its limit, and prints `mark` and how it ended.

    The script is one line, for login shells in which a quoted line end is an error, and in C's locale, since complaints
    are distinguished by their words.
    """
    # The clock is a `sleep` that whatever ends the command kills; the shell waits for the clock, then for the command.
    # No trap and no signal but 9: a shell's child that has only just been forked may lose the others (seen with mksh).
    # A background command's input is empty unless it is given another.
    run = f"({quoted(words)} <&3 3<&-; c=$?; kill -9 $s 2>/dev/null; exit $c) & r=$!"
    return (
        f"{VARIABLE}={mark}; LC_ALL=C; export {VARIABLE} LC_ALL; exec 3<&0; "
        f"sleep {math.ceil(limit_seconds)} </dev/null >/dev/null 2>&1 3<&- & s=$!; {run}; "
        f"wait $s 2>/dev/null; t=$?; [ $t != 0 ] || {{ {kill_script(mark)}; }}; "
        f'wait $r; c=$?; echo; echo "{mark} $c $t"'
    )


def kill_script(mark: str) -> str:
    """Return the script that kills a command that `marked_script` started, with all its children.

    It looks again until nothing is found: what was found may have started something before it died. Nine times at
    most, since a process that waits for a broken disk cannot be killed.
    """
    return (
        "for n in 1 2 3 4 5 6 7 8 9; do l=; for f in /proc/[0-9]*/environ; do [ -r $f ] && "
        f'case "$(cat $f)" in *{VARIABLE}={mark}*) l=1; f=${{f#/proc/}}; kill -9 ${{f%/environ}};; esac; done; '
        "[ $l ] || break; done 2>/dev/null"
    )


def read_ended(printed: str, mark: str) -> EndedCommand | None:
    """Return how a command ended, None when its output was cut off before the mark."""
    stdout, found, tail = printed.rpartition(f"\n{mark} ")
    ending = TAIL.fullmatch(tail)
    if not found or ending is None:
        return None
    returncode, clock = int(ending[1]), int(ending[2])
    return EndedCommand(returncode=returncode, timed_out=clock == 0 and returncode == KILLED, stdout=stdout)


def signalled(returncode: int) -> int:
    """Return a shell's exit code as `Completed` has it: negative for a program that a signal ended."""
    return 128 - returncode if 128 < returncode <= 128 + 64 else returncode


SLACK_SECONDS: Final = 15.0
"""How much longer than the command's own limit the way there and back may take."""
KILL_SECONDS: Final = 15.0

Start = Callable[[str, float], Completed]
"""Hands a script to the machine's shell and returns what came back; the number is the limit in seconds."""


def run_marked(
    words: Sequence[str], start: Start, *, limit_seconds: float, name: str, explain: Callable[[str], Diagnostic]
) -> Completed:
    """Run a command on a machine to its end, as `Transport.execute` promises.

    `explain` makes a diagnostic of what the connecting program printed when the command's end did not come back.
    """
    mark = f"@@{secrets.token_hex(8)}"
    try:
        done = start(marked_script(words, mark, limit_seconds), limit_seconds + SLACK_SECONDS)
    except ToolError as error:
        if error.code not in {"tool-timeout", "tool-endless"}:
            raise
        _kill(start, mark)
        timeout = error.code == "tool-timeout"
        raise (_timeout(words, limit_seconds, name) if timeout else endless_output(name)) from error
    except BaseException:  # Ctrl-C must not leave a runner behind either
        _kill(start, mark)
        raise
    ended = read_ended(done.stdout, mark)
    if ended is None:
        _kill(start, mark)
        raise explain(done.stderr or done.stdout)
    if ended.timed_out:
        raise _timeout(words, limit_seconds, name)
    return Completed(argv=tuple(words), returncode=ended.returncode, stdout=ended.stdout, stderr=done.stderr)


def _kill(start: Start, mark: str) -> None:
    """End the command on the machine if it can still be reached; otherwise its own time limit does."""
    with suppress(Diagnostic):
        start(kill_script(mark), KILL_SECONDS)


def _timeout(words: Sequence[str], limit_seconds: float, name: str) -> VerifyError:
    what = f"'{words[0].rpartition('/')[2]}' did not end within {limit_seconds:g} seconds and was killed"
    return VerifyError("device-timeout", what, where=name)
