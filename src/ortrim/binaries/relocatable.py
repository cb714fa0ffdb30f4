"""Relocatable ELF objects as sections, symbols and relocations that can be changed and written again.

Little-endian objects of 32 and 64 bits with one symbol table, without section groups: what `ld.lld -r
--force-group-allocation` writes. Source: the System V ABI, chapter 4.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.errors import BinaryError

NULL, SYMTAB, STRTAB, RELA, NOBITS, REL, GROUP, SYMTAB_SHNDX = 0, 2, 3, 4, 8, 9, 17, 18
LOCAL, UNDEFINED = 0, 0
LARGEST_ALIGNMENT: Final = 1 << 16
"""Of a section, in bytes; a forged one would make a file of any size."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What differs between 32 and 64 bits: `struct` formats, and by how much a relocation's symbol is shifted."""

    header: str
    section: str
    symbol: str
    rel: str
    rela: str
    symbol_shift: int

    def relocation(self, kind: int) -> str:
        """Return the format of the entries of a relocation section."""
        return self.rela if kind == RELA else self.rel


LAYOUTS: Final = {
    1: Layout(header="<16sHHIIIIIHHHHHH", section="<10I", symbol="<IIIBBH", rel="<II", rela="<IIi", symbol_shift=8),
    2: Layout(
        header="<16sHHIQQQIHHHHHH", section="<IIQQQQIIQQ", symbol="<IBBHQQ", rel="<QQ", rela="<QQq", symbol_shift=32
    ),
}


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section: its header's fields in order (name, type, flags, address, offset, size, link, info, ...), its bytes.

    Offset and size in `fields` are those that were read; a section without bytes in the file keeps its size.
    """

    fields: tuple[int, ...]
    content: bytes

    @property
    def kind(self) -> int:
        """The section's type."""
        return self.fields[1]


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """One symbol: `info` and `other` hold binding, type and visibility as the format packs them."""

    name: bytes
    value: int
    size: int
    info: int
    other: int
    section: int

    @property
    def is_local(self) -> bool:
        """Whether no other object can see it."""
        return self.info >> 4 == LOCAL

    @property
    def is_defined(self) -> bool:
        """Whether it is here, rather than asked of another object."""
        return self.section != UNDEFINED


@dataclass(frozen=True, kw_only=True)
class Relocatable:
    """An object: the fields of its header, its sections, and the number of the one with the symbols."""

    layout: Layout
    header: tuple[int, ...]
    sections: tuple[Section, ...]
    table: int

    @property
    def names(self) -> int:
        """The number of the section that holds the symbols' names."""
        return self.sections[self.table].fields[6]

    def symbols(self) -> Iterator[Symbol]:
        """Yield the symbols in their order, the empty first one included."""
        names = self.sections[self.names].content
        for row in struct.iter_unpack(self.layout.symbol, self.sections[self.table].content):
            if self.layout.symbol_shift == LAYOUTS[1].symbol_shift:
                name, value, size, info, other, section = row
            else:
                name, info, other, section, value, size = row
            yield Symbol(
                name=text_at(names, name), value=value, size=size, info=info, other=other, section=section
            )  # fmt: skip

    def relocates(self, section: Section) -> bool:
        """Whether a section holds relocations by the symbols of this object."""
        return section.kind in {REL, RELA} and section.fields[6] == self.table

    def packed(self, symbol: Symbol, name: int) -> bytes:
        """Return a symbol as the table holds it; `name` is the place of its name."""
        if self.layout.symbol_shift == LAYOUTS[1].symbol_shift:
            row = (symbol.value, symbol.size, symbol.info, symbol.other, symbol.section)
        else:
            row = (symbol.info, symbol.other, symbol.section, symbol.value, symbol.size)
        return struct.pack(self.layout.symbol, name, *row)


def text_at(names: bytes, place: int) -> bytes:
    """Return the name at a place of a section of names. Raises ValueError when there is none."""
    return names[place : names.index(b"\0", place)]


def read_relocatable(data: bytes, where: str) -> Relocatable:
    """Return an object's parts. Raises `BinaryError` (`not-an-object`), ValueError or struct.error for damaged ones."""
    if data[:4] != b"\x7fELF" or len(data) < 20 or data[4] not in LAYOUTS or data[5:6] + data[16:18] != b"\1\1\0":
        what, why = "this is not a little-endian relocatable ELF object", f"it begins with {data[:20]!r}"
        raise BinaryError("not-an-object", what, where=where, why=why)
    layout = LAYOUTS[data[4]]
    header = struct.unpack_from(layout.header, data)
    start, count, size = header[6], header[12], struct.calcsize(layout.section)
    if not count or start + count * size > len(data):
        raise ValueError("its section headers are not in the file, or there are too many")
    rows = [struct.unpack_from(layout.section, data, start + size * number) for number in range(count)]
    sections = tuple(Section(fields=row, content=_content(data, row)) for row in rows)
    if max(section.fields[8] for section in sections) > LARGEST_ALIGNMENT:
        raise ValueError("a section wants to lie where no real one does")
    tables = [number for number, section in enumerate(sections) if section.kind == SYMTAB]
    if len(tables) != 1 or any(section.kind in {GROUP, SYMTAB_SHNDX} for section in sections):
        raise ValueError("it has section groups, too many sections, or not exactly one table of symbols")
    return Relocatable(layout=layout, header=header, sections=sections, table=tables[0])


def _content(data: bytes, fields: tuple[int, ...]) -> bytes:
    if fields[1] in {NULL, NOBITS}:
        return b""
    if fields[4] + fields[5] > len(data):
        raise ValueError("a section reaches beyond the end of the file")
    return data[fields[4] : fields[4] + fields[5]]


def written(parts: Relocatable, sections: Sequence[Section]) -> bytes:
    """Return the object with these sections, as many as before and in their order, each aligned; headers behind."""
    layout = parts.layout
    data, rows = bytearray(struct.calcsize(layout.header)), []
    for section in sections:
        fields = section.fields
        data += bytes(-len(data) % max(fields[8], 1))
        size = fields[5] if section.kind in {NULL, NOBITS} else len(section.content)
        rows.append((*fields[:4], len(data) if section.kind else 0, size, *fields[6:]))
        data += section.content
    data += bytes(-len(data) % 8)
    struct.pack_into(layout.header, data, 0, *parts.header[:6], len(data), *parts.header[7:])
    return bytes(data) + b"".join(struct.pack(layout.section, *row) for row in rows)
