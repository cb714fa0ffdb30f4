"""Relocatable Mach-O objects: the symbols that one offers to a link and those that it asks of it.

Source of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

import struct
from collections.abc import Iterator
from typing import Final

from ortrim.binaries.macho_commands import load_commands
from ortrim.binaries.macho_layout import LC_SYMTAB, checked_header

OBJECT_TYPE: Final = 1
ENTRY: Final = struct.Struct("<IBBHQ")
STAB_MASK, TYPE_MASK, EXTERN = 0xE0, 0x0E, 0x01


def object_symbols(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield each symbol that other objects can see, without C's underscore, and whether it is defined here.

    Those that only the finished library hides are among them: to a link they are as good as any. A common symbol
    counts as defined. Raises ValueError and struct.error for damage.
    """
    if checked_header(data).file_type != OBJECT_TYPE:
        raise ValueError("it is no object")
    for place, count, start_of_names, names_size in _tables(data):
        names = data[start_of_names : start_of_names + names_size]
        for number in range(count):
            start, kind, _, _, value = ENTRY.unpack_from(data, place + number * ENTRY.size)
            if kind & EXTERN and not kind & STAB_MASK:
                name = _name(names, start)
                yield name.removeprefix("_"), bool(kind & TYPE_MASK or value)


def _tables(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    for command, place in load_commands(data):
        if command == LC_SYMTAB:
            yield struct.unpack_from("<IIII", data, place + 8)


def _name(names: bytes, start: int) -> str:
    end = names.index(0, start)
    if end == start:
        raise ValueError("a symbol that others can see has no name")
    return names[start:end].decode()
