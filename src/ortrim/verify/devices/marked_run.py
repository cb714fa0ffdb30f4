"""Running one command through a machine's shell: whatever happens, it is said what, and the command is ended."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from ortrim.errors import Diagnostic, ToolError, VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.run_errors import endless_output
from ortrim.verify.devices.shell_script import kill_script, marked_script, read_ended

SLACK_SECONDS: Final = 15.0
"""How much longer than the command's own limit the way there and back may take."""
KILL_SECONDS: Final = 15.0

Start = Callable[[str, float], Completed]
"""Hands a script to the machine's shell and returns what came back; the number is the limit in seconds."""


def run_marked(
    words: Sequence[str], start: Start, *, limit_seconds: float, name: str, explain: Callable[[str], VerifyError]
) -> Completed:
    """Run a command on a machine to its end, as `Transport.execute` promises.

    `explain` makes a diagnostic of what the connecting program printed when the command's end did not come back.
    Raises `VerifyError`: `device-timeout`, `endless-output`, and what `explain` returns; `ToolError` when the
    program is not there.
    """
    mark = f"@@{secrets.token_hex(8)}"
    try:
        done = start(marked_script(words, mark, limit_seconds), limit_seconds + SLACK_SECONDS)
    except ToolError as error:
        if error.reference not in {"tool-timeout", "tool-endless"}:
            raise
        _kill(start, mark)
        timeout = error.reference == "tool-timeout"
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
