"""What a library says of its functions and of their stack frames, read with pyelftools."""

import io
import lzma
from pathlib import Path

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection


def frames_of(library: Path) -> list[tuple[int, int]]:
    """Return where each frame of a library's compressed unwind tables begins, and how many bytes of code it is of."""
    section = ELFFile(io.BytesIO(library.read_bytes())).get_section_by_name(".gnu_debugdata")
    assert section
    inside = ELFFile(io.BytesIO(lzma.decompress(section.data()))).get_dwarf_info()
    frames = (entry.header for entry in inside.EH_CFI_entries() if isinstance(entry, FDE))
    return [(header["initial_location"], header["address_range"]) for header in frames]


def functions_in(library: Path) -> list[tuple[str, int]]:
    """Return the functions in a library's table of symbols and where they are; Thumb's mark is no part of that."""
    elf = ELFFile(io.BytesIO(library.read_bytes()))
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    here = (each for each in table.iter_symbols() if each["st_shndx"] != "SHN_UNDEF")
    functions = (each for each in here if each["st_info"]["type"] == "STT_FUNC")
    mark = 1 if elf["e_machine"] == "EM_ARM" else 0
    return [(each.name, each["st_value"] & ~mark) for each in functions]
