"""The leaves of a section of a library that has kept its symbols and has no link map."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from elftools.elf.elffile import ELFFile

from ortrim.binaries.components import OTHER, component_of_symbol
from ortrim.binaries.demangling import demangled
from ortrim.binaries.extents import Claim, divided
from ortrim.binaries.file_layout import Part
from ortrim.binaries.leaves import REST, Leaf

KINDS: Final = frozenset({1, 2, 6, 10})
"""STT_OBJECT, STT_FUNC, STT_TLS and STT_GNU_IFUNC: the symbols that stand for bytes of their own."""
FIELDS: Final = {32: ("IIIBBH", (0, 1, 2, 3, 5)), 64: ("IBBHQQ", (0, 4, 5, 1, 3))}
"""How an entry of the table is laid out, and where in it are: name, value, size, info, section's number."""


@dataclass(frozen=True, kw_only=True)
class ElfSymbol:
    """A symbol of the library with its place and size; its name is demangled where that is possible."""

    name: str
    address: int
    size_bytes: int


Symbols = Mapping[int, tuple[ElfSymbol, ...]]
"""Symbols by the number of their section."""


def read_symbols(elf: ELFFile) -> Symbols:
    """Return the symbols that have a size, of the full table alone: what is exported would tell little."""
    found: dict[int, list[ElfSymbol]] = {}
    for table in elf.iter_sections("SHT_SYMTAB"):
        for section, symbol in _entries(elf, table.data(), elf.get_section(table["sh_link"]).data()):
            found.setdefault(section, []).append(symbol)
    names = demangled({symbol.name for symbols in found.values() for symbol in symbols})
    return {
        section: tuple(replace(symbol, name=names.get(symbol.name, symbol.name)) for symbol in symbols)
        for section, symbols in found.items()
    }


def _entries(elf: ELFFile, table: bytes, names: bytes) -> Iterator[tuple[int, ElfSymbol]]:
    """Yield symbols with their sections' numbers; in one go, since pyelftools reads a file bit by bit."""
    layout, places = FIELDS[elf.elfclass]
    entry = struct.Struct(("<" if elf.little_endian else ">") + layout)
    for fields in entry.iter_unpack(table[: len(table) // entry.size * entry.size]):
        name, address, size, info, section = (fields[place] for place in places)
        if size and info & 0xF in KINDS:
            text = names[name : names.find(b"\0", name)].decode(errors="replace")
            yield section, ElfSymbol(name=text, address=address, size_bytes=size)


def symbol_leaves(symbols: Iterable[ElfSymbol], part: Part, start: int, end: int) -> Iterator[Leaf]:
    """Yield the leaves of the bytes of a section that are loaded at `start` to before `end`."""
    claims = (Claim(start=each.address, end=each.address + each.size_bytes, owner=each.name) for each in symbols)
    rest = 0
    for piece in divided(start, end, claims):
        if piece.owner is None:
            rest += piece.size_bytes
            continue
        told = component_of_symbol(piece.owner)
        component = part.content if told == OTHER else told
        yield Leaf(component=component, section=part.name, symbol=piece.owner, size_bytes=piece.size_bytes)
    if rest:
        yield Leaf(component=part.content, section=part.name, symbol=REST, size_bytes=rest)
