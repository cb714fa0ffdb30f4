"""Libraries for Android: what bionic's loader looks at besides what every loader does, and Java's native methods."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from ortrim.binaries.android import ABI_FACTS, NativeLibrary, NativeMethod, Segment, UndefinedSymbol
from ortrim.binaries.elf import build_id_in, dynamic_tags, library_facts, notes, versions_in, with_elf_bytes
from ortrim.errors import BinaryError

WRITABLE_FLAG: Final = 0x2  # PF_W
INDEX_MASK: Final = 0x7FFF  # the highest bit of a version's index hides the symbol
LOADER_FEATURES: Final = {"DT_ANDROID_REL": 23, "DT_ANDROID_RELA": 23, "DT_ANDROID_RELR": 28, "DT_RELR": 30}
"""Packed relocations and the API level whose loader knows them, from bionic's android-changes-for-ndk-developers.md."""
NOTE_LAYOUT: Final = struct.Struct("<I64s64s")
"""API level, NDK version, build number: `.note.android.ident`, written by the NDK's crtbegin. Older ones end sooner."""
RUNTIME_VERSION: Final = re.compile(r"VERS_([0-9][0-9A-Za-z.+-]*)")
SOURCE_PATH: Final = re.compile(
    rb"/(?<![\w.$}*)+/-]/)(?:[\w.+@~-]{1,100}/){1,40}[\w.+-]{1,100}\.(?:c|cc|cpp|cxx|h|hh|hpp|inc|inl|S)(?![\w.-])"
)
"""An absolute path of a source file, as `__FILE__` leaves it; what is relative has a name before the first slash."""


def read_native_library(data: bytes, path: str, compressed_bytes: int, download_bytes: int) -> NativeLibrary:
    """Return what a library of an AAR is made of; `path` is its place in it, `jni/<abi>/<name>`."""

    def read(elf: ELFFile) -> NativeLibrary:
        api_level, ndk = _android_note(elf)
        machine = str(elf.header["e_machine"])
        matching = (abi.name for abi in ABI_FACTS.values() if (abi.machine, abi.bits) == (machine, elf.elfclass))
        names = [version.name for version in versions_in(elf, GNUVerDefSection)]
        return NativeLibrary(
            path=path,
            abi=path.split("/")[-2],
            size_bytes=len(data),
            compressed_bytes=compressed_bytes,
            download_bytes=download_bytes,
            built_for=next(matching, machine),
            facts=library_facts(elf),
            segments=tuple(_segment(header) for header in elf.iter_segments("PT_LOAD")),
            relro=next((_segment(header) for header in elf.iter_segments("PT_GNU_RELRO")), None),
            undefined=tuple(_undefined(elf)),
            loader_features=_loader_features(elf),
            build_id=build_id_in(elf),
            api_level=api_level,
            ndk=ndk,
            version=next((found[1] for found in map(RUNTIME_VERSION.fullmatch, names) if found), ""),
            source_paths=tuple(sorted({found.decode("ascii", "replace") for found in SOURCE_PATH.findall(data)})),
        )

    return with_elf_bytes(data, Path(path), read)


def _segment(header: Any) -> Segment:
    return Segment(
        offset=header["p_offset"],
        address=header["p_vaddr"],
        file_bytes=header["p_filesz"],
        memory_bytes=header["p_memsz"],
        alignment=header["p_align"],
        writable=bool(header["p_flags"] & WRITABLE_FLAG),
    )


def _undefined(elf: ELFFile) -> Iterator[UndefinedSymbol]:
    """Yield the names needed of other libraries, each with the required version."""
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        raise TypeError("it has no table of dynamic symbols")
    versions = {version["vna_other"]: version.name for version in versions_in(elf, GNUVerNeedSection)}
    indexes = _version_indexes(elf)
    for number, symbol in enumerate(table.iter_symbols()):
        if symbol.name and symbol["st_shndx"] == "SHN_UNDEF":
            index = indexes[number] & INDEX_MASK if number < len(indexes) else 0
            weak = symbol["st_info"]["bind"] == "STB_WEAK"
            yield UndefinedSymbol(name=symbol.name, version=versions.get(index, ""), weak=weak)


def _version_indexes(elf: ELFFile) -> tuple[int, ...]:
    for section in elf.iter_sections():
        if isinstance(section, GNUVerSymSection):
            data = section.data()
            return struct.unpack_from(f"<{len(data) // 2}H", data)
    return ()


def _loader_features(elf: ELFFile) -> tuple[tuple[str, int], ...]:
    tags = {str(tag.entry.d_tag) for tag in dynamic_tags(elf)}
    found = [(name, level) for name, level in LOADER_FEATURES.items() if name in tags]
    if "DT_GNU_HASH" in tags and "DT_HASH" not in tags:
        found.append(("DT_GNU_HASH", 23))
    return tuple(found)


def _android_note(elf: ELFFile) -> tuple[int | None, str]:
    """Return API level and NDK version; pyelftools calls every note of type 1 by the name of the GNU one."""
    for note in notes(elf, "Android", "NT_GNU_ABI_TAG"):
        level, ndk, _ = NOTE_LAYOUT.unpack(note["n_descdata"].ljust(NOTE_LAYOUT.size, b"\0")[: NOTE_LAYOUT.size])
        return level, ndk.rstrip(b"\0").decode("ascii", errors="replace")
    return None, ""


MAGIC: Final = 0xCAFEBABE
UTF8: Final = 1
CLASS: Final = 7
NATIVE: Final = 0x0100
SIZES: Final = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of each kind of constant behind its tag, other than text."""
TWO_PLACES: Final = frozenset({5, 6})  # Long and double take two places in the table of constants


@dataclass(frozen=True, kw_only=True)
class JavaClass:
    """A class: its name with slashes, its class file version, and its native methods."""

    name: str
    version: int
    native_methods: tuple[NativeMethod, ...]


def read_class(data: bytes, where: str) -> JavaClass:
    """Return what a class file holds."""
    try:
        return _ClassReader(data).read()
    except (struct.error, IndexError, KeyError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        what, hint = "is not a Java class file, or it is damaged", "compile or download it again"
        raise BinaryError("corrupt-class", what, where=where, why=why, hint=hint) from error


def native_method(class_name: str, method: str, descriptor: str) -> NativeMethod:
    """Return a native method with its symbols; the long one distinguishes overloaded methods."""
    short = f"Java_{_mangled(class_name)}_{_mangled(method)}"
    arguments = descriptor[1 : descriptor.index(")")]
    name = f"{class_name.replace('/', '.')}.{method}"
    return NativeMethod(method=name, short_symbol=short, long_symbol=f"{short}__{_mangled(arguments)}")


def _mangled(name: str) -> str:
    special = {"/": "_", "_": "_1", ";": "_2", "[": "_3"}
    plain = {each for each in name if each.isascii() and each.isalnum()}
    return "".join(each if each in plain else special.get(each, f"_0{ord(each):04x}") for each in name)


class _ClassReader:
    """Goes through a class file once, from its head to its methods."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._texts: dict[int, str] = {}
        self._classes: dict[int, int] = {}

    def read(self) -> JavaClass:
        magic, _, version = self._take(">IHH")
        if magic != MAGIC:
            raise ValueError("it does not begin with 0xCAFEBABE")
        self._read_constants()
        _, this_class, _, interfaces = self._take(">HHHH")
        self._skip(2 * interfaces)
        self._members()  # the fields
        name = self._texts[self._classes[this_class]]
        methods = [(method, descriptor) for flags, method, descriptor in self._members() if flags & NATIVE]
        natives = tuple(native_method(name, method, descriptor) for method, descriptor in methods)
        return JavaClass(name=name, version=version, native_methods=natives)

    def _take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._data, self._position)
        self._position += struct.calcsize(form)
        return values

    def _skip(self, size: int) -> None:
        self._position += size
        if self._position > len(self._data):
            raise IndexError("it ends too soon")

    def _read_constants(self) -> None:
        (count,) = self._take(">H")
        index = 1
        while index < count:
            (tag,) = self._take(">B")
            if tag == UTF8:
                (size,) = self._take(">H")
                start = self._position
                self._skip(size)
                # Modified UTF-8 differs from UTF-8 in NUL and in what is beyond the first 65,536 characters.
                self._texts[index] = self._data[start : start + size].decode("utf-8", errors="surrogateescape")
            elif tag == CLASS:
                (self._classes[index],) = self._take(">H")
            else:
                self._skip(SIZES[tag])
            index += 2 if tag in TWO_PLACES else 1

    def _members(self) -> list[tuple[int, str, str]]:
        """Return flags, name and descriptor of each field, or of each method."""
        found = []
        for _ in range(self._take(">H")[0]):
            flags, name, descriptor, attributes = self._take(">HHHH")
            found.append((flags, self._texts[name], self._texts[descriptor]))
            for _ in range(attributes):
                _, size = self._take(">HI")
                self._skip(size)
        return found
