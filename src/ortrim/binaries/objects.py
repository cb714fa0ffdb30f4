"""Relocatable objects, ELF or Mach-O: their exported and undefined symbols."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from ortrim.binaries.elf import with_elf_type
from ortrim.binaries.macho import LC_SYMTAB, checked_header, diagnosed, is_thin, load_commands
from ortrim.errors import BinaryError

OBJECT_TYPE: Final = 1
ENTRY: Final = struct.Struct("<IBBHQ")
STAB_MASK, TYPE_MASK, EXTERN = 0xE0, 0x0E, 0x01


def object_symbols(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield each symbol of a Mach-O object that others can see, without C's underscore, and whether it is defined here.

    Those that only the finished library hides are among them. A common symbol counts as defined.
    """
    if checked_header(data).file_type != OBJECT_TYPE:
        raise ValueError("it is not an object")
    for place, count, start_of_names, names_size in _tables(data):
        names = data[start_of_names : start_of_names + names_size]
        for number in range(count):
            start, kind, _, _, value = ENTRY.unpack_from(data, place + number * ENTRY.size)
            if kind & EXTERN and not kind & STAB_MASK:
                name = _name(names, start)
                yield name.removeprefix("_"), bool(kind & TYPE_MASK or value)


def _tables(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    for command, place in load_commands(data):
        if command == LC_SYMTAB:
            yield struct.unpack_from("<IIII", data, place + 8)


def _name(names: bytes, start: int) -> str:
    end = names.index(0, start)
    if end == start:
        raise ValueError("a global symbol has no name")
    return names[start:end].decode()


OBJECT: Final = ("ET_REL", "not-an-object", "this ELF file is not an object")
LOCAL: Final = "STB_LOCAL"
UNDEFINED: Final = "SHN_UNDEF"
SYMBOL_TABLES: Final = (2, 11)
"""SHT_SYMTAB and SHT_DYNSYM."""
SYMBOL: Final = {64: "IBxHxxxxxxxxxxxxxxxx", 32: "IxxxxxxxxBxH"}
"""What is read of a symbol: the place of its name, its binding and kind, its section (ELF's symbol table)."""


def read_object(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the mangled names that an object defines for others, and those that it needs, global and weak."""
    data = _read_bytes(path)
    if is_thin(data):
        with diagnosed(str(path)):
            symbols = tuple(object_symbols(data))
    else:
        symbols = with_elf_type(data, path, OBJECT, lambda elf: tuple(_visible_symbols(elf)))
    defined = frozenset(name for name, here in symbols if here)
    return defined, frozenset(name for name, here in symbols if not here) - defined


def own_references(path: Path) -> frozenset[str]:
    """Return the mangled names that an ELF object both defines for others and refers to by name itself.

    A linker that gets another definition of such a name uses it in the object, too.
    """
    return with_elf_type(_read_bytes(path), path, OBJECT, lambda elf: frozenset(_references(elf)))


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


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BinaryError("object-missing", "the object cannot be read", where=str(path), why=str(error)) from error


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
