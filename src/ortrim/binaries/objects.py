"""Relocatable ELF objects: the symbols that one offers to a link and those that it asks of it, read with pyelftools."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ortrim.binaries.elf import with_elf_type
from ortrim.errors import BinaryError

OBJECT: Final = ("ET_REL", "not-an-object", "this ELF file is not an object")
LOCAL: Final = "STB_LOCAL"
UNDEFINED: Final = "SHN_UNDEF"


def read_object(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the mangled names that an object defines for others, and those that it needs of others.

    Both hold global and weak symbols; what only the object itself can see is left out. Raises `BinaryError`
    (`object-missing`, `not-elf`, `not-an-object`, `corrupt-elf`).
    """
    symbols = with_elf_type(_read_bytes(path), path, OBJECT, lambda elf: tuple(_visible_symbols(elf)))
    defined = frozenset(name for name, section in symbols if section != UNDEFINED)
    return defined, frozenset(name for name, section in symbols if section == UNDEFINED) - defined


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BinaryError("object-missing", "the object cannot be read", where=str(path), why=str(error)) from error


def _visible_symbols(elf: ELFFile) -> Iterator[tuple[str, str | int]]:
    """Yield name and section of each symbol that other objects can see."""
    if not elf.num_sections():
        raise ValueError("it has no section headers")
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.iter_symbols():
            if symbol["st_info"]["bind"] == LOCAL:
                continue
            if not symbol.name:
                raise ValueError("a symbol that others can see has no name")
            yield symbol.name, symbol["st_shndx"]
