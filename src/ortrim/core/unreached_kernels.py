"""Which of the kernels in MLAS's table a library can reach, by what its link took. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from ortrim.core.kernel_table import CONSTRUCTORS, KernelTable


@dataclass(frozen=True, kw_only=True)
class LinkedObject:
    """An object: its source's base name, its symbols, and what of its code is in the library.

    `live` says whether any of it is, `functions` names what is, as far as each function lies in a section of its own;
    None where that is not so. `data` says whether any of its data are, such as a table of functions. `own` are the
    symbols that it defines and itself refers to by name.
    """

    source: str
    defined: frozenset[str]
    undefined: frozenset[str]
    live: bool
    data: bool = False
    functions: frozenset[str] | None = None
    own: frozenset[str] = frozenset()


def table_kernels(table: KernelTable, objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return the symbols of all kernels that the table's constructors name."""
    asked = frozenset[str]().union(*(each.undefined for each in objects if each.source in CONSTRUCTORS))
    return frozenset(symbol for symbol in asked if table.users(symbol) is not None)


def reached_kernels(left_out: frozenset[str], table: KernelTable, objects: Iterable[LinkedObject]) -> frozenset[str]:
    """Return those of the kernels left out of a library that code in it may ask for.

    That is code that uses an entry of the table in which they may stand, or code or data that name them, also in the
    object that defines them. An object of which nothing but `getters` of the table is in the library asks for none.
    """
    uses = tuple(each for each in objects if each.live and not _only_gets(table, each))
    names = (*uses, *(each for each in objects if each.data))
    sources = frozenset(each.source for each in uses) | frozenset(CONSTRUCTORS)
    own = frozenset[str]().union(*(each.own for each in names))
    named = frozenset[str]().union(*(each.undefined for each in names if each.source not in CONSTRUCTORS))
    asked = frozenset(symbol for symbol in left_out if (table.users(symbol) or frozenset()) & sources)
    return asked | left_out & (own | named)


def _only_gets(table: KernelTable, linked: LinkedObject) -> bool:
    return bool(linked.functions) and all(map(table.only_gets, linked.functions or ()))
