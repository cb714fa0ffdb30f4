"""Java class files: the native methods of each, and the symbols that a virtual machine looks for.

The format is chapter 4 of the Java Virtual Machine Specification, the names of symbols are from "Resolving Native
Method Names" of the JNI specification.
"""

import struct
from dataclasses import dataclass
from typing import Final

from ortrim.core.android import NativeMethod
from ortrim.errors import BinaryError

MAGIC: Final = 0xCAFEBABE
UTF8: Final = 1
CLASS: Final = 7
NATIVE: Final = 0x0100
SIZES: Final = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of each kind of constant behind its tag, other than text."""
TWO_PLACES: Final = frozenset({5, 6})
"""Long and double take two places in the table of constants."""


@dataclass(frozen=True, kw_only=True)
class JavaClass:
    """A class: its name with slashes, its class file version, and its native methods."""

    name: str
    version: int
    native_methods: tuple[NativeMethod, ...]


def read_class(data: bytes, where: str) -> JavaClass:
    """Return what a class file holds. Raises `BinaryError` (`corrupt-class`)."""
    try:
        return _ClassReader(data).read()
    except (struct.error, IndexError, KeyError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        what, hint = "is not a Java class file, or it is damaged", "compile or download it again"
        raise BinaryError("corrupt-class", what, where=where, why=why, hint=hint) from error


def native_method(class_name: str, method: str, descriptor: str) -> NativeMethod:
    """Return a native method with its symbols; the long one tells overloaded methods apart."""
    short = f"Java_{_mangled(class_name)}_{_mangled(method)}"
    arguments = descriptor[1 : descriptor.index(")")]
    name = f"{class_name.replace('/', '.')}.{method}"
    return NativeMethod(method=name, short_symbol=short, long_symbol=f"{short}__{_mangled(arguments)}")


def _mangled(name: str) -> str:
    return "".join(_mangled_character(character) for character in name)


def _mangled_character(character: str) -> str:
    special = {"/": "_", "_": "_1", ";": "_2", "[": "_3"}
    if character in special:
        return special[character]
    plain = character.isascii() and character.isalnum()
    return character if plain else f"_0{ord(character):04x}"


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
