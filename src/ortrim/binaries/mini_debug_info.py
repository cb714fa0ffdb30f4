"""Unwind tables in the smallest form that Android's unwinder reads: `.gnu_debugdata`, compressed and never loaded.

Sources: libunwindstack's `ElfInterface.cpp` (`CreateGnuDebugdataMemory`, `Step`) and `MemoryXz.cpp`, which read it in
every Android that ortrim's libraries load on; gdb's manual, "MiniDebugInfo"; DWARF 4, section 6.4.1.
"""

import lzma
import struct
from pathlib import Path
from typing import Any, Final

from elftools.elf.elffile import ELFFile

from ortrim.base.files import storage_errors
from ortrim.binaries.elf import ALLOCATED, NO_BITS, SECTION_HEADERS, read_bytes, with_elf_bytes

SECTION: Final = ".gnu_debugdata"
FRAMES: Final = ".debug_frame"
COMMON: Final = 0xFFFFFFFF
"""What a CIE, which frames have in common, has where a frame (FDE) refers to its own."""
RELATIVE: Final = 0x1B  # DW_EH_PE_pcrel | DW_EH_PE_sdata4
PROGRAM_BITS: Final = 1  # SHT_PROGBITS
STRING_TABLE: Final = 3  # SHT_STRTAB
EXECUTABLE: Final = 0x4  # SHF_EXECINSTR
COMPRESSION: Final = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 2}
FORMS: Final = {1: ("<2I", 52), 2: ("<2Q", 64)}
"""ELF class -> the form of where a frame's function begins and how long it is, and the size of ELF's header."""


def add_unwind_tables(library: Path, linked: Path) -> None:
    """Give a stripped library the stack frames of the same library as it was linked; one that has them stays."""
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
        common = _entry(struct.pack("<I", 0) + _relative(shared))
        live += common
        place = start + len(live) + 8
        live += _entry(struct.pack("<IiIB", len(common) + 4, begin - place, extent, 0) + rules)
    return bytes(live + bytes(4))


def _relative(shared: bytes) -> bytes:
    """Return what frames have in common as `.eh_frame` has it, with addresses relative to where they stand.

    Before the rules: version, empty augmentation, from version 4 on two sizes, and three numbers of a byte.
    """
    numbers = 4 if shared[0] >= 4 else 2
    return b"\1zR\0" + shared[numbers : numbers + 3] + bytes((1, RELATIVE)) + shared[numbers + 3 :]


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
