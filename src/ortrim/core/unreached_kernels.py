"""Which of the kernels in MLAS's table a library can reach, by what its link took. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from ortrim.core.kernel_table import CONSTRUCTORS, KernelTable


@dataclass(frozen=True, kw_only=True)
class LinkedObject:
    """An object of MLAS: its source's base name, its symbols, and whether any of its code is in the library."""

    source: str
    defined: frozenset[str]
    undefined: frozenset[str]
    live: bool


def table_kernels(table: KernelTable, objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return the symbols of all kernels that the table's constructors name."""
    asked = frozenset[str]().union(*(each.undefined for each in objects if each.source in CONSTRUCTORS))
    return frozenset(symbol for symbol in asked if table.users(symbol) is not None)


def reached_kernels(left_out: frozenset[str], table: KernelTable, objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return those of the kernels left out of a library that code in it may ask for.

    That is code that uses an entry of the table in which they may stand, that names them itself, or that comes from
    the object which defines them and so may call them directly.
    """
    live = tuple(each for each in objects if each.live)
    sources = frozenset(each.source for each in live) | frozenset(CONSTRUCTORS)
    own = frozenset[str]().union(*(each.defined for each in live))
    named = frozenset[str]().union(*(each.undefined for each in live if each.source not in CONSTRUCTORS))
    asked = frozenset(symbol for symbol in left_out if (table.users(symbol) or frozenset()) & sources)
    return asked | left_out & (own | named)
