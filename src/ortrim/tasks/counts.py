"""Options that are whole numbers."""

from typing import Final

from ortrim.errors import UsageError

LARGEST_SIZE: Final = 2**31 - 1


def count_option(word: str, option: str) -> int | None:
    """Return the number that an option says, None for an empty word. Raises `UsageError` (`bad-option`)."""
    if not word:
        return None
    if len(word) <= 6 and word.isascii() and word.isdecimal() and int(word) > 0:
        return int(word)
    hint = "give a whole number from 1 to 999999"
    raise UsageError("bad-option", f"{word!r} is not possible here", where=f"--{option}", hint=hint)


def size_option(word: str) -> tuple[str, int]:
    """Read the size of a dimension, `NAME=SIZE`. Raises `UsageError` (`bad-option`)."""
    name, _, size = word.rpartition("=")
    if not (name and len(size) <= 10 and size.isascii() and size.isdecimal() and int(size) <= LARGEST_SIZE):
        raise UsageError(
            "bad-option", f"{word[:100]!r} is not possible here", where="--dim", hint="write --dim batch=1"
        )
    return name, int(size)
