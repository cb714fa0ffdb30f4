"""What a build prints: its progress while it runs, and its first error when it fails. Pure."""

import re
from collections.abc import Sequence
from typing import Final

NINJA_STEP: Final = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")
# A compiler's error, CMake's, the linker's, Python's: the first of them is the cause, the rest follow from it.
ERROR: Final = re.compile(
    r"((^|: )(fatal )?error: |^CMake Error|undefined (symbol|reference)|^[\w.]*Error: |^FAILED: |"
    r"No space left on device|^Killed$)"
)
UNDEFINED: Final = re.compile(r"undefined (symbol|reference)|Undefined symbols for architecture|: symbol not defined")
"""What lld, GNU ld and Apple's linker say when a definition is nowhere in the link; the last is lld's of an export."""
CONTEXT_LINES: Final = 6
FAILED: Final = "FAILED: "
QUOTES: Final = "'\""
"""CMake quotes the path of what is made as a shell would, when a folder's name has a character that a shell reads."""
KILLED: Final = "Killed"


def ninja_step(line: str) -> tuple[int, int, str] | None:
    """Return (steps done, steps in all, file just made) of a line of ninja's status, None for any other line."""
    found = NINJA_STEP.match(line)
    if found is None:
        return None
    return int(found[1]), int(found[2]), found[3].rstrip(QUOTES).rpartition("/")[2].removesuffix(".o")


def first_error(lines: Sequence[str]) -> str:
    """Return the first error of a log with the lines that follow it, or the log's end when none is recognised.

    A line `FAILED: ` of ninja only names the object; a compiler's own words after it are better. A compiler that was
    killed said nothing: then the object comes first.
    """
    errors = [n for n, line in enumerate(lines) if ERROR.search(line)]
    telling = [n for n in errors if not lines[n].startswith(FAILED)]
    start = (telling or errors or [max(0, len(lines) - CONTEXT_LINES)])[0]
    shown = [line[:300].rstrip() for line in lines[start : start + CONTEXT_LINES]]
    objects = [line for line in lines[:start] if line.startswith(FAILED)] if shown[:1] == [KILLED] else []
    return "\n".join(objects[-1:] + shown).strip()


def remedy(error: str) -> str:
    """Return what helps against an error of a build."""
    if KILLED in error:
        return "the system stopped the compiler, most often for want of memory: try again with --jobs 1"
    return "mend the cause and run the same command: it goes on where it stopped"
