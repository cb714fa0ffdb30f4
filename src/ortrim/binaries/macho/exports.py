"""A Mach-O library that exports only chosen symbols, and its symbols in a file of their own.

The first is what Apple's linker does when it is given a list of exports, the second what `dsymutil` and `strip` do.

zig's linker takes such a list and passes it over: it exports every symbol that no compiler has hidden, and names of its
own (`__mh_dylib_header`). It also has the loader look for weak symbols in all libraries of the program, where a Mac's
C++ library would answer for the one inside. So, afterwards, other symbols become local, what is weak is the library's
own, and `__LINKEDIT` is written anew without what the loader does not read. What is mapped keeps its place.

Source of the format: Apple's mach-o/loader.h and mach-o/nlist.h.
"""

import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Final, NamedTuple

from ortrim.base.files import storage_errors
from ortrim.binaries.macho import files
from ortrim.binaries.macho.layout import load_lief
from ortrim.errors import BinaryError


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


LIBRARY_TYPE, SYMBOLS_TYPE = 6, 10
LC_SEGMENT, LC_UUID, LC_BUILD_VERSION, LC_DYLD_INFO_ONLY = 0x19, 0x1B, 0x32, 0x80000022
LC_CODE_SIGNATURE, LC_FUNCTION_STARTS, LC_DATA_IN_CODE = 0x1D, 0x26, 0x29
BINDING_FIELDS, WEAK_FIELD, EXPORT_FIELD = (8, 16, 32), 24, 40
"""Where LC_DYLD_INFO_ONLY says where its instructions lie, each before their size."""
INDIRECT_FIELD: Final = 56
FLAGS_FIELD: Final = 24
WEAK_FLAGS: Final = 0x8000 | 0x10000  # MH_WEAK_DEFINES and MH_BINDS_TO_WEAK, in the header's flags
SYMBOL: Final = struct.Struct("<IBBHQ")
STAB_MASK, TYPE_MASK, IN_SECTION, PRIVATE_EXTERN, EXTERN = 0xE0, 0x0E, 0x0E, 0x10, 0x01
OF_NO_SYMBOL: Final = 0x80000000
"""INDIRECT_SYMBOL_LOCAL, for pointers to the library's own symbols, for which zig's linker leaves what memory had."""
HEADER_BYTES, INDEX_BYTES, ALIGNMENT, SYMBOLS_START = 32, 4, 8, 4096
SIGNATURE_MAGIC, DIRECTORY_MAGIC, SIGNATURE_ALIGNMENT, SHA256 = 0xFADE0CC0, 0xFADE0C02, 16, 2
PAGE_POWERS: Final = frozenset({12, 14})
SUPER_BLOB: Final = struct.Struct(">5I")
DIRECTORY: Final = struct.Struct(">9I4B")


class MachoSymbol(NamedTuple):
    """An entry of the table of symbols, with its name."""

    name: str
    kind: int
    section: int
    note: int
    value: int

    @property
    def defined(self) -> bool:
        """Whether it has a place in a section."""
        return self.kind & TYPE_MASK == IN_SECTION and not self.kind & STAB_MASK


def take_apart(linked: Path, listing: Path, library: Path, symbols: Path) -> None:
    """Write of a linked library what an app takes, which exports what a file lists, a name a line, and its symbols."""
    with storage_errors(library):
        names = frozenset(listing.read_text(encoding="utf-8").split())
        for path, content in zip((library, symbols), taken_apart(linked.read_bytes(), names, str(linked)), strict=True):
            path.write_bytes(content)


def taken_apart(data: bytes, names: Collection[str], where: str = "") -> tuple[bytes, bytes]:
    """Return a library that exports only these symbols, as the linker names them, and what a dSYM of it holds.

    The library is signed if it was signed. Its UUID is a digest of what is left of it, so that it does not hang on what
    the linker leaves of its memory in tables that nobody reads.
    """
    with files.diagnosed(where):
        if files.checked_header(data)[1] != LIBRARY_TYPE:
            raise BinaryError("not-mach-o", "this is not a Mach-O library", where=where)
        _require_own_definitions(data)
        symbols = tuple(_symbols(data))
        exported = {each.name for each in symbols if each.defined and each.kind & EXTERN}
        if missing := sorted(set(names) - exported):
            what = f"the library does not define {', '.join(missing)}"
            raise BinaryError("symbol-missing", what, where=where, hint="build again; if it fails again, report it")
        kept = [number for number, each in enumerate(symbols) if each.kind & EXTERN and each.name in names]
        asked = [number for number, each in enumerate(symbols) if each.kind & ~PRIVATE_EXTERN == EXTERN]
        content = _without_tables(data)
        _write_linkedit(content, data, symbols, kept, asked)
        _write_uuid(content)
        return _signed(content, data), _symbols_alone(content, [each for each in symbols if each.defined])


def _symbols(data: bytes) -> Iterator[MachoSymbol]:
    start, count, names, _ = struct.unpack_from("<4I", data, _commands(data)[files.LC_SYMTAB] + 8)
    for place in range(start, start + count * SYMBOL.size, SYMBOL.size):
        at, *entry = SYMBOL.unpack_from(data, place)
        yield MachoSymbol(data[names + at : data.index(0, names + at)].decode(), *entry)


def _commands(data: bytes | bytearray) -> dict[int, int]:
    """Return where the load commands lie; of segments the last one, which has to be `__LINKEDIT`."""
    places = dict(files.load_commands(data))
    for kind in (files.LC_SYMTAB, files.LC_DYSYMTAB, LC_DYLD_INFO_ONLY, LC_UUID, LC_SEGMENT):
        if kind not in places:
            raise ValueError(f"it has no load command {kind:#x}")
    if data[places[LC_SEGMENT] + 8 :][:11] != b"__LINKEDIT\0":
        raise ValueError("__LINKEDIT is not its last segment")
    return places


def _without_tables(data: bytes) -> bytearray:
    """Return a library up to `__LINKEDIT`, as one that binds nothing weakly."""
    (start,) = struct.unpack_from("<Q", data, _commands(data)[LC_SEGMENT] + 40)
    content = bytearray(data[:start])
    (flags,) = struct.unpack_from("<I", content, FLAGS_FIELD)
    struct.pack_into("<I", content, FLAGS_FIELD, flags & ~WEAK_FLAGS)
    return content


def _write_linkedit(
    content: bytearray, data: bytes, symbols: Sequence[MachoSymbol], kept: Sequence[int], asked: Sequence[int]
) -> None:
    """Append the tables in the order of cctools, and say in the load commands where they are."""
    places = _commands(data)

    def append(table: bytes, field: int, unit: int = 1) -> None:
        struct.pack_into("<II", content, field, len(content), len(table) // unit)
        content.extend(table + bytes(-len(table) % ALIGNMENT))

    info = places[LC_DYLD_INFO_ONLY]
    for field in BINDING_FIELDS:
        append(_padded(_table(data, info + field)), info + field)
    append(b"", info + WEAK_FIELD)
    append(_padded(exports_trie({symbols[number].name: symbols[number].value for number in kept})), info + EXPORT_FIELD)
    for place in (places[kind] for kind in (LC_FUNCTION_STARTS, LC_DATA_IN_CODE) if kind in places):
        append(_padded(_table(data, place + 8)), place + 8)
    table, names = _packed([symbols[number] for number in (*kept, *asked)])
    append(table, places[files.LC_SYMTAB] + 8, SYMBOL.size)
    struct.pack_into("<6I", content, places[files.LC_DYSYMTAB] + 8, 0, 0, 0, len(kept), len(kept), len(asked))
    numbers = {old: new for new, old in enumerate((*kept, *asked))}
    start, count = struct.unpack_from("<II", data, places[files.LC_DYSYMTAB] + INDIRECT_FIELD)
    old = struct.unpack_from(f"<{count}I", data, start)
    indirect = struct.pack(f"<{count}I", *(numbers.get(number, OF_NO_SYMBOL) for number in old))
    append(indirect, places[files.LC_DYSYMTAB] + INDIRECT_FIELD, INDEX_BYTES)
    append(_padded(names), places[files.LC_SYMTAB] + 16)
    _end_linkedit(content, places[LC_SEGMENT])


def _table(data: bytes, field: int) -> bytes:
    start, size = struct.unpack_from("<II", data, field)
    return data[start : start + size]


def _padded(table: bytes) -> bytes:
    return table + bytes(-len(table) % ALIGNMENT)


def _packed(symbols: Iterable[MachoSymbol]) -> tuple[bytes, bytes]:
    """Return a table of symbols, and their names."""
    table, names = bytearray(), bytearray(b"\0")
    for name, *entry in symbols:
        table += SYMBOL.pack(len(names), *entry)
        names += name.encode() + b"\0"
    return bytes(table), bytes(names)


def _end_linkedit(content: bytearray, place: int) -> None:
    """Let the last segment end with the file, and with a page of memory."""
    page = 1 << files.PROCESSORS[files.architecture_name(*struct.unpack_from("<II", content, 4))][2]
    (start,) = struct.unpack_from("<Q", content, place + 40)
    size = len(content) - start
    struct.pack_into("<Q", content, place + 32, size + -size % page)
    struct.pack_into("<Q", content, place + 48, size)


def _write_uuid(content: bytearray) -> None:
    """Write a digest of all else, marked as such (RFC 4122, version 3) as linkers do."""
    place = _commands(content)[LC_UUID] + 8
    content[place : place + 16] = bytes(16)
    digest = bytearray(hashlib.sha256(content).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x30, digest[8] & 0x3F | 0x80
    content[place : place + 16] = digest


def _require_own_definitions(data: bytes) -> None:
    """Refuse a library without a definition of its own of a weak symbol: a pointer to it that moves along."""
    lief = load_lief()
    parsed = lief.MachO.parse(data)
    binary = parsed.at(0) if parsed is not None else None
    if binary is None:
        raise ValueError("LIEF cannot read it")
    own = {relocation.address for relocation in binary.relocations}
    for binding in binary.bindings:
        info = lief.MachO.DyldBindingInfo
        weak = isinstance(binding, info) and binding.binding_class == info.CLASS.WEAK
        if weak and binding.address not in own:
            raise ValueError(f"the weak symbol at {binding.address:#x} is another library's")


def _signed(content: bytearray, data: bytes) -> bytes:
    """Return a library with the digests of its pages if it was signed; `data` has the signature that it had."""
    place = dict(files.load_commands(data)).get(LC_CODE_SIGNATURE)
    if place is None:
        return bytes(content)
    old = _table(data, place + 8)
    magic, _, _, _, start = struct.unpack_from(">5I", old)
    fields = list(DIRECTORY.unpack_from(old, start))
    whole = start + DIRECTORY.size <= start + fields[4] <= len(old) and fields[12] in PAGE_POWERS
    if not whole or (magic, fields[0], *fields[9:11]) != (SIGNATURE_MAGIC, DIRECTORY_MAGIC, 32, SHA256):
        raise ValueError("its signature is damaged, or not of SHA-256")
    content += bytes(-len(content) % SIGNATURE_ALIGNMENT)
    page, head = 1 << fields[12], old[start + DIRECTORY.size : start + fields[4]]
    pages = -(-len(content) // page)
    fields[1], fields[7], fields[8] = fields[4] + 32 * pages, pages, len(content)
    size = SUPER_BLOB.size + fields[1]
    covered = len(content)
    struct.pack_into("<II", content, place + 8, covered, size + -size % SIGNATURE_ALIGNMENT)
    content += SUPER_BLOB.pack(SIGNATURE_MAGIC, size, 1, 0, SUPER_BLOB.size) + DIRECTORY.pack(*fields) + head
    content += bytes(32 * pages + -size % SIGNATURE_ALIGNMENT)
    _end_linkedit(content, _commands(content)[LC_SEGMENT])
    return with_digests(content, covered)


def with_digests(content: bytearray, start: int) -> bytes:
    """Return a library with the digests of its pages, for which there is room in the signature at `start`."""
    fields = DIRECTORY.unpack_from(content, start + SUPER_BLOB.size)
    page, first = 1 << fields[12], start + SUPER_BLOB.size + fields[4]
    for number in range(fields[7]):
        digest = hashlib.sha256(content[number * page : min((number + 1) * page, start)]).digest()
        content[first + 32 * number : first + 32 * (number + 1)] = digest
    return bytes(content)


def _symbols_alone(library: bytearray, symbols: Iterable[MachoSymbol]) -> bytes:
    """Return the library's UUID, system and sections without their bytes, and symbols: what debuggers read of a dSYM.

    Symbols without C's underscore are the assembler's own.
    """
    commands, header = [], library[:HEADER_BYTES]
    for kind, place in files.load_commands(library):
        (size,) = struct.unpack_from("<I", library, place + 4)
        command = library[place : place + size]
        if kind == LC_SEGMENT:
            struct.pack_into("<QQ", command, 40, 0, 0)
            for section in range(72, size, 80):
                struct.pack_into(
                    "<4I", command, section + 48, 0, *struct.unpack_from("<I", command, section + 52), 0, 0
                )
        if kind in {LC_SEGMENT, LC_UUID, LC_BUILD_VERSION, files.LC_SYMTAB}:
            commands.append(command)
    struct.pack_into("<4I", header, 12, SYMBOLS_TYPE, len(commands), sum(map(len, commands)), 0)
    content = header + b"".join(commands)
    content += bytes(-len(content) % SYMBOLS_START)
    places = dict(files.load_commands(content))
    table, names = _packed([each for each in symbols if each.name.startswith("_")])
    start = len(content)
    struct.pack_into(
        "<4I", content, places[files.LC_SYMTAB] + 8, start, len(table) // SYMBOL.size, start + len(table), len(names)
    )
    struct.pack_into("<Q", content, places[LC_SEGMENT] + 40, start)
    content += table + names
    _end_linkedit(content, places[LC_SEGMENT])
    return bytes(content)
