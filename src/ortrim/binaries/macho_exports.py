"""A Mach-O library that exports only chosen symbols: what Apple's linker does when it is given a list of exports.

zig's linker takes such a list and passes it over: it exports every symbol that no compiler has hidden, and names of its
own (`__mh_dylib_header`). It also has the loader look for weak symbols in all libraries of the program, where a Mac's
C++ library would answer for the one inside. So, afterwards, other symbols become local, what is weak is the library's
own, and exports trie and ad hoc signature are written anew. Every part keeps its place and its size.

Source of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

import hashlib
import struct
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby, takewhile
from pathlib import Path
from typing import Final, NamedTuple

import lief

from ortrim.base.files import storage_errors
from ortrim.binaries.macho import LC_DYSYMTAB, LC_SYMTAB, checked_header, diagnosed, load_commands
from ortrim.errors import BinaryError

lief.disable_leak_warning()  # at the interpreter's end it now and then prints what Python has not collected of it


class _Node(NamedTuple):
    """A place in the trie: the address of the name that ends here, None for none, and what comes after which bytes."""

    address: int | None
    children: "list[tuple[bytes, _Node]]"


def exports_trie(addresses: Mapping[str, int]) -> bytes:
    """Return the trie of plain exports; an address is counted from the library's first byte."""
    nodes = tuple(_walked(_node({name.encode(): address for name, address in addresses.items()})))
    places = dict.fromkeys(map(id, nodes), 0)
    while True:
        # Where a node lies is written in as few bytes as it takes, so that it hangs on where the others lie.
        written = [_written(node, places) for node in nodes]
        found, place = {}, 0
        for node, content in zip(nodes, written, strict=True):
            found[id(node)] = place
            place += len(content)
        if found == places:
            return b"".join(written)
        places = found


def _node(names: Mapping[bytes, int]) -> _Node:
    children = []
    for _, group in groupby(sorted(name for name in names if name), key=lambda name: name[:1]):
        same = list(group)
        # Of sorted names, all begin as the first and the last do.
        pairs = zip(same[0], same[-1], strict=False)
        edge = same[0][: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
        children.append((edge, _node({name.removeprefix(edge): names[name] for name in same})))
    return _Node(names.get(b""), children)


def _walked(node: _Node) -> Iterator[_Node]:
    yield node
    for _, child in node.children:
        yield from _walked(child)


def _written(node: _Node, places: Mapping[int, int]) -> bytes:
    export = b"" if node.address is None else _uleb128(0) + _uleb128(node.address)
    edges = b"".join(edge + b"\0" + _uleb128(places[id(child)]) for edge, child in node.children)
    return _uleb128(len(export)) + export + bytes([len(node.children)]) + edges


def _uleb128(number: int) -> bytes:
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*content, number])


LC_CODE_SIGNATURE: Final = 0x1D
SIGNATURE_MAGIC: Final = 0xFADE0CC0
DIRECTORY_MAGIC: Final = 0xFADE0C02
SHA256: Final = 2


def signed_anew(data: bytes) -> bytes:
    """Return a file of one architecture with the digests of its pages as they are; unchanged when it is not signed."""
    place = dict(load_commands(data)).get(LC_CODE_SIGNATURE)
    if place is None:
        return data
    (start,) = struct.unpack_from("<I", data, place + 8)
    magic, _, count = struct.unpack_from(">III", data, start)
    slots = dict(struct.unpack_from(">II", data, start + 12 + 8 * number) for number in range(count))
    directory = start + slots.get(0, 0)
    fields = struct.unpack_from(">9I4B", data, directory)
    hashes, pages, covered, digest_bytes, kind, page_shift = (fields[n] for n in (4, 7, 8, 9, 10, 12))
    first, page_bytes = directory + hashes, 1 << page_shift
    if (magic, fields[0]) == (SIGNATURE_MAGIC, DIRECTORY_MAGIC) and (kind, digest_bytes) != (SHA256, 32):
        raise ValueError("its signature is not of SHA-256")
    whole = pages == -(-covered // page_bytes) and first + 32 * pages <= len(data) and covered <= start
    if (magic, fields[0]) != (SIGNATURE_MAGIC, DIRECTORY_MAGIC) or not whole:
        raise ValueError("its signature is damaged")
    content = bytearray(data)
    for number in range(pages):
        page = data[number * page_bytes : min((number + 1) * page_bytes, covered)]
        content[first + 32 * number : first + 32 * (number + 1)] = hashlib.sha256(page).digest()
    return bytes(content)


lief.logging.disable()

LIBRARY_TYPE: Final = 6
LC_DYLD_INFO_ONLY: Final = 0x80000022
WEAK_FIELD, EXPORT_FIELD = 24, 40
"""Where `weak_bind_off` and `export_off` lie in LC_DYLD_INFO_ONLY, each before its size."""
FLAGS_FIELD: Final = 24
WEAK_FLAGS: Final = 0x8000 | 0x10000  # MH_WEAK_DEFINES and MH_BINDS_TO_WEAK, in the header's flags
WEAK: Final = lief.MachO.DyldBindingInfo.CLASS.WEAK
SYMBOL: Final = struct.Struct("<IBBHQ")
INDEX: Final = struct.Struct("<I")
EXTERN, PRIVATE_EXTERN = 0x01, 0x10
OF_NO_SYMBOL: Final = (0x80000000, 0x40000000, 0xC0000000)
"""INDIRECT_SYMBOL_LOCAL, INDIRECT_SYMBOL_ABS and both.

zig's linker leaves as many entries as memory was as there are pointers to the library's own symbols; to Apple's tools
such a number of no symbol is damage.
"""


class MachoSymbol(NamedTuple):
    """An entry of the table of symbols, and the number that it has had there."""

    number: int
    name: str
    start: int
    kind: int
    section: int
    note: int
    value: int


class Tables(NamedTuple):
    """Offsets and content of the load commands that describe a library's exports."""

    dysymtab: int
    dyld_info: int
    symbols: int
    symbol_count: int
    names: int
    first_offered: int
    offered: int
    indirect: int
    indirects: int


def keep_exports(library: Path, listing: Path) -> None:
    """Leave a library the exports that a file lists, a name a line; see `with_exports`."""
    with storage_errors(library):
        names = frozenset(listing.read_text(encoding="utf-8").split())
        library.write_bytes(with_exports(library.read_bytes(), names, str(library)))


def with_exports(data: bytes, names: Collection[str], where: str = "") -> bytes:
    """Return a library that exports only these symbols, as the linker names them; signed again if it was signed."""
    with diagnosed(where):
        if checked_header(data)[1] != LIBRARY_TYPE:
            raise BinaryError("not-mach-o", "this is not a Mach-O library", where=where)
        _require_own_definitions(data)
        tables = _tables(data)
        offered = tuple(_offered(data, tables))
        kept = tuple(symbol for symbol in offered if symbol.name in names)
        if missing := sorted(set(names) - {symbol.name for symbol in kept}):
            what = f"the library does not define {', '.join(missing)}"
            raise BinaryError("symbol-missing", what, where=where, hint="build again; if it fails again, report it")
        others = (symbol for symbol in offered if symbol.name not in names)
        hidden = tuple(symbol._replace(kind=symbol.kind & ~EXTERN | PRIVATE_EXTERN) for symbol in others)
        content = bytearray(data)
        _write_symbols(content, tables, hidden, kept)
        _bind_nothing_weakly(content, tables)
        _write_trie(content, tables, exports_trie({symbol.name: symbol.value for symbol in kept}))
        return signed_anew(bytes(content))


def _tables(data: bytes) -> Tables:
    places = dict(load_commands(data))
    try:
        symtab, dysymtab, dyld_info = (places[kind] for kind in (LC_SYMTAB, LC_DYSYMTAB, LC_DYLD_INFO_ONLY))
    except KeyError as error:
        raise ValueError(f"it has no load command {error.args[0]:#x}") from error
    symbols, count, names, _ = struct.unpack_from("<4I", data, symtab + 8)
    _, _, *offered = struct.unpack_from("<4I", data, dysymtab + 8)
    indirect = struct.unpack_from("<2I", data, dysymtab + 56)
    return Tables(dysymtab, dyld_info, symbols, count, names, *offered, *indirect)


def _offered(data: bytes, tables: Tables) -> Iterator[MachoSymbol]:
    for number in range(tables.first_offered, tables.first_offered + tables.offered):
        start, *entry = SYMBOL.unpack_from(data, tables.symbols + number * SYMBOL.size)
        place = tables.names + start
        name = data[place : data.index(0, place)].decode()
        yield MachoSymbol(number, name, start, *entry)


def _write_symbols(
    content: bytearray, tables: Tables, hidden: tuple[MachoSymbol, ...], kept: tuple[MachoSymbol, ...]
) -> None:
    """Put what is hidden at the end of the local symbols, before what is offered, and renumber what goes by numbers."""
    renumbered = {}
    for number, symbol in enumerate((*hidden, *kept), tables.first_offered):
        SYMBOL.pack_into(content, tables.symbols + number * SYMBOL.size, *symbol[2:])
        renumbered[symbol.number] = number
    local = tables.first_offered + len(hidden)
    struct.pack_into("<4I", content, tables.dysymtab + 8, 0, local, local, len(kept))
    for place in range(tables.indirect, tables.indirect + tables.indirects * INDEX.size, INDEX.size):
        (number,) = INDEX.unpack_from(content, place)
        number = renumbered.get(number, number)
        is_known = number < tables.symbol_count or number in OF_NO_SYMBOL
        INDEX.pack_into(content, place, number if is_known else OF_NO_SYMBOL[0])


def _require_own_definitions(data: bytes) -> None:
    """Refuse a library without a definition of its own of a weak symbol: a pointer to it that moves along."""
    parsed = lief.MachO.parse(data)
    binary = parsed.at(0) if parsed is not None else None
    if binary is None:
        raise ValueError("LIEF cannot read it")
    own = {relocation.address for relocation in binary.relocations}
    for binding in binary.bindings:
        weak = isinstance(binding, lief.MachO.DyldBindingInfo) and binding.binding_class == WEAK
        if weak and binding.address not in own:
            raise ValueError(f"the weak symbol at {binding.address:#x} is another library's")


def _bind_nothing_weakly(content: bytearray, tables: Tables) -> None:
    """Fill the instructions for weak symbols with zeros, each of which says that they end."""
    place, size = struct.unpack_from("<II", content, tables.dyld_info + WEAK_FIELD)
    content[place : place + size] = bytes(size)
    (flags,) = struct.unpack_from("<I", content, FLAGS_FIELD)
    struct.pack_into("<I", content, FLAGS_FIELD, flags & ~WEAK_FLAGS)


def _write_trie(content: bytearray, tables: Tables, trie: bytes) -> None:
    """Write the trie in place of the old one, which is never smaller; what is left over is filled with zeros."""
    place, size = struct.unpack_from("<II", content, tables.dyld_info + EXPORT_FIELD)
    if len(trie) > size:
        raise ValueError("there is no room for its exports")
    content[place : place + size] = trie.ljust(size, b"\0")
