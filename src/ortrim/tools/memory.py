"""Memory that ran out, which is the fault of no model: how programs say so, and what limits them here."""

import re
from typing import Final

from ortrim.errors import MemoryShortage

SHORTAGE: Final = re.compile(
    r"bad_alloc|bad allocation|MemoryError|annot allocate memory|ailed to allocate|nable to allocate|alloc failed"
    r"|failed to map segment|out of memory|can't start new thread",
)
"""What C++, Python, NumPy, protobuf, ONNX Runtime and the loader of libraries say."""


def memory_limit() -> int | None:
    """Return how many bytes of address space a process may take here (`ulimit -v`), None for any."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def is_shortage(printed: str, own_limit: int | None = None) -> bool:
    """Whether a program failed because of the limit on memory here, unless it had a lower one of its own.

    Without such a limit, a model that asks for more than there is has itself to blame.
    """
    limit = memory_limit()
    return limit is not None and (own_limit is None or limit < own_limit) and SHORTAGE.search(printed) is not None


def out_of_memory(where: str = "", why: str = "") -> MemoryShortage:
    """Return the diagnostic of memory that ran out; it names the limit."""
    limit = memory_limit()
    what = "memory ran out" if limit is None else f"memory ran out: a process may take {limit / 1e6:,.0f} MB here"
    hint = "raise the limit: ulimit -v unlimited" if limit else "free memory, or use a machine or container with more"
    return MemoryShortage("out-of-memory", what, where=where, why=why, hint=hint)
