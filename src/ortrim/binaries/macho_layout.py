"""Where the parts of a Mach-O file lie: architectures, load commands and what they point at, each within its bounds.

This is read before anything else is, so that a file that is cut off, or made to do harm, is refused for what it is.
Source: Apple's mach-o/fat.h and mach-o/loader.h.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

FAT_MAGIC: Final = b"\xca\xfe\xba\xbe"
FAT_64_MAGIC: Final = b"\xca\xfe\xba\xbf"
THIN_MAGICS: Final = {b"\xcf\xfa\xed\xfe": 32, b"\xce\xfa\xed\xfe": 28}
"""The magic numbers of 64- and 32-bit files, with the bytes of their header; all of Apple's processors since 2006."""
BITCODE_MAGICS: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
MOST_ARCHITECTURES: Final = 16
"""A class file of Java begins with the same bytes as a file of several architectures; its next number is over 44."""
MOST_COMMANDS: Final = 10_000
MOST_COVERED: Final = 8
"""How often the load commands may point at each byte, on average: segments, sections in them, and tables do so thrice.

What they point at is read into memory, so that many segments of the whole file would fill it.
"""
ARCHITECTURES: Final = {
    (0x01000007, 3): "x86_64", (0x01000007, 8): "x86_64h",
    (0x0100000C, 0): "arm64", (0x0100000C, 1): "arm64", (0x0100000C, 2): "arm64e",
    (0x0200000C, 0): "arm64_32", (0x0200000C, 1): "arm64_32",
    (12, 6): "armv6", (12, 9): "armv7", (12, 11): "armv7s", (12, 12): "armv7k", (7, 3): "i386",
}  # fmt: skip
SUBTYPE_MASK: Final = 0x00FFFFFF
"""The highest byte of a subtype holds flags, such as the version of arm64e's pointer authentication."""
LC_SEGMENT: Final = 0x1
LC_SYMTAB: Final = 0x2
LC_DYSYMTAB: Final = 0xB
LC_SEGMENT_64: Final = 0x19
LINKEDIT_COMMANDS: Final = frozenset({0x1D, 0x1E, 0x26, 0x29, 0x2B, 0x2E, 0x36, 0x80000033, 0x80000034})
"""Signature, split info, function starts, data in code, ... exports trie and chained fixups: an offset and a size."""
DYLD_INFO_COMMANDS: Final = frozenset({0x22, 0x80000022})


@dataclass(frozen=True, kw_only=True)
class MachHeader:
    """What a thin file's header says: its architecture, the type of the file, and how many load commands follow."""

    architecture: str
    file_type: int


def is_fat(data: bytes) -> bool:
    """Whether bytes begin a file of several architectures."""
    count = int.from_bytes(data[4:8], "big")
    return data[:4] in {FAT_MAGIC, FAT_64_MAGIC} and len(data) >= 8 and count <= MOST_ARCHITECTURES


def is_thin(data: bytes) -> bool:
    """Whether bytes begin a file of one architecture."""
    return data[:4] in THIN_MAGICS


def fat_parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each architecture of a file of several, with its bytes. Raises ValueError, struct.error for damage."""
    wide = data[:4] == FAT_64_MAGIC
    entry = struct.Struct(">IIQQII" if wide else ">IIIII")
    (count,) = struct.unpack_from(">I", data, 4)
    seen: set[str] = set()
    position = 8 + count * entry.size
    if not count:
        raise ValueError("it has no architecture")
    places = [entry.unpack_from(data, 8 + number * entry.size)[:4] for number in range(count)]
    for kind, subtype, offset, size in sorted(places, key=lambda place: place[2]):
        name = architecture_name(kind, subtype)
        if offset < position or offset + size > len(data):
            raise ValueError(f"{name} reaches beyond the file or into another architecture")
        if name in seen:
            raise ValueError(f"{name} is there twice")
        seen.add(name)
        position = offset + size
        yield name, data[offset:position]


def checked_header(data: bytes) -> MachHeader:
    """Return the header of a thin file whose parts are all inside it. Raises ValueError, struct.error for damage."""
    kind, subtype, file_type, count, commands_bytes = struct.unpack_from("<IIIII", data, 4)
    start = THIN_MAGICS[data[:4]]
    end = start + commands_bytes
    if end > len(data) or count > MOST_COMMANDS:
        raise ValueError("its load commands reach beyond the end of the file")
    covered = 0
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, start)
        if size < 8 or start + size > end:
            raise ValueError(f"a load command claims {size} bytes")
        for offset, length in _extents(command, data[start : start + size]):
            if offset + length > len(data):
                raise ValueError(f"load command {command:#x} points beyond the end of the file")
            covered += length
        start += size
    if covered > MOST_COVERED * len(data):
        raise ValueError("its load commands point at more than there is")
    return MachHeader(architecture=architecture_name(kind, subtype), file_type=file_type)


def architecture_name(kind: int, subtype: int) -> str:
    """Return Apple's word for a processor, or its numbers."""
    return ARCHITECTURES.get((kind, subtype & SUBTYPE_MASK), f"cpu {kind:#x}/{subtype & SUBTYPE_MASK}")


def _extents(command: int, content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the places in the file that a load command points at, as offsets and sizes in bytes."""
    if find := EXTENTS.get(command):
        yield from find(content)


def _segment(content: bytes) -> Iterator[tuple[int, int]]:
    offset, size, _, _, count = struct.unpack_from("<QQIII", content, 40)
    yield offset, size
    yield from _sections(content, count if size else 0, 72, "<16s16sQQIIIIIIII")


def _segment_32(content: bytes) -> Iterator[tuple[int, int]]:
    offset, size, _, _, count = struct.unpack_from("<IIIII", content, 32)
    yield offset, size
    yield from _sections(content, count if size else 0, 56, "<16s16sIIIIIIIII")


def _sections(content: bytes, count: int, start: int, form: str) -> Iterator[tuple[int, int]]:
    """Yield where sections and their relocations lie; those of a segment that has no bytes here are not asked for."""
    layout = struct.Struct(form)
    if start + count * layout.size > len(content):
        raise ValueError(f"a segment claims {count} sections")
    for number in range(count):
        _, _, _, size, offset, _, relocations, relocation_count, flags, *_ = layout.unpack_from(
            content, start + number * layout.size
        )
        zeroed = flags & 0xFF in {0x1, 0xC, 0x12}
        yield (0, 0) if zeroed else (offset, size)
        yield relocations, relocation_count * 8


def _symbols(content: bytes) -> Iterator[tuple[int, int]]:
    symbols, count, strings, strings_bytes = struct.unpack_from("<IIII", content, 8)
    yield symbols, count * 12
    yield strings, strings_bytes


def _dynamic_symbols(content: bytes) -> Iterator[tuple[int, int]]:
    yield _unpacked("<II", content, 32, 8)
    yield _unpacked("<II", content, 48, 4)
    yield _unpacked("<II", content, 56, 4)
    yield _unpacked("<II", content, 64, 8)
    yield _unpacked("<II", content, 72, 8)


def _linkedit(content: bytes) -> Iterator[tuple[int, int]]:
    yield _unpacked("<II", content, 8)


def _dyld_info(content: bytes) -> Iterator[tuple[int, int]]:
    yield from (_unpacked("<II", content, start) for start in range(8, 48, 8))


def _unpacked(form: str, content: bytes, start: int, unit: int = 1) -> tuple[int, int]:
    offset, count = struct.unpack_from(form, content, start)
    return offset, count * unit


EXTENTS: Final[dict[int, Callable[[bytes], Iterator[tuple[int, int]]]]] = {
    LC_SEGMENT_64: _segment,
    LC_SEGMENT: _segment_32,
    LC_SYMTAB: _symbols,
    LC_DYSYMTAB: _dynamic_symbols,
    **dict.fromkeys(LINKEDIT_COMMANDS, _linkedit),
    **dict.fromkeys(DYLD_INFO_COMMANDS, _dyld_info),
}
