"""What the log of a farm's device tells of an app that crashed, for runs that left no results."""

import re
from pathlib import Path
from typing import Final

from ortrim.verify.devices.pulled_files import text_of

CRASH: Final = re.compile(r"FATAL EXCEPTION|Fatal signal|UnsatisfiedLinkError|Abort message|has died|ANR in")
MOST_LINES: Final = 3
MOST_LETTERS: Final = 200


def crash(log: Path) -> str:
    """Return the last lines of a device's log that tell of a crash; empty when there are none, or there is no log."""
    lines = [line.strip()[:MOST_LETTERS] for line in text_of(log).splitlines() if CRASH.search(line)]
    return "\n".join(lines[-MOST_LINES:])
