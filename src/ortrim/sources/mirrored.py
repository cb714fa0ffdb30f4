"""Addresses read at another place than they name: where a network reaches mirrors alone, and in tests. Pure."""

from collections.abc import Sequence

Mirrors = Sequence[tuple[str, str]]
"""Pairs: the beginning of an address, and what stands in its place."""


def mirrored(url: str, mirrors: Mirrors) -> str:
    """Return where an address is read: the first of the mirrors that fits counts."""
    for prefix, replacement in mirrors:
        if url.startswith(prefix):
            return replacement + url[len(prefix) :]
    return url
