"""Mach-O objects of a static library whose names clash with none of an app: all but chosen ones are renamed.

Apple's linker joins objects into one and makes names local (`ld -r` with a list of exports). zig 0.17's joins them,
too, but keeps every copy of an inline function, and the code of ONNX Runtime crashes afterwards. So the objects stay
apart: what they define for each other gets a name of this library's own, which no app exports.

Source of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final

from ortrim.binaries.macho.files import LC_SYMTAB, checked_header, diagnosed, load_commands
from ortrim.binaries.objects import object_symbols
from ortrim.errors import BinaryError

OBJECT_TYPE: Final = 1
SYMBOL: Final = struct.Struct("<IBBHQ")
STAB_MASK, TYPE_MASK, PRIVATE_EXTERN, EXTERN = 0xE0, 0x0E, 0x10, 0x01
ALIGNMENT: Final = 8


def needed_objects(roots: Sequence[bytes], members: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the members of static libraries that objects need, directly or by others, each once, in their order."""
    found = tuple(members)
    offers: dict[str, int] = {}
    asks: list[set[str]] = []
    for number, member in enumerate(found):
        defined, undefined = _names(member)
        asks.append(undefined)
        for name in defined:
            offers.setdefault(name, number)
    own = [_names(root) for root in roots]
    satisfied = set(chain.from_iterable(defined for defined, _ in own))
    waiting = set(chain.from_iterable(undefined for _, undefined in own))
    needed = set[int]()
    while waiting:
        chosen = {offers[name] for name in waiting - satisfied if name in offers} - needed
        needed |= chosen
        waiting = set(chain.from_iterable(asks[number] for number in chosen))
    return tuple(found[number] for number in sorted(needed))


def with_own_names(objects: Sequence[bytes], names: Collection[str], suffix: str, where: str) -> tuple[bytes, ...]:
    """Return objects in which all names that they define, but these, end in `suffix` and are hidden from other files.

    Names are C's, without the underscore.
    """
    with diagnosed(where):
        defined = set(chain.from_iterable(_names(each)[0] for each in objects))
        require_defined(names, defined, where)
        hidden = defined - set(names)
        own = {f"{prefix}{name}".encode() for name in hidden for prefix in ("_", "")}  # those of assembly may have none
        return tuple(_renamed(each, own, suffix.encode()) for each in objects)


def require_defined(names: Collection[str], defined: Collection[str], where: str) -> None:
    """Refuse objects that do not define all names."""
    if missing := sorted(set(names) - set(defined)):
        what = f"no object defines {', '.join(missing)}"
        raise BinaryError("symbol-missing", what, where=where, hint="build again; if it fails again, report it")


def _names(data: bytes) -> tuple[set[str], set[str]]:
    """Return the names that an object defines for others, and those that it asks for."""
    if checked_header(data)[1] != OBJECT_TYPE:
        raise ValueError("it is not an object")
    symbols = tuple(object_symbols(data))
    return {name for name, here in symbols if here}, {name for name, here in symbols if not here}


def _renamed(data: bytes, own: Collection[bytes], suffix: bytes) -> bytes:
    place = dict(load_commands(data))[LC_SYMTAB]
    start, count, names, size = struct.unpack_from("<4I", data, place + 8)
    if start + count * SYMBOL.size > names or names + size + ALIGNMENT <= len(data):
        raise ValueError("the names of its symbols do not end it")
    content, places, text = bytearray(data[:names]), {b"": 0}, bytearray(b"\0")
    for entry in range(start, start + count * SYMBOL.size, SYMBOL.size):
        at, kind, section, note, value = SYMBOL.unpack_from(data, entry)
        name = data[names + at : data.index(0, names + at)]
        if kind & EXTERN and not kind & STAB_MASK and name in own:
            name += suffix
            kind |= PRIVATE_EXTERN if kind & TYPE_MASK or value else 0
        if name not in places:
            places[name] = len(text)
            text += name + b"\0"
        SYMBOL.pack_into(content, entry, places[name], kind, section, note, value)
    text += bytes(-len(text) % ALIGNMENT)
    struct.pack_into("<I", content, place + 20, len(text))
    return bytes(content + text)
