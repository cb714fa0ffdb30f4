"""Mach-O files and static libraries of them, read with LIEF once their parts are known to be inside the file."""

import gzip
import struct
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import lief

from ortrim.binaries.archives import MAGIC as ARCHIVE_MAGIC
from ortrim.binaries.archives import members_of
from ortrim.binaries.elf import read_bytes
from ortrim.binaries.libraries import ComponentSize, LibraryFacts, LibrarySize
from ortrim.binaries.macho import (
    MachBuild,
    MachFile,
    MachImage,
    MachKind,
    MachNeed,
    MachSection,
    MachSegment,
    MachSignature,
    checked_header,
    diagnosed,
    fat_parts,
    is_fat,
    is_thin,
)
from ortrim.errors import BinaryError

lief.logging.disable()
lief.disable_leak_warning()  # at the interpreter's end it now and then prints what Python has not collected of it

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
BITCODE_SECTIONS: Final = frozenset({"__bitcode", "__bundle"})
ZEROED: Final = frozenset({
    lief.MachO.Section.TYPE.ZEROFILL, lief.MachO.Section.TYPE.GB_ZEROFILL,
    lief.MachO.Section.TYPE.THREAD_LOCAL_ZEROFILL,
})  # fmt: skip
"""Sections that are in memory and not in the file."""
ENTRY, SLOT, UUID_AT = 4, 8, 8
"""Bytes of an entry of the table of indirect symbols and of a slot of `__got`, and where a UUID's command has it."""
SIGNATURE_MAGIC: Final = 0xFADE0CC0
CMS_SLOT: Final = 0x10000
EMPTY_BLOB: Final = 8
"""An ad hoc signature's CMS part, if there is one, has nothing but its own header."""
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


def one_architecture(data: bytes, architecture: str, where: str) -> bytes:
    """Return one architecture of a file as a file of its own."""
    with diagnosed(where):
        found = dict(fat_parts(data)) if is_fat(data) else {_thin(data, where).architecture: data}
    if architecture not in found:
        what, why = f"this is not a library for {architecture}", f"it is for {', '.join(sorted(found))}"
        raise BinaryError("architecture-missing", what, where=where, why=why)
    return found[architecture]


def _part(said: str, data: bytes, where: str) -> MachImage:
    """Read one architecture, which is called `said` by the file that holds several."""
    image = _archive(data, where) if data.startswith(ARCHIVE_MAGIC) else _thin(data, where)
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
        raise BinaryError(
            "not-mach-o", "this is not a library of Mach-O objects", where=where, why="it holds no object"
        )
    architectures = sorted({each.architecture for each in objects})
    if len(architectures) > 1:
        why = f"it has objects of {', '.join(architectures)}"
        raise BinaryError("objects-differ", "a static library has one architecture", where=where, why=why)
    return replace(
        _joined(objects),
        size_bytes=len(data),
        bitcode=any(each.bitcode for each in objects) or len(objects) < len(members),
        objects=len(objects),
    )


def _joined(objects: list[MachImage]) -> MachImage:
    offered = {name for each in objects for name in each.exported}
    asked = {name for each in objects for name in each.undefined}
    return MachImage(
        architecture=objects[0].architecture,
        kind=MachKind.ARCHIVE,
        size_bytes=0,
        builds=tuple(sorted({build for each in objects for build in each.builds})),
        unmarked=sum(each.unmarked for each in objects),
        install_name="",
        version="",
        exported=tuple(sorted(offered)),
        undefined=tuple(sorted(asked - offered)),
        needed=(),
        segments=(),
        bitcode=False,
        debug=any(each.debug for each in objects),
        uuid="",
        signature=MachSignature.NONE,
    )


def read_image(data: bytes) -> MachImage:
    """Return what one architecture is made of. Raises ValueError and what struct and LIEF raise for damage."""
    header = checked_header(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # LIEF warns of numbers that it has no word for
        return _image(data, header.architecture, KINDS.get(header.file_type, MachKind.OTHER), _parsed(data))


def read_sections(data: bytes) -> tuple[MachSection, ...]:
    """Return the sections of one architecture, and its __LINKEDIT, which has none."""
    checked_header(data)
    return tuple(_sections(_parsed(data)))


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


def _sections(binary: lief.MachO.Binary) -> Iterator[MachSection]:
    for segment in binary.segments:
        name = _text(segment.name)
        for section in segment.sections:
            zeroed = section.type in ZEROED
            where = 0 if zeroed else section.offset
            yield MachSection(
                segment=name, name=_text(section.name), offset=where, size_bytes=section.size, zeroed=zeroed
            )
        if not len(segment.sections):
            yield MachSection(segment=name, name="", offset=segment.file_offset, size_bytes=segment.file_size)


def _parsed(data: bytes) -> lief.MachO.Binary:
    config = lief.MachO.ParserConfig()
    config.parse_dyld_exports, config.parse_dyld_bindings, config.parse_dyld_rebases = True, False, False
    parsed = lief.MachO.parse(data, config)
    if parsed is None or parsed.size != 1:
        raise ValueError("LIEF cannot read it")
    binary = parsed.at(0)
    assert binary is not None
    return binary


def _image(data: bytes, architecture: str, kind: MachKind, binary: lief.MachO.Binary) -> MachImage:
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
        install_name=_text(own.name) if own else "",
        version=".".join(map(str, own.current_version)) if own else "",
        exported=tuple(sorted(offered)),
        undefined=tuple(sorted(asked - offered)),
        needed=tuple(_need(dylib) for dylib in dylibs if dylib is not own),
        segments=tuple(
            MachSegment(name=_text(segment.name), file_bytes=segment.file_size, memory_bytes=segment.virtual_size)
            for segment in binary.segments
        ),
        bitcode=any(
            section.segment_name == "__LLVM" and section.name in BITCODE_SECTIONS for section in binary.sections
        ),
        debug=any(section.segment_name == "__DWARF" for section in binary.sections),
        uuid=bytes(binary.uuid.uuid).hex() if binary.uuid is not None else "",
        signature=_signature(data, binary),
    )


def _builds(binary: lief.MachO.Binary, architecture: str) -> Iterator[MachBuild]:
    for command in binary.commands:
        if isinstance(command, lief.MachO.BuildVersion):
            number = int(command.platform)
            platform, variant = PLATFORMS.get(number, (str(number), ""))
            yield _build(platform, variant, command.minos, command.sdk)
        elif isinstance(command, lief.MachO.VersionMin):
            platform = OLD_PLATFORMS[command.command.name]
            variant = "simulator" if platform != "macos" and architecture in SIMULATED else ""
            yield _build(platform, variant, command.version, command.sdk)


def _build(platform: str, variant: str, minimum: list[int], sdk: list[int]) -> MachBuild:
    return MachBuild(platform=platform, variant=variant, minimum_os=_version(minimum), sdk=_version(sdk))


def _version(numbers: list[int]) -> str:
    """Write a version as Apple does: `15.1`, `12.0`, `15.1.2`; nothing for zeros alone."""
    if not any(numbers):
        return ""
    return ".".join(str(number) for number in (numbers if numbers[2] else numbers[:2]))


def _need(dylib: lief.MachO.DylibCommand) -> MachNeed:
    weak = dylib.command == lief.MachO.LoadCommand.TYPE.LOAD_WEAK_DYLIB
    return MachNeed(name=_text(dylib.name), weak=weak)


def _names(binary: lief.MachO.Binary) -> tuple[set[str], set[str]]:
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
    return _text(name).removeprefix("_")


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode(errors="backslashreplace")


def _signature(data: bytes, binary: lief.MachO.Binary) -> MachSignature:
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


LINKEDIT: Final = "__LINKEDIT"
"""Names, signature and what the loader reads once: in the file, and not for the program."""
PAGE_BYTES: Final = {"arm64": 16384, "x86_64": 4096}


def read_apple_library(path: Path) -> tuple[LibraryFacts, LibrarySize]:
    """Return the facts for reports about a library of one architecture; sizes by segment, of an archive the whole."""
    content = read_bytes(path)
    (image,) = macho_of(content, str(path)).images
    return _facts(image), _size(content, image)


def architecture_size(path: Path, architecture: str) -> LibrarySize:
    """Return the sizes of one architecture of a library that may have several, in Apple's word for it."""
    content = one_architecture(read_bytes(path), architecture, str(path))
    (image,) = macho_of(content, str(path)).images
    return _size(content, image)


def _facts(image: MachImage) -> LibraryFacts:
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
    )


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
