"""The part of a job's log that says why a step failed. Pure."""

import re
from collections import deque
from collections.abc import Iterable
from typing import Final

EXCERPT_LINES: Final = 40
LONGEST_LINE: Final = 500
TIMESTAMP: Final = re.compile(r"\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z ?")
"""What GitHub puts before each line; compared as text, to the second, with the times of steps."""
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
ERROR: Final = "##[error]"


def excerpt(lines: Iterable[str], started: str = "", completed: str = "") -> tuple[str, ...]:
    """Return the last lines up to the last error, without timestamps and colours.

    Only lines written between `started` and `completed` count (`2026-11-21T10:00:00Z`; empty: no limit), since the
    steps that clean up afterwards write into the same log. A line without a time belongs to the one before it. Needs
    memory for the excerpt alone.
    """
    kept: deque[str] = deque(maxlen=EXCERPT_LINES)
    best: tuple[str, ...] = ()
    inside = not started
    for line in lines:
        match = TIMESTAMP.match(line)
        if match:
            inside = (not started or match[1] >= started[:19]) and (not completed or match[1] <= completed[:19])
        if not inside:
            continue
        text = COLOURS.sub("", line[match.end() if match else 0 :]).rstrip()
        kept.append(text.replace(ERROR, "error: ")[:LONGEST_LINE])
        if ERROR in text:
            best = tuple(kept)
    return best or tuple(kept)
