"""Names that a user gives of what a buildspec has."""

from collections.abc import Sequence
from difflib import get_close_matches

from ortrim.errors import UsageError


def require_known(reference: str, option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is not known; the hint has one that is close, else all of them.

    Raises `UsageError` with this reference.
    """
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known)}"
            raise UsageError(reference, f"there is no {name[:100]!r}", where=option, hint=hint)
