"""What lies where in an ELF file: headers, tables and sections, with nothing left out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from ortrim.binaries.components import OTHER, PADDING, section_kind
from ortrim.binaries.extents import Claim, Piece, divided

ELF_HEADERS: Final = "ELF headers"
HEADERS: Final = "file headers"
"""The ELF header and the program headers."""
SECTION_TABLE: Final = "section headers"
BETWEEN: Final = "between sections"
"""What the linker leaves free so that sections are aligned, or that no header speaks of."""
RELRO_PADDING: Final = ".relro_padding"
"""Room up to the end of a page that nothing uses; upstream's size check leaves it out too:
https://github.com/microsoft/onnxruntime/blob/v1.21.0/tools/ci_build/github/linux/ort_minimal/readelf_utils.py"""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the file: a section's `name`, or one of the names above for what is no section.

    `content` is what such a section holds where nothing more is known. `address` is where its first byte is loaded, 0
    if it is not, None for what is no section; `number` is the section's in the table, 0 for what is none.
    """

    name: str
    content: str
    offset: int
    address: int | None = None
    number: int = 0


GAP: Final = Part(name=BETWEEN, content=PADDING, offset=0)


def file_pieces(elf: ELFFile, file_bytes: int) -> Iterator[tuple[Part, Piece[Part]]]:
    """Yield the parts of a file of that size, in order; each byte is in exactly one."""
    claims = (claim for claim in (*_headers(elf.header), *_sections(elf)) if claim.end > claim.start)
    for piece in divided(0, file_bytes, claims):
        yield piece.owner or GAP, piece


def sections_in_memory(elf: ELFFile) -> Counter[str]:
    """Return the sizes in bytes of the sections that are loaded, zero-initialised ones included."""
    sizes: Counter[str] = Counter()
    for section in elf.iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != RELRO_PADDING:
            sizes[section.name] += section["sh_size"]
    return sizes


def zeroed_bytes(elf: ELFFile) -> int:
    """Return how many bytes the library has in memory that are zero at first and are not in the file."""
    return sum(
        section["sh_size"]
        for section in elf.iter_sections()
        if section["sh_type"] == "SHT_NOBITS"
        and section["sh_flags"] & SH_FLAGS.SHF_ALLOC
        and section.name != RELRO_PADDING
    )


def _headers(header: Any) -> Iterator[Claim[Part]]:
    programs = header["e_phoff"], header["e_phnum"] * header["e_phentsize"]
    sections = header["e_shoff"], header["e_shnum"] * header["e_shentsize"]
    for name, offset, size in (
        (HEADERS, 0, header["e_ehsize"]),
        (HEADERS, *programs),
        (SECTION_TABLE, *sections),
    ):
        yield Claim(start=offset, end=offset + size, owner=Part(name=name, content=ELF_HEADERS, offset=offset))


def _sections(elf: ELFFile) -> Iterator[Claim[Part]]:
    for number, section in enumerate(elf.iter_sections()):
        if section["sh_type"] in {"SHT_NULL", "SHT_NOBITS"}:
            continue
        offset = section["sh_offset"]
        part = Part(
            name=section.name,
            content=_content(section.name, section["sh_flags"]),
            offset=offset,
            address=section["sh_addr"],
            number=number,
        )
        yield Claim(start=offset, end=offset + section["sh_size"], owner=part)


def _content(name: str, flags: int) -> str:
    """Say what a section is: by its name, or by what may be done with it."""
    kind = section_kind(name)
    if kind != OTHER:
        return kind
    if not flags & SH_FLAGS.SHF_ALLOC:
        return "not loaded"
    if flags & SH_FLAGS.SHF_EXECINSTR:
        return "code"
    return "data" if flags & SH_FLAGS.SHF_WRITE else "read-only data"
