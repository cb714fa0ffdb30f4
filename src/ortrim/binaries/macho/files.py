"""Mach-O files of Apple's systems, read with LIEF once their parts are known to lie inside the file.

LIEF 1.0 takes half a file for a whole one and passes on sizes beyond the end.
"""

import gzip
import struct
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ortrim.binaries import elf
from ortrim.binaries.elf import ComponentSize, LibraryFacts, LibrarySize, read_bytes
from ortrim.binaries.macho.layout import (
    LINKEDIT,
    MachLayout,
    MachSegment,
    load_lief,
    name_of,
    read_layout,
    read_segments,
)
from ortrim.binaries.static_archives import AR_MAGIC, members_of
from ortrim.errors import BinaryError

if TYPE_CHECKING:
    import lief


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
    empty without. An archive has no layout.
    """

    architecture: str
    kind: MachKind
    size_bytes: int
    builds: tuple[MachBuild, ...]
    unmarked: int
    install_name: str = ""
    version: str = ""
    exported: tuple[str, ...]
    undefined: tuple[str, ...]
    needed: tuple[MachNeed, ...] = ()
    segments: tuple[MachSegment, ...] = ()
    layout: MachLayout | None = None
    bitcode: bool
    debug: bool
    uuid: str = ""
    signature: MachSignature = MachSignature.NONE
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
LC_SYMTAB: Final = 0x2
LC_DYSYMTAB: Final = 0xB
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
    0x19: ("<QQIII", 40, 72, "<16s16sQQIIIIIIII"),
    0x1: ("<IIIII", 32, 56, "<16s16sIIIIIIIII"),
}
"""How and where segments say what they cover, and where and how their sections do."""


def is_fat(data: bytes) -> bool:
    """Whether bytes begin a file of several architectures."""
    count = int.from_bytes(data[4:8], "big")
    return data[:4] in {FAT_MAGIC, FAT_64_MAGIC} and len(data) >= 8 and count <= MOST_ARCHITECTURES


def is_thin(data: bytes) -> bool:
    """Whether bytes begin a file of one architecture."""
    return data[:4] in THIN_MAGICS


def fat_parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each architecture of a file of several, with its bytes."""
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


def checked_header(data: bytes) -> tuple[str, int]:
    """Return architecture and type of a thin file whose parts are all inside it, or raise ValueError, struct.error."""
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
    return architecture_name(kind, subtype), file_type


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


def is_binary(data: bytes) -> bool:
    """Whether bytes, at least the first eight of a file, begin a Mach-O file or a static library."""
    return is_macho(data) or data.startswith(AR_MAGIC)


diagnosed = partial(elf.diagnosed, code="corrupt-mach-o", what="the Mach-O file is damaged")


def load_commands(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield the kind and the place of each load command. Raises ValueError for a file that is not of 64 bits."""
    start = THIN_MAGICS.get(bytes(data[:4]))
    if start != 32:
        raise ValueError("it is not a 64-bit file")
    (count,) = struct.unpack_from("<I", data, 16)
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

    What has one architecture stays thin.
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


KINDS: Final = {
    1: MachKind.OBJECT, 2: MachKind.PROGRAM, 6: MachKind.LIBRARY, 8: MachKind.BUNDLE, 10: MachKind.SYMBOLS,
}  # fmt: skip
PLATFORMS: Final = {
    1: ("macos", ""), 2: ("ios", ""), 3: ("tvos", ""), 4: ("watchos", ""), 6: ("ios", "maccatalyst"),
    7: ("ios", "simulator"), 8: ("tvos", "simulator"), 9: ("watchos", "simulator"), 11: ("xros", ""),
    12: ("xros", "simulator"),
}  # fmt: skip
"""The numbers of LC_BUILD_VERSION and what an xcframework calls these platforms."""
OLD_PLATFORMS: Final = {
    "VERSION_MIN_MACOSX": "macos", "VERSION_MIN_IPHONEOS": "ios",
    "VERSION_MIN_TVOS": "tvos", "VERSION_MIN_WATCHOS": "watchos",
}  # fmt: skip
SIMULATED: Final = frozenset({"x86_64", "x86_64h", "i386"})
"""The older command does not distinguish simulators from devices; no device has these processors."""
STAB_MASK, PRIVATE_EXTERN, TYPE_MASK, EXTERN = 0xE0, 0x10, 0x0E, 0x01
BITCODE_MAGICS: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
ZEROED: Final = frozenset({0x01, 0x0C, 0x12})  # S_ZEROFILL, S_GB_ZEROFILL, S_THREAD_LOCAL_ZEROFILL
"""Sections that are in memory and not in the file."""
ENTRY, SLOT, UUID_AT = 4, 8, 8
"""Bytes of an entry of the table of indirect symbols and of a slot of `__got`, and where a UUID's command has it."""
SIGNATURE_MAGIC: Final = 0xFADE0CC0
CMS_SLOT: Final = 0x10000
EMPTY_BLOB: Final = 8  # an ad hoc signature's CMS part, if there is one, has nothing but its own header
OTHERS: Final = {
    b"": "the file is empty",
    b"\x7fELF": "it is an ELF file, of Linux or Android",
    b"MZ": "it is a program or library of Windows",
    b"PK\x03\x04": "it is a zip archive",
    b"\xfe\xed\xfa": "it is for PowerPC",
    b"\xca\xfe\xba\xbe": "it is a class file of Java",
}
"""What is met instead, by how it begins."""


def read_macho(path: Path) -> MachFile:
    """Return what is in a Mach-O file or a static library of Mach-O objects."""
    return macho_of(read_bytes(path), str(path))


def macho_of(data: bytes, where: str) -> MachFile:
    """Return what `read_macho` does of a file in memory, such as a member of an archive, which errors call `where`."""
    with diagnosed(where):
        parts = tuple(fat_parts(data)) if is_fat(data) else (("", data),)
        return MachFile(size_bytes=len(data), images=tuple(_part(name, part, where) for name, part in parts))


def _part(said: str, data: bytes, where: str) -> MachImage:
    """Read one architecture, which is called `said` by the file that holds several."""
    image = _archive(data, where) if data.startswith(AR_MAGIC) else _thin(data, where)
    if said not in {"", image.architecture}:
        raise ValueError(f"what is called {said} is {image.architecture}")
    return image


def _thin(data: bytes, where: str) -> MachImage:
    if not is_thin(data):
        why = next((why for head, why in OTHERS.items() if head and data.startswith(head)), "")
        why = why or (f"it begins with {data[:4]!r}" if data else OTHERS[b""])
        raise BinaryError("not-mach-o", "this is not a Mach-O file", where=where, why=why)
    return read_image(data)


def _archive(data: bytes, where: str) -> MachImage:
    """Return a static library as one: the exported and undefined symbols of its objects together."""
    members = members_of(data, where)
    objects = [
        _thin(content, f"{where}: {name}") for name, content in members if not content.startswith(BITCODE_MAGICS)
    ]
    if not objects:
        what = "this is not a library of Mach-O objects"
        raise BinaryError("not-mach-o", what, where=where, why="it holds no object")
    architectures = sorted({each.architecture for each in objects})
    if len(architectures) > 1:
        why = f"it has objects of {', '.join(architectures)}"
        raise BinaryError("objects-differ", "a static library has one architecture", where=where, why=why)
    offered = {name for each in objects for name in each.exported}
    asked = {name for each in objects for name in each.undefined}
    return MachImage(
        architecture=objects[0].architecture,
        kind=MachKind.ARCHIVE,
        size_bytes=len(data),
        builds=tuple(sorted({build for each in objects for build in each.builds})),
        unmarked=sum(each.unmarked for each in objects),
        exported=tuple(sorted(offered)),
        undefined=tuple(sorted(asked - offered)),
        bitcode=any(each.bitcode for each in objects) or len(objects) < len(members),
        debug=any(each.debug for each in objects),
        objects=len(objects),
    )


def read_image(data: bytes) -> MachImage:
    """Return what one architecture is made of."""
    architecture, file_type = checked_header(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # LIEF warns of numbers that it has no word for
        return _image(data, architecture, KINDS.get(file_type, MachKind.OTHER), _parsed(data))


def read_sections(data: bytes) -> tuple[MachSection, ...]:
    """Return the sections of one architecture, and its __LINKEDIT, which has none."""
    checked_header(data)
    return tuple(_named_sections(_parsed(data)))


def unwritten_bytes(data: bytes) -> tuple[range, ...]:
    """Return where one architecture's file may have what zig's linker found in memory, and what hangs on all bytes.

    It makes room in the table of indirect symbols for every slot of `__got` and writes no entry for the library's own
    symbols, so that the last entries stay as they were; no loader has read that table since LC_DYLD_INFO. The UUID is a
    digest of the file. Found with zig 0.17 in two links of the same objects for x86-64.
    """
    checked_header(data)
    binary = _parsed(data)
    table, slots, uuid = binary.dynamic_symbol_command, binary.get_section("__got"), binary.uuid
    found = []
    if table is not None and slots is not None:
        end = table.indirect_symbol_offset + table.nb_indirect_symbols * ENTRY
        found.append(range(end - slots.size // SLOT * ENTRY, end))
    if uuid is not None:
        found.append(range(uuid.command_offset + UUID_AT, uuid.command_offset + uuid.size))
    return tuple(found)


def _named_sections(binary: "lief.MachO.Binary") -> Iterator[MachSection]:
    for segment in binary.segments:
        name = name_of(segment.name)
        for section in segment.sections:
            zeroed = int(section.type) in ZEROED
            where = 0 if zeroed else section.offset
            inner = name_of(section.name)
            yield MachSection(segment=name, name=inner, offset=where, size_bytes=section.size, zeroed=zeroed)
        if not len(segment.sections):
            yield MachSection(segment=name, name="", offset=segment.file_offset, size_bytes=segment.file_size)


def _parsed(data: bytes) -> "lief.MachO.Binary":
    reader = load_lief().MachO
    config = reader.ParserConfig()
    config.parse_dyld_exports, config.parse_dyld_bindings, config.parse_dyld_rebases = True, False, False
    parsed = reader.parse(data, config)
    if parsed is None or parsed.size != 1:
        raise ValueError("LIEF cannot read it")
    binary: lief.MachO.Binary | None = parsed.at(0)
    assert binary is not None
    return binary


def _image(data: bytes, architecture: str, kind: MachKind, binary: "lief.MachO.Binary") -> MachImage:
    lief = load_lief()
    dylibs = [command for command in binary.commands if isinstance(command, lief.MachO.DylibCommand)]
    own = next((dylib for dylib in dylibs if dylib.command == lief.MachO.LoadCommand.TYPE.ID_DYLIB), None)
    builds = tuple(sorted(set(_builds(binary, architecture))))
    offered, asked = _names(binary)
    return MachImage(
        architecture=architecture,
        kind=kind,
        size_bytes=len(data),
        builds=builds,
        unmarked=0 if builds else 1,
        install_name=name_of(own.name) if own else "",
        version=".".join(map(str, own.current_version)) if own else "",
        exported=tuple(sorted(offered)),
        undefined=tuple(sorted(asked - offered)),
        needed=tuple(
            MachNeed(name=name_of(each.name), weak=each.command == lief.MachO.LoadCommand.TYPE.LOAD_WEAK_DYLIB)
            for each in dylibs
            if each is not own
        ),
        segments=read_segments(binary),
        layout=read_layout(binary),
        bitcode=any(
            section.segment_name == "__LLVM" and section.name in frozenset({"__bitcode", "__bundle"})
            for section in binary.sections
        ),
        debug=any(section.segment_name == "__DWARF" for section in binary.sections),
        uuid=bytes(binary.uuid.uuid).hex() if binary.uuid is not None else "",
        signature=_signature(data, binary),
    )


def _builds(binary: "lief.MachO.Binary", architecture: str) -> Iterator[MachBuild]:
    lief = load_lief()
    for command in binary.commands:
        if isinstance(command, lief.MachO.BuildVersion):
            number = int(command.platform)
            platform, variant = PLATFORMS.get(number, (str(number), ""))
            numbers = (command.minos, command.sdk)
        elif isinstance(command, lief.MachO.VersionMin):
            platform = OLD_PLATFORMS[command.command.name]
            variant = "simulator" if platform != "macos" and architecture in SIMULATED else ""
            numbers = (command.version, command.sdk)
        else:
            continue
        minimum, sdk = map(_version, numbers)
        yield MachBuild(platform=platform, variant=variant, minimum_os=minimum, sdk=sdk)


def _version(numbers: list[int]) -> str:
    """Write a version as Apple does: `15.1`, `12.0`, `15.1.2`; nothing for zeros alone."""
    if not any(numbers):
        return ""
    return ".".join(str(number) for number in (numbers if numbers[2] else numbers[:2]))


def _names(binary: "lief.MachO.Binary") -> tuple[set[str], set[str]]:
    """Return the exported symbols, from the symbol table and the exports trie, and the undefined ones."""
    offered, asked = set[str](), set[str]()
    for symbol in binary.symbols:
        kind = symbol.raw_type
        if symbol.has_export_info:
            offered.add(_c_name(symbol.name))
        elif not kind & EXTERN or kind & STAB_MASK:
            continue
        elif kind & TYPE_MASK == 0 and symbol.value == 0:
            asked.add(_c_name(symbol.name))
        elif not kind & PRIVATE_EXTERN:
            offered.add(_c_name(symbol.name))
    return offered, asked


def _c_name(name: str | bytes) -> str:
    return name_of(name).removeprefix("_")


def _signature(data: bytes, binary: "lief.MachO.Binary") -> MachSignature:
    """Tell a signature of a certificate's owner from a linker's; Apple's kern/cs_blobs.h has the layout."""
    command: Any = binary.code_signature
    if command is None or not command.data_size:
        return MachSignature.NONE
    content = data[command.data_offset : command.data_offset + command.data_size]
    magic, _, count = struct.unpack_from(">III", content)
    if magic != SIGNATURE_MAGIC:
        raise ValueError("its signature is damaged")
    slots = dict(struct.unpack_from(">II", content, 12 + 8 * number) for number in range(count))
    if CMS_SLOT not in slots:
        return MachSignature.AD_HOC
    (length,) = struct.unpack_from(">I", content, slots[CMS_SLOT] + 4)
    return MachSignature.CERTIFICATE if length > EMPTY_BLOB else MachSignature.AD_HOC


PAGE_BYTES: Final = {"arm64": 16384, "x86_64": 4096}


def read_apple_library(path: Path) -> tuple[LibraryFacts, LibrarySize]:
    """Return the facts for reports about a library of one architecture; sizes by segment, of an archive the whole."""
    content = read_bytes(path)
    (image,) = macho_of(content, str(path)).images
    return LibraryFacts(
        soname=image.install_name,
        machine=image.architecture,
        needed=tuple(need.name for need in image.needed),
        symbol_versions=(),
        exported=image.exported,
        executable_stack=False,
        text_relocations=False,
        stripped=not image.debug,
        load_alignment=PAGE_BYTES.get(image.architecture, 0),
    ), _size(content, image)


def architecture_size(path: Path, architecture: str) -> LibrarySize:
    """Return the sizes of one architecture of a library that may have several, in Apple's word for it."""
    data, where = read_bytes(path), str(path)
    with diagnosed(where):
        found = dict(fat_parts(data)) if is_fat(data) else {_thin(data, where).architecture: data}
    if architecture not in found:
        what, why = f"this is not a library for {architecture}", f"it is for {', '.join(sorted(found))}"
        raise BinaryError("architecture-missing", what, where=where, why=why)
    return _size(found[architecture], *macho_of(found[architecture], where).images)


def _size(content: bytes, image: MachImage) -> LibrarySize:
    parts = sorted(
        (ComponentSize(component=segment.name, size_bytes=segment.memory_bytes) for segment in image.segments),
        key=lambda part: (-part.size_bytes, part.component),
    )
    loaded = tuple(part for part in parts if part.component != LINKEDIT and part.size_bytes)
    return LibrarySize(
        file_bytes=len(content),
        loadable_bytes=sum(part.size_bytes for part in loaded),
        compressed_bytes=len(gzip.compress(content, compresslevel=9, mtime=0)),
        components=loaded,
        largest_symbols=(),
    )
