"""Relocatable objects and static libraries of them: their symbols. Sources: ar(5), System V ABI, chapter 4."""

import re
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from ortrim.binaries.elf import read_bytes, with_elf_type
from ortrim.binaries.macho import symbols as macho_symbols
from ortrim.binaries.macho.files import LC_SYMTAB, checked_header, diagnosed, is_thin, load_commands
from ortrim.binaries.static_archives import members_of
from ortrim.errors import BinaryError


def archive_members(path: Path) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a static library, each with its name as far as the header holds it."""
    return members_of(read_bytes(path), str(path))


OBJECT_TYPE: Final = 1
ENTRY: Final = struct.Struct("<IBBHQ")
STAB_MASK, TYPE_MASK, EXTERN = 0xE0, 0x0E, 0x01


def object_symbols(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield each symbol of a Mach-O object that others can see, without C's underscore, and whether it is defined here.

    Those that only the finished library hides are among them. A common symbol counts as defined.
    """
    if checked_header(data)[1] != OBJECT_TYPE:
        raise ValueError("it is not an object")
    for place, count, start_of_names, names_size in _tables(data):
        names = data[start_of_names : start_of_names + names_size]
        for number in range(count):
            start, kind, _, _, value = ENTRY.unpack_from(data, place + number * ENTRY.size)
            if kind & EXTERN and not kind & STAB_MASK:
                end = names.index(0, start)
                if end == start:
                    raise ValueError("a global symbol has no name")
                name = names[start:end].decode()
                yield name.removeprefix("_"), bool(kind & TYPE_MASK or value)


def _tables(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    for command, place in load_commands(data):
        if command == LC_SYMTAB:
            yield struct.unpack_from("<IIII", data, place + 8)


OBJECT: Final = ("ET_REL", "not-an-object", "this ELF file is not an object")
MISSING: Final = ("object-missing", "the object cannot be read")
LOCAL: Final = "STB_LOCAL"
UNDEFINED: Final = "SHN_UNDEF"
SYMBOL_TABLES: Final = (2, 11)  # SHT_SYMTAB and SHT_DYNSYM
SYMBOL: Final = {64: "IBxHxxxxxxxxxxxxxxxx", 32: "IxxxxxxxxBxH"}
"""What is read of a symbol: the place of its name, its binding and kind, its section (ELF's symbol table)."""


def read_object(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the mangled names that an object defines for others, and those that it needs, global and weak."""
    return visible_symbols(read_bytes(path, *MISSING), path)


def visible_symbols(data: bytes, where: str | Path = "") -> tuple[frozenset[str], frozenset[str]]:
    """Do what `read_object` does with an object in memory, which errors call `where`."""
    if is_thin(data):
        with diagnosed(str(where)):
            symbols = tuple(object_symbols(data))
    else:
        symbols = with_elf_type(data, Path(where), OBJECT, lambda elf: tuple(_visible_symbols(elf)))
    defined = frozenset(name for name, here in symbols if here)
    return defined, frozenset(name for name, here in symbols if not here) - defined


def own_references(path: Path) -> frozenset[str]:
    """Return the mangled names that an object both defines for others and refers to by name itself.

    A linker that gets another definition of such a name uses it in the object, too.
    """
    data = read_bytes(path, *MISSING)
    if is_thin(data):
        with diagnosed(str(path)):
            return macho_symbols.own_references(data)
    return with_elf_type(data, path, OBJECT, lambda elf: frozenset(_references(elf)))


def _references(elf: ELFFile) -> Iterator[str]:
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        table = elf.get_section(section["sh_link"])
        if not isinstance(table, SymbolTableSection):
            raise ValueError("relocations without symbols")  # noqa: TRY004 - of the file, not of an argument
        for number in {each["r_info_sym"] for each in section.iter_relocations()}:
            symbol = table.get_symbol(number)
            if symbol is None:
                raise ValueError("a relocation refers to a symbol that does not exist")
            if symbol["st_info"]["bind"] != LOCAL and symbol["st_shndx"] != UNDEFINED:
                yield symbol.name


def _visible_symbols(elf: ELFFile) -> Iterator[tuple[str, bool]]:
    """Yield each symbol that other objects can see, and whether it is defined here."""
    if not elf.num_sections():
        raise ValueError("it has no section headers")
    for table in _symbol_tables(elf):
        # A build reads half a million symbols; pyelftools' own objects of them take ten seconds.
        names = table.stringtable.data()
        entry = struct.Struct(("<" if elf.little_endian else ">") + SYMBOL[elf.elfclass])
        if table["sh_entsize"] != entry.size:
            raise ValueError("symbols of another size")
        for start, kind, section in entry.iter_unpack(table.data()):
            if kind >> 4:
                end = names.index(0, start)
                if end == start:
                    raise ValueError("a global symbol has no name")
                yield names[start:end].decode(), section != 0


def _symbol_tables(elf: ELFFile) -> Iterator[SymbolTableSection]:
    """Yield the symbol tables, by the kinds in the section headers: an object has a section for each function."""
    kind = struct.Struct(("<" if elf.little_endian else ">") + "4xI")
    elf.stream.seek(elf["e_shoff"])
    headers = elf.stream.read(elf["e_shentsize"] * elf.num_sections())
    for number in range(elf.num_sections()):
        known = kind.unpack_from(headers, number * elf["e_shentsize"])[0] in SYMBOL_TABLES
        if known and isinstance(table := elf.get_section(number), SymbolTableSection):
            yield table


NULL, SYMTAB, STRTAB, RELA, NOBITS, REL, GROUP, SYMTAB_SHNDX = 0, 2, 3, 4, 8, 9, 17, 18
LOCAL_BINDING, NO_SECTION = 0, 0
LARGEST_ALIGNMENT: Final = 1 << 16  # of a section, in bytes; a forged one would make a file of any size


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

    Offset and size are those that were read.
    """

    fields: tuple[int, ...]
    content: bytes

    @property
    def kind(self) -> int:
        """The section's type."""
        return self.fields[1]


@dataclass(frozen=True, kw_only=True)
class ObjectSymbol:
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
        return self.info >> 4 == LOCAL_BINDING

    @property
    def is_defined(self) -> bool:
        """Whether it is defined here, not in another object."""
        return self.section != NO_SECTION


@dataclass(frozen=True, kw_only=True)
class Relocatable:
    """A little-endian ELF object with one symbol table and no section groups: `ld.lld -r --force-group-allocation`."""

    layout: Layout
    header: tuple[int, ...]
    sections: tuple[Section, ...]
    table: int

    @property
    def names(self) -> int:
        """The number of the section that holds the symbols' names."""
        return self.sections[self.table].fields[6]

    def symbols(self) -> Iterator[ObjectSymbol]:
        """Yield the symbols in their order, the empty first one included."""
        names = self.sections[self.names].content
        for row in struct.iter_unpack(self.layout.symbol, self.sections[self.table].content):
            if self.layout.symbol_shift == LAYOUTS[1].symbol_shift:
                name, value, size, info, other, section = row
            else:
                name, info, other, section, value, size = row
            yield ObjectSymbol(
                name=text_at(names, name), value=value, size=size, info=info, other=other, section=section
            )  # fmt: skip

    def relocates(self, section: Section) -> bool:
        """Whether a section holds relocations by the symbols of this object."""
        return section.kind in {REL, RELA} and section.fields[6] == self.table

    def packed(self, symbol: ObjectSymbol, name: int) -> bytes:
        """Return a symbol as the table holds it; `name` is the place of its name."""
        if self.layout.symbol_shift == LAYOUTS[1].symbol_shift:
            row = (symbol.value, symbol.size, symbol.info, symbol.other, symbol.section)
        else:
            row = (symbol.info, symbol.other, symbol.section, symbol.value, symbol.size)
        return struct.pack(self.layout.symbol, name, *row)


def text_at(names: bytes, place: int) -> bytes:
    """Return the name at a place of a section of names."""
    return names[place : names.index(b"\0", place)]


def read_relocatable(data: bytes, where: str) -> Relocatable:
    """Return an object's parts."""
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
        raise ValueError("a section has an impossible address")
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


LLVM_ADDRSIG: Final = 0x6FFF4C03
"""A list of symbols by their numbers, for linkers that fold functions; it goes, rather than being renumbered."""
VISIBILITY: Final = 0x3
MAPPING: Final = b"$"  # begins the names of ARM's mapping symbols, which separate code from data
CALLED_AFTER: Final = re.compile(rb"^(\.[A-Za-z.]+?)\.(?:_|\.L).*$", re.DOTALL)
"""A section of one function or variable: `.text._ZN...`, `.rodata..L__const.name`."""

PC_RELATIVE: Final = {(183, 314): 261, (243, 59): 57}
"""By machine and type, the plain PC-relative relocation that does for one by the PLT where the symbol is defined here.

Clang's vtables of offsets have R_AARCH64_PLT32 and R_RISCV_PLT32, which GNU ld 2.40 does not read; it reads
R_AARCH64_PREL32 and R_RISCV_32_PCREL. Source: psABIs of AArch64 and RISC-V, "Relocations".
"""


def hide_symbols(data: bytes, offered: frozenset[str], where: str = "") -> bytes:
    """Return a relocatable object in which only the `offered` and the undefined symbols are global."""
    try:
        parts = read_relocatable(data, where)
        symbols = tuple(parts.symbols())
        _require(symbols, offered, where)
        return _hidden(parts, tuple(_local_unless(symbol, offered) for symbol in symbols))
    except (struct.error, LookupError, ValueError, TypeError) as error:
        hint = "it may be truncated: build it again"
        raise BinaryError("corrupt-elf", "the object is damaged", where=where, why=str(error), hint=hint) from error


def _require(symbols: Iterable[ObjectSymbol], offered: frozenset[str], where: str) -> None:
    defined = {symbol.name for symbol in symbols if symbol.is_defined and not symbol.is_local}
    missing = sorted(name for name in offered if name.encode() not in defined)
    if missing:
        what = f"the object does not define {', '.join(missing)}"
        raise BinaryError("symbol-missing", what, where=where, hint="build again; if it fails again, report it")


def _local_unless(symbol: ObjectSymbol, offered: frozenset[str]) -> ObjectSymbol:
    if symbol.is_local or not symbol.is_defined or symbol.name.decode(errors="replace") in offered:
        return symbol
    return replace(symbol, info=symbol.info & 0xF, other=symbol.other & ~VISIBILITY)


def _hidden(parts: Relocatable, symbols: Sequence[ObjectSymbol]) -> bytes:
    shift = parts.layout.symbol_shift
    needed = {
        info >> shift
        for section in parts.sections
        if parts.relocates(section)
        for _, info, *_ in struct.iter_unpack(parts.layout.relocation(section.kind), section.content)
    }
    kept = [number for number in range(1, len(symbols)) if number in needed or _is_kept(symbols[number])]
    inner = [0, *(number for number in kept if symbols[number].is_local)]  # locals first, as the format wants it
    order, local_count = inner + [number for number in kept if not symbols[number].is_local], len(inner)
    numbers = {old: new for new, old in enumerate(order)}
    here = {number for number in kept if symbols[number].is_defined}
    sections = [_renumbered(parts, section, numbers, here) for section in parts.sections]
    entries, names = _table(parts, [symbols[old] for old in order])
    fields = sections[parts.table].fields
    sections[parts.table] = Section(fields=(*fields[:7], local_count, *fields[8:]), content=entries)
    sections[parts.names] = replace(sections[parts.names], content=names)
    return written(parts, _renamed(sections, parts.header[13]))


def _is_kept(symbol: ObjectSymbol) -> bool:
    """Whether a symbol stays although nothing here needs it."""
    return symbol.name.startswith(MAPPING) or (symbol.is_defined and not symbol.is_local)


def _renumbered(parts: Relocatable, section: Section, numbers: dict[int, int], here: Collection[int]) -> Section:
    if section.kind == LLVM_ADDRSIG:
        return Section(fields=(0,) * len(section.fields), content=b"")
    if not parts.relocates(section):
        return section
    form, shift = parts.layout.relocation(section.kind), parts.layout.symbol_shift
    content = bytearray()
    for offset, info, *addend in struct.iter_unpack(form, section.content):
        symbol, kind = info >> shift, info & ((1 << shift) - 1)
        if symbol in here:
            kind = PC_RELATIVE.get((parts.header[2], kind), kind)
        content += struct.pack(form, offset, (numbers[symbol] << shift) | kind, *addend)
    return replace(section, content=bytes(content))


def _table(parts: Relocatable, symbols: Iterable[ObjectSymbol]) -> tuple[bytes, bytes]:
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
        if name not in self._places:
            self._places[name] = len(self.text)
            self.text += name + b"\0"
        return self._places[name]
