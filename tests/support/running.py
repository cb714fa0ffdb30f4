"""What runs on this machine."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def running() -> str:
    """Return the command lines of all processes, one a line; those that have ended have none."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
    return "\n".join(lines)


def processes_that_say(word: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


def processes_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cwd").readlink().is_relative_to(folder):
                found.append(int(entry.name))
    return found


def end_all(word: str) -> None:
    """Kill every process that has `word`, a name of one test's own, in its command line; what failed left them."""
    for number in processes_that_say(word):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
