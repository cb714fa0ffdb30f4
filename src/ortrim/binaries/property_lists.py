"""Property lists that nobody vouches for: XML or binary, a table at the top."""

import plistlib
from typing import Any, Final

from ortrim.errors import BinaryError

LARGEST: Final = 256 << 10
MOST_VALUES: Final = 50_000
"""A list of 256 KB as XML has fewer; in a binary one a value may be named many times, so that it unfolds to more."""
MOST_DEPTH: Final = 50


def read_plist(data: bytes, where: str) -> dict[str, Any]:
    """Return the table in a property list. Raises `BinaryError` (`plist-damaged`) for all that is none."""
    if len(data) > LARGEST:
        raise _damaged(where, f"it has {len(data):,} bytes")
    try:
        content = plistlib.loads(data)
    except Exception as error:  # expat's, plistlib's own, and what damaged binary ones make Python raise
        raise _damaged(where, f"{type(error).__name__}: {str(error)[:200]}") from error
    if not isinstance(content, dict):
        raise _damaged(where, f"it holds a {type(content).__name__}")
    if why := _unbounded(content):
        raise _damaged(where, why)
    return {str(key): value for key, value in content.items()}


def _unbounded(content: Any) -> str:
    """Return why what was read cannot be told, empty when it can."""
    waiting, seen = [(content, 1)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > MOST_DEPTH:
            return f"it has more than {MOST_DEPTH} levels"
        if seen > MOST_VALUES:
            return f"it comes to more than {MOST_VALUES:,} values"
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting.extend((each, depth + 1) for each in inner)
    return ""


def _damaged(where: str, why: str) -> BinaryError:
    hint = "it is neither XML nor binary with a table at its top: make it anew, `plutil -lint` on a Mac says more"
    return BinaryError("plist-damaged", "this is not a property list", where=where, why=why, hint=hint)
