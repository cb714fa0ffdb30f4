"""Property lists that nobody vouches for: XML or binary, a table at the top."""

import plistlib
from typing import Any, Final

from ortrim.errors import BinaryError

LARGEST: Final = 256 << 10


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
    return {str(key): value for key, value in content.items()}


def _damaged(where: str, why: str) -> BinaryError:
    hint = "it is neither XML nor binary with a table at its top: make it anew, `plutil -lint` on a Mac says more"
    return BinaryError("plist-damaged", "this is not a property list", where=where, why=why, hint=hint)
