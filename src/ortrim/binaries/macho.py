"""Mach-O files of Apple's systems: what is said of them, and where their parts lie, each within its bounds.

`macho_image` reads them with LIEF, whose 1.0 takes half a file for a whole one and passes on sizes beyond the end.
"""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ortrim.errors import BinaryError, Diagnostic


class MachKind(StrEnum):
    """What a Mach-O file is for; archives of objects included."""

    OBJECT = "object"
    PROGRAM = "program"
    LIBRARY = "dynamic library"
    BUNDLE = "bundle"
    SYMBOLS = "debug symbols"
    ARCHIVE = "static library"
    OTHER = "other"


class MachSignature(StrEnum):
    """How a file is signed: by nobody, by its linker without an identity (ad hoc), or by one who has a certificate."""

    NONE = "none"
    AD_HOC = "ad hoc"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, kw_only=True, order=True)
class MachBuild:
    """What a file says it was built for, in LC_BUILD_VERSION or the older LC_VERSION_MIN_*.

    `platform` and `variant` are an xcframework's words (`ios` and `simulator`), else Apple's number. Versions are
    written without zeros at the end; `sdk` is empty when nothing is said.
    """

    platform: str
    variant: str
    minimum_os: str
    sdk: str

    @property
    def words(self) -> str:
        """All of it in one line: `ios simulator 15.1 (SDK 18.5)`."""
        sdk = f"(SDK {self.sdk})" if self.sdk else ""
        return " ".join(filter(None, (self.platform, self.variant, self.minimum_os, sdk)))


@dataclass(frozen=True, kw_only=True)
class MachNeed:
    """A dynamic library that has to be there when this one is loaded, or, when `weak`, need not be."""

    name: str
    weak: bool


@dataclass(frozen=True, kw_only=True)
class MachSegment:
    """A segment: what it takes in the file and in memory, in bytes."""

    name: str
    file_bytes: int
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class MachSection:
    """A section, or a whole segment that has none: what is at `offset` of the file, unless it is `zeroed` memory."""

    segment: str
    name: str
    offset: int
    size_bytes: int
    zeroed: bool = False


@dataclass(frozen=True, kw_only=True)
class MachImage:
    """One architecture of a file.

    `builds` are all that its parts say, each once; `unmarked` counts the objects that say nothing. Names of symbols are
    C's, without Mach-O's underscore. `objects` counts those of an archive, 1 otherwise. `version` is the library's own,
    empty without.
    """

    architecture: str
    kind: MachKind
    size_bytes: int
    builds: tuple[MachBuild, ...]
    unmarked: int
    install_name: str
    version: str
    exported: tuple[str, ...]
    undefined: tuple[str, ...]
    needed: tuple[MachNeed, ...]
    segments: tuple[MachSegment, ...]
    bitcode: bool
    debug: bool
    uuid: str
    signature: MachSignature
    objects: int = 1


@dataclass(frozen=True, kw_only=True)
class MachFile:
    """A Mach-O file: thin or with several architectures, libraries or archives. `size_bytes` is the whole file's."""

    size_bytes: int
    images: tuple[MachImage, ...]

    @property
    def architectures(self) -> tuple[str, ...]:
        """The architectures in it, sorted, as Apple's tools call them."""
        return tuple(sorted(image.architecture for image in self.images))


FAT_MAGIC: Final = b"\xca\xfe\xba\xbe"
FAT_64_MAGIC: Final = b"\xca\xfe\xba\xbf"
THIN_MAGICS: Final = {b"\xcf\xfa\xed\xfe": 32, b"\xce\xfa\xed\xfe": 28}
"""The magic numbers of 64- and 32-bit files, with the bytes of their header; all of Apple's processors since 2006."""
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
TABLES: Final[dict[int, tuple[tuple[int, int], ...]]] = {
    LC_SYMTAB: ((8, 12), (16, 1)),
    LC_DYSYMTAB: ((32, 8), (48, 4), (56, 4), (64, 8), (72, 8)),
    **dict.fromkeys(LINKEDIT_COMMANDS, ((8, 1),)),
    **dict.fromkeys(DYLD_INFO_COMMANDS, tuple((start, 1) for start in range(8, 48, 8))),
}
"""Where load commands have an offset and a number, and how many bytes each of that number is."""
SEGMENTS: Final[dict[int, tuple[str, int, int, str]]] = {
    LC_SEGMENT_64: ("<QQIII", 40, 72, "<16s16sQQIIIIIIII"),
    LC_SEGMENT: ("<IIIII", 32, 56, "<16s16sIIIIIIIII"),
}
"""How and where segments say what they cover, and where and how their sections do."""


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
        raise ValueError("its load commands point beyond its end")
    return MachHeader(architecture=architecture_name(kind, subtype), file_type=file_type)


def architecture_name(kind: int, subtype: int) -> str:
    """Return Apple's word for a processor, or its numbers."""
    return ARCHITECTURES.get((kind, subtype & SUBTYPE_MASK), f"cpu {kind:#x}/{subtype & SUBTYPE_MASK}")


def _extents(command: int, content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the places in the file that a load command points at, as offsets and sizes in bytes."""
    for start, unit in TABLES.get(command, ()):
        offset, count = struct.unpack_from("<II", content, start)
        yield offset, count * unit
    if command in SEGMENTS:
        form, start, first, layout = SEGMENTS[command]
        offset, size, _, _, count = struct.unpack_from(form, content, start)
        yield offset, size
        yield from _sections(content, count if size else 0, first, layout)


def _sections(content: bytes, count: int, start: int, form: str) -> Iterator[tuple[int, int]]:
    """Yield where sections and their relocations lie; segments without bytes in this file are left out."""
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


def is_macho(data: bytes) -> bool:
    """Whether bytes, at least the first eight of a file, begin a Mach-O file of one architecture or several."""
    return is_thin(data) or is_fat(data)


@contextmanager
def diagnosed(where: str) -> Iterator[None]:
    """Turn all that LIEF and struct raise on damaged files into ours."""
    try:
        yield
    except Diagnostic:
        raise
    except Exception as error:
        hint = "it may be truncated: build or download it again"
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise BinaryError("corrupt-mach-o", "the Mach-O file is damaged", where=where, why=why, hint=hint) from error


MAGIC: Final = b"\xcf\xfa\xed\xfe"
HEADER_BYTES: Final = 32
COUNT_FIELD: Final = 16


def load_commands(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the kind and the place of each load command. Raises ValueError for a file that is not of 64 bits."""
    if data[:4] != MAGIC:
        raise ValueError("it is not a 64-bit file")
    (count,) = struct.unpack_from("<I", data, COUNT_FIELD)
    start = HEADER_BYTES
    for _ in range(count):
        kind, size = struct.unpack_from("<II", data, start)
        yield kind, start
        start += size


PROCESSORS: Final = {"x86_64": (0x01000007, 3, 12), "arm64": (0x0100000C, 0, 14)}
"""Architecture -> Apple's numbers of it (processor and subtype), and the power of two that is its page."""
HEADER: Final = struct.Struct(">4sI")
UNIVERSAL_ENTRY: Final = struct.Struct(">iiIII")
LARGEST: Final = 0xFFFFFFFF
"""Offsets have 32 bits; files beyond that need another format, which older systems do not read."""


def universal_file(parts: Mapping[str, bytes]) -> bytes:
    """Return one file of several architectures, each on a page of its own; the same bytes in whatever order they come.

    What has one architecture stays thin. Raises KeyError for an architecture that today's systems do not run on,
    ValueError for files that are too large.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    ordered = sorted(parts, key=lambda name: (PROCESSORS[name][2], name))  # lipo's order: the smallest pages first
    position, entries, content = HEADER.size + UNIVERSAL_ENTRY.size * len(ordered), [], bytearray()
    for name in ordered:
        processor, subtype, power = PROCESSORS[name]
        padding = -(position + len(content)) % (1 << power)
        content += bytes(padding)
        start = position + len(content)
        if start + len(parts[name]) > LARGEST:
            raise ValueError(f"{name} would end beyond 4 GiB")
        entries.append(UNIVERSAL_ENTRY.pack(processor, subtype, start, len(parts[name]), power))
        content += parts[name]
    return HEADER.pack(FAT_MAGIC, len(ordered)) + b"".join(entries) + bytes(content)
