"""A limit on what the process of a script may take; scripts get it by `runpy`, since none is on another's path."""

import contextlib


def limit_memory(wanted: int) -> None:
    """Let what needs more than `wanted` bytes fail by itself, where the system has such limits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - Windows has none

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
