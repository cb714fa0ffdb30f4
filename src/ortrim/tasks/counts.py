"""Options that are whole numbers."""

from ortrim.errors import UsageError


def count_option(word: str, option: str) -> int | None:
    """Return the number that an option says, None for an empty word. Raises `UsageError` (`bad-option`)."""
    if not word:
        return None
    if len(word) <= 6 and word.isascii() and word.isdecimal() and int(word) > 0:
        return int(word)
    hint = "give a whole number from 1 to 999999"
    raise UsageError("bad-option", f"{word!r} is not possible here", where=f"--{option}", hint=hint)
