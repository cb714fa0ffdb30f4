"""A Mach-O library that offers chosen names alone: what Apple's linker does when it is given a list of exports.

zig's linker takes such a list and passes it over: it offers every symbol that no compiler has hidden, and names of its
own (`__mh_dylib_header`, `___dso_handle`). It also has the loader look for every weak symbol in all libraries of the
program, where a Mac's C++ library would answer for the one inside. So it is done here, afterwards: other symbols become
local, what is weak is the library's own, the exports trie is written anew, and the signature with it. Nothing moves:
every part keeps its place and its size.

Source of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

import lief

from ortrim.binaries.macho import diagnosed
from ortrim.binaries.macho_commands import load_commands
from ortrim.binaries.macho_layout import LC_DYSYMTAB, LC_SYMTAB, checked_header
from ortrim.binaries.macho_signature import signed_anew
from ortrim.binaries.macho_trie import exports_trie
from ortrim.errors import BinaryError

lief.logging.disable()

LIBRARY_TYPE: Final = 6
LC_DYLD_INFO_ONLY: Final = 0x80000022
WEAK_FIELD, EXPORT_FIELD = 24, 40
"""Where `weak_bind_off` and `export_off` lie in LC_DYLD_INFO_ONLY, each before its size."""
FLAGS_FIELD: Final = 24
WEAK_FLAGS: Final = 0x8000 | 0x10000
"""MH_WEAK_DEFINES and MH_BINDS_TO_WEAK, in the header's flags."""
WEAK: Final = lief.MachO.DyldBindingInfo.CLASS.WEAK
SYMBOL: Final = struct.Struct("<IBBHQ")
INDEX: Final = struct.Struct("<I")
EXTERN, PRIVATE_EXTERN = 0x01, 0x10
OF_NO_SYMBOL: Final = (0x80000000, 0x40000000, 0xC0000000)
"""INDIRECT_SYMBOL_LOCAL, INDIRECT_SYMBOL_ABS and both.

zig's linker leaves as many entries as memory was as there are pointers to the library's own symbols; to Apple's tools
such a number of no symbol is damage.
"""


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """An entry of the table of symbols, and the number that it has had there."""

    number: int
    name: str
    start: int
    kind: int
    section: int
    note: int
    value: int

    def packed(self) -> bytes:
        """Return the entry as it is written."""
        return SYMBOL.pack(self.start, self.kind, self.section, self.note, self.value)


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Where the load commands of a library lie that say what it offers, and what they say."""

    symtab: int
    dysymtab: int
    dyld_info: int
    symbols: int
    count: int
    names: int
    first_offered: int
    offered: int
    indirect: int
    indirects: int


def with_exports(data: bytes, names: Collection[str], where: str = "") -> bytes:
    """Return a library that offers these names alone, as the linker writes them, signed anew if it was signed.

    Raises `BinaryError`: `not-mach-o`, `corrupt-mach-o`, or `symbol-missing` for a name that it does not define.
    """
    with diagnosed(where):
        if checked_header(data).file_type != LIBRARY_TYPE:
            raise BinaryError("not-mach-o", "this is not a Mach-O library", where=where)
        _require_own_definitions(data)
        tables = _tables(data)
        offered = tuple(_offered(data, tables))
        kept = tuple(symbol for symbol in offered if symbol.name in names)
        if missing := sorted(set(names) - {symbol.name for symbol in kept}):
            what = f"the library does not define {', '.join(missing)}"
            raise BinaryError("symbol-missing", what, where=where, hint="build again; if it stays, report it")
        hidden = tuple(_hidden(symbol) for symbol in offered if symbol.name not in names)
        content = bytearray(data)
        _write_symbols(content, tables, hidden, kept)
        _bind_nothing_weakly(content, tables)
        _write_trie(content, tables, exports_trie({symbol.name: symbol.value for symbol in kept}))
        return signed_anew(bytes(content))


def _tables(data: bytes) -> Tables:
    """Find the tables. Raises ValueError for a library that has none, or another kind of exports."""
    places = dict(load_commands(data))
    try:
        symtab, dysymtab, dyld_info = (places[kind] for kind in (LC_SYMTAB, LC_DYSYMTAB, LC_DYLD_INFO_ONLY))
    except KeyError as error:
        raise ValueError(f"it has no load command {error.args[0]:#x}") from error
    symbols, count, names, _ = struct.unpack_from("<4I", data, symtab + 8)
    _, _, first_offered, offered = struct.unpack_from("<4I", data, dysymtab + 8)
    indirect, indirects = struct.unpack_from("<2I", data, dysymtab + 56)
    return Tables(
        symtab=symtab,
        dysymtab=dysymtab,
        dyld_info=dyld_info,
        symbols=symbols,
        count=count,
        names=names,
        first_offered=first_offered,
        offered=offered,
        indirect=indirect,
        indirects=indirects,
    )


def _offered(data: bytes, tables: Tables) -> Iterator[Symbol]:
    for number in range(tables.first_offered, tables.first_offered + tables.offered):
        start, kind, section, note, value = SYMBOL.unpack_from(data, tables.symbols + number * SYMBOL.size)
        place = tables.names + start
        name = data[place : data.index(0, place)].decode()
        yield Symbol(number=number, name=name, start=start, kind=kind, section=section, note=note, value=value)


def _hidden(symbol: Symbol) -> Symbol:
    return replace(symbol, kind=symbol.kind & ~EXTERN | PRIVATE_EXTERN)


def _write_symbols(content: bytearray, tables: Tables, hidden: tuple[Symbol, ...], kept: tuple[Symbol, ...]) -> None:
    """Put what is hidden at the end of the local symbols, before what is offered, and renumber what goes by numbers."""
    renumbered = {}
    for number, symbol in enumerate((*hidden, *kept), tables.first_offered):
        SYMBOL.pack_into(content, tables.symbols + number * SYMBOL.size, *SYMBOL.unpack(symbol.packed()))
        renumbered[symbol.number] = number
    local = tables.first_offered + len(hidden)
    struct.pack_into("<4I", content, tables.dysymtab + 8, 0, local, local, len(kept))
    for place in range(tables.indirect, tables.indirect + tables.indirects * INDEX.size, INDEX.size):
        (number,) = INDEX.unpack_from(content, place)
        number = renumbered.get(number, number)
        INDEX.pack_into(content, place, number if number < tables.count or number in OF_NO_SYMBOL else OF_NO_SYMBOL[0])


def _require_own_definitions(data: bytes) -> None:
    """Refuse a library without a definition of its own of a weak symbol: a pointer to it that moves along."""
    parsed = lief.MachO.parse(data)
    binary = parsed.at(0) if parsed is not None else None
    if binary is None:
        raise ValueError("LIEF cannot read it")
    own = {relocation.address for relocation in binary.relocations}
    for binding in binary.bindings:
        weak = isinstance(binding, lief.MachO.DyldBindingInfo) and binding.binding_class == WEAK
        if weak and binding.address not in own:
            raise ValueError(f"the weak symbol at {binding.address:#x} is another library's")


def _bind_nothing_weakly(content: bytearray, tables: Tables) -> None:
    """Fill the instructions for weak symbols with zeros, each of which says that they end."""
    place, size = struct.unpack_from("<II", content, tables.dyld_info + WEAK_FIELD)
    content[place : place + size] = bytes(size)
    (flags,) = struct.unpack_from("<I", content, FLAGS_FIELD)
    struct.pack_into("<I", content, FLAGS_FIELD, flags & ~WEAK_FLAGS)


def _write_trie(content: bytearray, tables: Tables, trie: bytes) -> None:
    """Write the trie in place of the old one, which is never smaller; what is left over is filled with zeros."""
    place, size = struct.unpack_from("<II", content, tables.dyld_info + EXPORT_FIELD)
    if len(trie) > size:
        raise ValueError("there is no room for its exports")
    content[place : place + size] = trie.ljust(size, b"\0")
