"""One object joined of many, with all that it does not offer made invisible to the linkers of applications.

`ld.lld -r` joins objects but leaves their symbols global, so that an application with an abseil or a C++ library of
its own would clash with ours. No tool of the pinned toolchain changes that, so it is done here: symbols become local
and lose their names, those that nothing needs go, and sections are no longer called after functions.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ortrim.binaries.relocatable import Relocatable, Section, Symbol, read_relocatable, text_at, written
from ortrim.errors import BinaryError

LLVM_ADDRSIG: Final = 0x6FFF4C03
"""A list of symbols by their numbers, for linkers that fold functions; it goes, rather than being renumbered."""
VISIBILITY: Final = 0x3
MAPPING: Final = b"$"
"""Begins the names by which ARM's linkers tell code from data."""
CALLED_AFTER: Final = re.compile(rb"^(\.[A-Za-z.]+?)\.(?:_|\.L).*$", re.DOTALL)
"""A section of one function or variable: `.text._ZN...`, `.rodata..L__const.name`."""


def hide_symbols(data: bytes, offered: frozenset[str], where: str = "") -> bytes:
    """Return a relocatable object in which only the `offered` names, and those asked of others, are visible.

    `where` names the file in errors. Raises `BinaryError` (`not-an-object`, `corrupt-elf`, or `symbol-missing` when
    the object does not define what it should offer).
    """
    try:
        parts = read_relocatable(data, where)
        symbols = tuple(parts.symbols())
        _require(symbols, offered, where)
        return _hidden(parts, tuple(_local_unless(symbol, offered) for symbol in symbols))
    except (struct.error, LookupError, ValueError, TypeError) as error:
        hint = "it may be truncated: build it again"
        raise BinaryError("corrupt-elf", "the object is damaged", where=where, why=str(error), hint=hint) from error


def visible_symbols(data: bytes, where: str = "") -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that an object offers and those that it asks others for. Raises as `hide_symbols` does."""
    try:
        seen = [symbol for symbol in read_relocatable(data, where).symbols() if not symbol.is_local]
    except (struct.error, LookupError, ValueError) as error:
        raise BinaryError("corrupt-elf", "the object is damaged", where=where, why=str(error)) from error
    names = [(symbol.name.decode(errors="backslashreplace"), symbol.is_defined) for symbol in seen]
    return frozenset(name for name, here in names if here), frozenset(name for name, here in names if not here)


def _require(symbols: Iterable[Symbol], offered: frozenset[str], where: str) -> None:
    defined = {symbol.name for symbol in symbols if symbol.is_defined and not symbol.is_local}
    missing = sorted(name for name in offered if name.encode() not in defined)
    if missing:
        what = f"the object does not define {', '.join(missing)}"
        raise BinaryError("symbol-missing", what, where=where, hint="build again; if it stays, report it")


def _local_unless(symbol: Symbol, offered: frozenset[str]) -> Symbol:
    if symbol.is_local or not symbol.is_defined or symbol.name.decode(errors="replace") in offered:
        return symbol
    return replace(symbol, info=symbol.info & 0xF, other=symbol.other & ~VISIBILITY)


def _hidden(parts: Relocatable, symbols: Sequence[Symbol]) -> bytes:
    order, local_count = _order(symbols, _needed(parts))
    numbers = {old: new for new, old in enumerate(order)}
    sections = [_renumbered(parts, section, numbers) for section in parts.sections]
    entries, names = _table(parts, [symbols[old] for old in order])
    fields = sections[parts.table].fields
    sections[parts.table] = Section(fields=(*fields[:7], local_count, *fields[8:]), content=entries)
    sections[parts.names] = replace(sections[parts.names], content=names)
    return written(parts, _renamed(sections, parts.header[13]))


def _needed(parts: Relocatable) -> set[int]:
    """Return the numbers of the symbols that a relocation goes by."""
    shift = parts.layout.symbol_shift
    return {
        info >> shift
        for section in parts.sections
        if parts.relocates(section)
        for _, info, *_ in struct.iter_unpack(parts.layout.relocation(section.kind), section.content)
    }


def _order(symbols: Sequence[Symbol], needed: set[int]) -> tuple[list[int], int]:
    """Return the numbers of the symbols that stay, locals first as the format wants it, and how many those are."""
    kept = [number for number in range(1, len(symbols)) if number in needed or _is_kept(symbols[number])]
    inner = [0, *(number for number in kept if symbols[number].is_local)]
    return inner + [number for number in kept if not symbols[number].is_local], len(inner)


def _is_kept(symbol: Symbol) -> bool:
    """Whether a symbol stays although nothing here needs it."""
    return symbol.name.startswith(MAPPING) or (symbol.is_defined and not symbol.is_local)


def _renumbered(parts: Relocatable, section: Section, numbers: dict[int, int]) -> Section:
    if section.kind == LLVM_ADDRSIG:
        return Section(fields=(0,) * len(section.fields), content=b"")
    if not parts.relocates(section):
        return section
    form, shift = parts.layout.relocation(section.kind), parts.layout.symbol_shift
    rows = (
        struct.pack(form, offset, (numbers[info >> shift] << shift) | (info & ((1 << shift) - 1)), *addend)
        for offset, info, *addend in struct.iter_unpack(form, section.content)
    )
    return replace(section, content=b"".join(rows))


def _table(parts: Relocatable, symbols: Iterable[Symbol]) -> tuple[bytes, bytes]:
    """Return the table and its names: those of visible symbols and of ARM's markers."""
    names, entries = _Names(), bytearray()
    for symbol in symbols:
        is_named = not symbol.is_local or symbol.name.startswith(MAPPING)
        entries += parts.packed(symbol, names.place(symbol.name if is_named else b""))
    return bytes(entries), bytes(names.text)


def _renamed(sections: Sequence[Section], table: int) -> list[Section]:
    """Take the functions' names out of the sections' names; `table` is the number of the section that holds these."""
    old, names, renamed = sections[table].content, _Names(), []
    for section in sections:
        name = CALLED_AFTER.sub(rb"\1", text_at(old, section.fields[0]))
        renamed.append(replace(section, fields=(names.place(name), *section.fields[1:])))
    renamed[table] = replace(renamed[table], content=bytes(names.text))
    return renamed


class _Names:
    """A section of names that grows, each name once."""

    def __init__(self) -> None:
        self.text = bytearray(b"\0")
        self._places = {b"": 0}

    def place(self, name: bytes) -> int:
        """Return where a name stands, and put it there the first time."""
        if name not in self._places:
            self._places[name] = len(self.text)
            self.text += name + b"\0"
        return self._places[name]
