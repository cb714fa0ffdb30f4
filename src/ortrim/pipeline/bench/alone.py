"""What keeps two measurements of this user from running at once on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

from ortrim.errors import UsageError
from ortrim.storage.cache import cache_folder
from ortrim.storage.folders import locked_if_free


@contextmanager
def alone() -> Iterator[None]:
    """Hold what only one of `bench` and `compare` may hold: two at once would measure each other.

    Raises `UsageError` (`bench-busy`).
    """
    with locked_if_free(cache_folder("bench") / "machine") as free:
        if not free:
            what, hint = "another bench is under way on this machine", "wait for its end: they would measure each other"
            raise UsageError("bench-busy", what, hint=hint)
        yield
