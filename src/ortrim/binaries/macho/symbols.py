"""Symbols of Mach-O files: what an object or a library defines, and where.

Source of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ortrim.binaries.elf import read_bytes
from ortrim.binaries.macho.files import LC_SYMTAB, checked_header, diagnosed, load_commands
from ortrim.binaries.static_archives import members_of

SEGMENT: Final = 0x19
SYMBOL: Final = struct.Struct("<IBBHQ")
STAB_MASK, TYPE_MASK, IN_SECTION, EXTERN, WEAK = 0xE0, 0x0E, 0x0E, 0x01, 0x0080
RELOCATED_BY_SYMBOL: Final = 0x08000000  # r_extern
UNWINDING: Final = frozenset({b"__compact_unwind", b"__eh_frame"})
STARTUP: Final = "__StaticInit"  # where clang puts what makes a source's globals
CODE: Final = 0x80000000 | 0x00000400  # S_ATTR_PURE_INSTRUCTIONS and S_ATTR_SOME_INSTRUCTIONS


class DefinedSymbol(NamedTuple):
    """A symbol with a place: its name as C and C++ spell it, its address, its section, and whether it holds code."""

    name: str
    address: int
    section: str
    code: bool
    weak: bool

    @property
    def elf_section(self) -> str:
        """The section that it would have in an ELF object, in which each function and variable has one."""
        if not self.code:
            return f".data.{self.name}"
        return ".text.startup" if self.section == STARTUP else f".text.{self.name}"


def defined_symbols(path: Path) -> tuple[DefinedSymbol, ...]:
    """Return the symbols that a file of one architecture defines, in the order of its table."""
    data = read_bytes(path)
    with diagnosed(str(path)):
        checked_header(data)
        return tuple(_defined(data))


def own_references(data: bytes) -> frozenset[str]:
    """Return what `objects.own_references` does of a Mach-O object: of calls and addresses, not of unwind tables."""
    start, _, names, _ = _table(data)
    found = set()
    for number in _targets(data):
        at, kind, _, _, _ = SYMBOL.unpack_from(data, start + number * SYMBOL.size)
        if kind & EXTERN and kind & TYPE_MASK == IN_SECTION:
            found.add(data[names + at : data.index(0, names + at)].decode().removeprefix("_"))
    return frozenset(found)


def _targets(data: bytes) -> set[int]:
    """Return the numbers of the symbols that the code and the data of an object refer to."""
    found = set()
    for place in _section_places(data):
        relocations, count = struct.unpack_from("<II", data, place + 56)
        if data[place : place + 16].rstrip(b"\0") not in UNWINDING:
            words = struct.iter_unpack("<4xI", data[relocations : relocations + 8 * count])
            found |= {word & 0xFFFFFF for (word,) in words if word & RELOCATED_BY_SYMBOL}
    return found


def yield_to_others(archive: Path, names: Collection[str]) -> None:
    """Make these symbols weak in all objects of a static library, so that a definition elsewhere stands instead."""
    data = read_bytes(archive)
    content, end = bytearray(data), 0
    wanted = {name for name in (f"_{each}".encode() for each in names) if name in data}
    for _, member in members_of(data, str(archive)) if wanted else ():
        end = data.index(member, end) + len(member)
        start, count, texts, _ = _table(member)
        for place in range(start, start + count * SYMBOL.size, SYMBOL.size):
            at, kind, _, note, _ = SYMBOL.unpack_from(member, place)
            if (
                kind & EXTERN
                and kind & TYPE_MASK == IN_SECTION
                and member[texts + at : member.index(0, texts + at)] in wanted
            ):
                struct.pack_into("<H", content, end - len(member) + place + 6, note | WEAK)
    if content != data:
        archive.write_bytes(content)


def _table(data: bytes) -> tuple[int, int, int, int]:
    """Return places and numbers of the symbols and of their names; an empty source's object has no table."""
    place = dict(load_commands(data)).get(LC_SYMTAB)
    start, count, names, size = struct.unpack_from("<4I", data, place + 8) if place is not None else (0, 0, 0, 0)
    return start, count, names, size


def _defined(data: bytes) -> Iterator[DefinedSymbol]:
    sections = tuple(_sections(data))
    start, count, names, _ = _table(data)
    for place in range(start, start + count * SYMBOL.size, SYMBOL.size):
        at, kind, section, note, value = SYMBOL.unpack_from(data, place)
        if not kind & STAB_MASK and kind & TYPE_MASK == IN_SECTION:
            name = data[names + at : data.index(0, names + at)].decode().removeprefix("_")
            where, code = sections[section - 1]
            yield DefinedSymbol(name, value, where, code=code, weak=bool(note & WEAK))


def _sections(data: bytes) -> Iterator[tuple[str, bool]]:
    for place in _section_places(data):
        (flags,) = struct.unpack_from("<I", data, place + 64)
        yield data[place : place + 16].rstrip(b"\0").decode(), bool(flags & CODE)


def _section_places(data: bytes) -> Iterator[int]:
    for kind, place in load_commands(data):
        if kind == SEGMENT:
            (count,) = struct.unpack_from("<I", data, place + 64)
            yield from range(place + 72, place + 72 + 80 * count, 80)
