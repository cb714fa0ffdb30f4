"""What `simctl` says when something is wrong, and how a program in a simulator ended. Pure.

`simctl spawn` ends as the program does, with 128 and the number for one that a signal ended, which it names on standard
error. Its own failures have other numbers (148 for a device that is not there, 149 for one in another state), which a
program may end with too: they count only where the runner left no report.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ortrim.errors import VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.run_errors import not_startable
from ortrim.verify.devices.shell_script import signalled

SIGNAL: Final = re.compile(r"^Child process terminated with signal (\d{1,2})\b", re.MULTILINE)
LOST: Final = "the simulator went away while it was used"
FAULTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType({
    "Invalid device": (LOST, "run the same command again"),
    "current state: Shutdown": (LOST, "leave it alone while it is used, and run the same command again"),
    "device is not booted": (LOST, "leave it alone while it is used, and run the same command again"),
    "CoreSimulatorService connection": ("the Mac's simulator service does not answer", "restart the Mac"),
    "No space left": ("the Mac has no room", "make room: xcrun simctl delete unavailable"),
})  # fmt: skip
"""What each of simctl's words means, and what helps."""
NOT_STARTED: Final = "An error was encountered processing the command"


def simctl_error(done: Completed, where: str) -> VerifyError:
    """Return the diagnostic of a command of simctl's that failed: `device-lost`, or `simulator-trouble`."""
    said = (done.stderr or done.stdout).strip()
    why = "\n".join(said.splitlines()[-4:]) or f"exit code {done.returncode}"
    for words, (what, hint) in FAULTS.items():
        if words in said:
            reference = "device-lost" if what == LOST else "simulator-trouble"
            return VerifyError(reference, what, where=where, why=why, hint=hint)
    what, hint = "simctl failed", "try it by hand: xcrun simctl list devices"
    return VerifyError("simulator-trouble", what, where=where, why=why, hint=hint)


def ended(done: Completed, report: str, where: str) -> Completed:
    """Return how a program that was spawned ended, with its report.

    Raises `VerifyError` when it was simctl that failed: `runner-not-startable`, and those of `simctl_error`.
    """
    if found := SIGNAL.search(done.stderr):
        return replace(done, returncode=-int(found[1]), stdout=report)
    if not report and done.returncode != 0:
        if any(words in done.stderr for words in FAULTS):
            raise simctl_error(done, where)
        if NOT_STARTED in done.stderr:
            raise not_startable(where, "\n".join(done.stderr.strip().splitlines()[-4:]))
    return replace(done, returncode=signalled(done.returncode), stdout=report or done.stdout)
