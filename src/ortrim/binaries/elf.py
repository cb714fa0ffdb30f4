"""ELF libraries: what a loader sees of them, read with pyelftools in bounded time; stripping and unwind tables."""

import io
import lzma
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import NoteSection, SymbolTableSection

from ortrim.base.files import storage_errors
from ortrim.buildspec.targets import Architecture
from ortrim.errors import BinaryError, Diagnostic


@dataclass(frozen=True, kw_only=True)
class ComponentSize:
    """Bytes of the library that come from one component (`framework`, `session`, `mlas`, ...)."""

    component: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class SymbolSize:
    """One of the largest symbols (or input sections) of a library, or object files (`conv.cc.o`) in a component."""

    name: str
    component: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class LibrarySize:
    """Where the bytes of a library are."""

    file_bytes: int
    loadable_bytes: int
    compressed_bytes: int
    components: tuple[ComponentSize, ...]
    largest_symbols: tuple[SymbolSize, ...]
    largest_files: tuple[SymbolSize, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LibraryFacts:
    """What a loader sees of a library."""

    soname: str
    machine: str
    needed: tuple[str, ...]
    symbol_versions: tuple[str, ...]
    exported: tuple[str, ...]
    executable_stack: bool
    text_relocations: bool
    stripped: bool
    load_alignment: int


T = TypeVar("T")

READS_LIMIT: Final = 2_000_000
"""Reads that pyelftools may make of one file; the C library, with its 3,000 exports, takes 70,000."""
MACHINES: Final = {
    ("EM_X86_64", 64): Architecture.X64.value, ("EM_AARCH64", 64): Architecture.ARM64.value,
    ("EM_ARM", 32): Architecture.ARM.value, ("EM_RISCV", 64): Architecture.RISCV64.value,
    ("EM_386", 32): Architecture.X86.value,
}  # fmt: skip
LIBRARY: Final = ("ET_DYN", "not-a-library", "this ELF file is not a shared library")
TEXT_RELOCATIONS_FLAG: Final = 0x4  # DF_TEXTREL
EXECUTABLE_FLAG: Final = 0x1  # PF_X


def read_library(path: Path) -> LibraryFacts:
    """Return what a loader sees of a shared library."""
    return with_elf(path, library_facts)


def with_elf(path: Path, read: Callable[[ELFFile], T]) -> T:
    """Return what `read` makes of an ELF shared library; raises as `read_library` does, whatever `read` raises."""
    return with_elf_bytes(read_bytes(path), path, read)


def with_elf_bytes(data: bytes, path: Path, read: Callable[[ELFFile], T]) -> T:
    """Do what `with_elf` does with a library in memory, such as a member of an archive; errors call it `path`."""

    def checked(elf: ELFFile) -> T:
        _check_extent(elf, len(data))
        return read(elf)

    return with_elf_type(data, path, LIBRARY, checked)


def with_elf_type(data: bytes, path: Path, wanted: tuple[str, str, str], read: Callable[[ELFFile], T]) -> T:
    """Return what `read` makes of an ELF file of the type `wanted`: its `e_type`, the code and words for others."""
    if data[:4] != b"\x7fELF":
        raise BinaryError("not-elf", "this is not an ELF file", where=str(path), why=f"it begins with {data[:4]!r}")
    kind, code, what = wanted
    with diagnosed(path):
        elf = ELFFile(BoundedStream(data))
        if elf.header["e_type"] != kind:
            raise BinaryError(code, what, where=str(path), why=str(elf.header["e_type"]))
        return read(elf)


def read_bytes(path: Path, code: str = "library-missing", what: str = "the library cannot be read") -> bytes:
    """Return the bytes of a library."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BinaryError(code, what, where=str(path), why=str(error)) from error


def _check_extent(elf: ELFFile, size_bytes: int) -> None:
    if not elf.num_sections():
        raise ValueError("it has no section headers")
    for segment in elf.iter_segments("PT_LOAD"):
        if segment["p_offset"] + segment["p_filesz"] > size_bytes:
            raise ValueError("a segment reaches beyond the end of the file")


@contextmanager
def diagnosed(where: str | Path, code: str = "corrupt-elf", what: str = "the ELF file is damaged") -> Iterator[None]:
    """Turn all that readers raise on damaged files (they do not limit themselves to their own errors) into ours."""
    try:
        yield
    except Diagnostic:
        raise
    except Exception as error:
        hint = "it may be truncated: build or download it again"
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise BinaryError(code, what, where=str(where), why=why, hint=hint) from error


class BoundedStream(io.BytesIO):
    """A file in memory that refuses to be read for ever, since a forged count can make a reader loop."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as a file does; raises ValueError after too many reads."""
        self._reads += 1
        if self._reads > READS_LIMIT:
            raise ValueError("it has more tables than any real library")
        return super().read(size)


def machine_of(elf: ELFFile) -> str:
    """Return the architecture that a file is for, or the machine's own name when it is none of ours."""
    machine = str(elf.header["e_machine"])
    return MACHINES.get((machine, elf.elfclass), machine)


def library_facts(elf: ELFFile) -> LibraryFacts:
    """Return what a loader sees of an open library; see `read_library`."""
    stack = [segment["p_flags"] for segment in elf.iter_segments("PT_GNU_STACK")]
    loads = [int(segment["p_align"]) for segment in elf.iter_segments("PT_LOAD")]
    tags = dynamic_tags(elf)
    names = {version.name for version in versions_in(elf, GNUVerNeedSection)}
    return LibraryFacts(
        soname=next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        machine=machine_of(elf),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        symbol_versions=tuple(sorted(names, key=_natural)),
        exported=_exported(elf),
        executable_stack=any(flags & EXECUTABLE_FLAG for flags in stack) if stack else True,
        text_relocations=any(
            tag.entry.d_tag == "DT_TEXTREL"
            or (tag.entry.d_tag == "DT_FLAGS" and bool(tag.entry.d_val & TEXT_RELOCATIONS_FLAG))
            for tag in tags
        ),
        stripped=not any(section["sh_type"] == "SHT_SYMTAB" for section in elf.iter_sections()),
        load_alignment=min(loads, default=0),
    )


def dynamic_tags(elf: ELFFile) -> list[Any]:
    """Return the entries of the dynamic section."""
    sections = [section for section in elf.iter_sections() if isinstance(section, DynamicSection)]
    if not sections:
        raise ValueError("it has no dynamic section")
    return list(sections[0].iter_tags())


def versions_in(elf: ELFFile, kind: type[GNUVerDefSection | GNUVerNeedSection]) -> Iterator[Any]:
    """Yield the versions of symbols that sections of a kind define, or need of other libraries."""
    for section in elf.iter_sections():
        if isinstance(section, kind):
            for _, versions in section.iter_versions():
                yield from versions


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _exported(elf: ELFFile) -> tuple[str, ...]:
    versions = {
        version.name for version in versions_in(elf, GNUVerDefSection)
    }  # each an absolute symbol, and no export
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        raise TypeError("it has no table of dynamic symbols")
    return tuple(sorted({symbol.name for symbol in table.iter_symbols() if _is_export(symbol)} - versions))


def _is_export(symbol: Any) -> bool:
    visible = symbol["st_other"]["visibility"] in {"STV_DEFAULT", "STV_PROTECTED"}
    bound = symbol["st_info"]["bind"] in {"STB_GLOBAL", "STB_WEAK", "STB_GNU_UNIQUE", "STB_LOOS"}
    return visible and bound and symbol["st_shndx"] != "SHN_UNDEF"


ELF: Final = b"\x7fELF"


def notes(elf: ELFFile, owner: str, kind: str) -> Iterator[Any]:
    """Yield the notes of an owner and a kind, in pyelftools' names."""
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            yield from (note for note in section.iter_notes() if (note["n_name"], note["n_type"]) == (owner, kind))


def build_id_in(elf: ELFFile) -> str:
    """Return a library's build-id in hexadecimal, empty when it was linked without."""
    return next((str(note["n_desc"]) for note in notes(elf, "GNU", "NT_GNU_BUILD_ID")), "")


def build_id_of(path: Path) -> str | None:
    """Return the build-id of a file; None for what is no shared library, and for one that was linked without."""
    data = read_bytes(path)
    return (with_elf_bytes(data, path, build_id_in) or None) if data.startswith(ELF) else None


SECTION_HEADERS: Final = {1: ("<I", 0x20, "<HHH", 0x2E, "<10I"), 2: ("<Q", 0x28, "<HHH", 0x3A, "<IIQQQQIIQQ")}
"""ELF class -> form and place of `e_shoff`, of `e_shentsize` with what follows, and the form of a section's header."""
SYMBOL_TABLE: Final = 2  # SHT_SYMTAB
NO_BITS: Final = 8  # SHT_NOBITS
ALLOCATED: Final = 0x2  # SHF_ALLOC


def take_apart(linked: Path, library: Path, symbols: Path) -> None:
    """Write a linked library, which stays, without symbols and debug information, and with them.

    All that is mapped stays in place: a linker has what is not at the end of the file.
    """
    data = read_bytes(linked)
    stripped = with_elf_bytes(data, linked, lambda _: _stripped(data))
    with storage_errors(library):
        library.write_bytes(stripped)
        symbols.write_bytes(data)


def _stripped(data: bytes) -> bytes:
    at_form, at_place, counts_form, counts_place, header = SECTION_HEADERS[data[4]]
    (at,) = struct.unpack_from(at_form, data, at_place)
    size, count, names = struct.unpack_from(counts_form, data, counts_place)
    sections = [list(struct.unpack_from(header, data, at + size * index)) for index in range(count)]
    begin = sections[names][4]
    tables = [index for index, section in enumerate(sections) if section[1] == SYMBOL_TABLE]
    debug = [index for index, section in enumerate(sections) if data.startswith(b".debug_", begin + section[0])]
    gone = {*tables, *(sections[index][6] for index in tables), *debug}
    kept = [index for index in range(count) if index not in gone]
    mapped = max(section[4] + section[5] for section in sections if section[2] & ALLOCATED and section[1] != NO_BITS)
    stripped = bytearray(data[:mapped])
    for index in kept:
        _, kind, flags, _, offset, length, link, _, alignment, _ = section = sections[index]
        section[6] = kept.index(link) if link not in gone else 0
        if index and not flags & ALLOCATED and kind != NO_BITS:
            stripped += bytes(-len(stripped) % max(alignment, 1))
            section[4] = len(stripped)
            stripped += data[offset : offset + length]
    return bytes(_finished(stripped, [sections[index] for index in kept], data[4], kept.index(names)))


SECTION: Final = ".gnu_debugdata"
FRAMES: Final = ".debug_frame"
COMMON: Final = 0xFFFFFFFF  # what a CIE, which frames have in common, has where a frame (FDE) refers to its own
RELATIVE: Final = 0x1B  # DW_EH_PE_pcrel | DW_EH_PE_sdata4
PROGRAM_BITS: Final = 1  # SHT_PROGBITS
STRING_TABLE: Final = 3  # SHT_STRTAB
EXECUTABLE: Final = 0x4  # SHF_EXECINSTR
COMPRESSION: Final = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 2}
FORMS: Final = {1: ("<2I", 52), 2: ("<2Q", 64)}
"""ELF class -> the form of where a frame's function begins and how long it is, and the size of ELF's header."""


def add_unwind_tables(library: Path, linked: Path) -> None:
    """Give a stripped library the stack frames of the same library as it was linked; one that has them stays.

    `.gnu_debugdata` is the smallest form that Android's unwinder reads, compressed and never loaded. Sources:
    libunwindstack's `ElfInterface.cpp` (`CreateGnuDebugdataMemory`, `Step`) and `MemoryXz.cpp`; gdb's manual,
    "MiniDebugInfo"; DWARF 4, section 6.4.1.
    """
    data, shipped = read_bytes(linked), read_bytes(library)
    frames = with_elf_bytes(data, linked, lambda elf: _compressed(elf, data))
    if frames and not with_elf_bytes(shipped, library, lambda elf: elf.get_section_by_name(SECTION)):
        whole = with_elf_bytes(shipped, library, lambda elf: _with_section(elf, shipped, frames))
        with storage_errors(library):
            library.write_bytes(whole)


def _compressed(elf: ELFFile, data: bytes) -> bytes:
    """Return an ELF file of a library's frames alone, compressed; empty without frames.

    They lie where the file has them: an unwinder may count by address or by offset.
    """
    frames = elf.get_section_by_name(FRAMES)
    if frames is None:
        return b""
    form, size = FORMS[data[4]]
    code = [section for section in elf.iter_sections() if section["sh_flags"] & EXECUTABLE]
    places = [range(section["sh_addr"], section["sh_addr"] + section["sh_size"]) for section in code]
    live = _live(frames.data(), form, places, size)
    names = b"\0.eh_frame\0.shstrtab\0"
    sections = (
        (0, 0, 0, 0, 0, 0, 0),
        (names.index(b".eh_frame"), PROGRAM_BITS, ALLOCATED, size, size, len(live), 4),
        (names.index(b".shstrtab"), STRING_TABLE, 0, 0, size + len(live), len(names), 1),
    )
    headers = [[*first, 0, 0, alignment, 0] for *first, alignment in sections]
    file = _finished(bytearray(data[:size] + live + names), headers, data[4])
    for place in (0x1C, 0x2C) if data[4] == 1 else (0x20, 0x38):  # e_phoff and e_phnum: nothing of it is loaded
        struct.pack_into("<H", file, place, 0)
    return lzma.compress(bytes(file), check=lzma.CHECK_CRC32, filters=[COMPRESSION])


def _live(frames: bytes, form: str, code: list[range], start: int) -> bytes:
    """Return the frames of the functions that are in a library, in the form of `.eh_frame` at the address `start`.

    A linker leaves those of functions that it left out, with an address that is none. Older unwinders of Android read
    `.debug_frame` on 32-bit processors alone. Each is behind a CIE of its own, which compresses best: the demo's for
    ARM64 to 25 kB, not 33; in the order of their functions, without which Android 10's unwinder misses some.
    """
    found = []
    at = 0
    while at < len(frames):
        length, refers = struct.unpack_from("<2I", frames, at)
        if refers != COMMON:
            begin, extent = struct.unpack_from(form, frames, at + 8)
            rules = frames[at + 8 + struct.calcsize(form) : at + 4 + length]
            (size,) = struct.unpack_from("<I", frames, refers)
            shared = frames[refers + 8 : refers + 4 + size]
            # An augmentation changes what rules mean; a function of assembly that has one goes without a frame.
            if not shared[1] and any(begin in part for part in code):
                found.append((begin, extent, rules, shared))
        at += 4 + length
    live = bytearray()
    for begin, extent, rules, shared in sorted(found):
        # Before the rules: version, empty augmentation, from version 4 on two sizes, and three numbers of a byte.
        at = 4 if shared[0] >= 4 else 2
        common = _entry(bytes(4) + b"\1zR\0" + shared[at : at + 3] + bytes((1, RELATIVE)) + shared[at + 3 :])
        live += common
        place = start + len(live) + 8
        live += _entry(struct.pack("<IiIB", len(common) + 4, begin - place, extent, 0) + rules)
    return bytes(live + bytes(4))


def _entry(content: bytes) -> bytes:
    """Return an entry with its length in front, filled with rules that say nothing."""
    padded = content + bytes(-len(content) % 4)
    return struct.pack("<I", len(padded)) + padded


def _with_section(elf: ELFFile, data: bytes, content: bytes) -> bytes:
    """Return a stripped library with one more section, at its end, where the names of sections are anyway."""
    header = SECTION_HEADERS[data[4]][-1]
    at, size, last = elf["e_shoff"], elf["e_shentsize"], elf["e_shstrndx"]
    headers = [list(struct.unpack_from(header, data, at + size * index)) for index in range(elf["e_shnum"])]
    old = headers[last]
    end = max(each[4] + each[5] for each in headers if each[1] != NO_BITS and each is not old)
    names = data[old[4] : old[4] + old[5]] + SECTION.encode() + b"\0"
    added = [old[5], PROGRAM_BITS, 0, 0, end, len(content), 0, 0, 1, 0]
    old[4], old[5] = end + len(content), len(names)
    return bytes(_finished(bytearray(data[:end] + content + names), [*headers, added], data[4], names=last))


def _finished(file: bytearray, headers: list[list[Any]], elf_class: int, names: int = -1) -> bytearray:
    """Return a file with its table of sections at the end, where Android's unwinder takes the file to end."""
    at_form, at_place, counts_form, counts_place, header = SECTION_HEADERS[elf_class]
    file += bytes(-len(file) % 8)
    struct.pack_into(at_form, file, at_place, len(file))
    counts = (struct.calcsize(header), len(headers), names % len(headers))
    struct.pack_into(counts_form, file, counts_place, *counts)
    for each in headers:
        file += struct.pack(header, *each)
    return file
