import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

import lief
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apple_slices import TRIPLES, is_truly_signed, recorded
from ortrim.binaries.macho.exports import WEAK_FLAGS, exports_trie, taken_apart
from ortrim.binaries.macho.files import MachKind, MachSignature, macho_of
from ortrim.errors import BinaryError
from refusing import refused

API = "_OrtGetApiBase"
LIBRARY = recorded("macos-arm64")
WEAK = Path(__file__).with_name("data") / "weak-x86_64.dylib"
"""Linked by zig 0.17 (`zig cc -target x86_64-macos.13.3 -Os -dynamiclib -Wl,-x`) of a function that calls another, a
weak one, directly and by a pointer."""


def exported(library: bytes) -> tuple[str, ...]:
    (image,) = macho_of(library, "library").images
    return image.exported


def library_of(data: bytes) -> bytes:
    return taken_apart(data, {API})[0]


@pytest.mark.parametrize("target", TRIPLES)
def test_only_what_is_asked_for_is_offered(target: str) -> None:
    """What zig's linker offers besides is gone, from the table of symbols and from the trie."""
    assert exported(library_of(recorded(target))) == ("OrtGetApiBase",)


@pytest.mark.parametrize("target", TRIPLES)
def test_nothing_that_is_mapped_moves(target: str) -> None:
    """The library has its code and load commands, and asks for what it asked for before; what only names is gone."""
    (before,), (after,) = (macho_of(each, "").images for each in (recorded(target), library_of(recorded(target))))
    assert after.size_bytes < before.size_bytes
    assert (after.undefined, after.needed, after.segments[:-1]) == (
        before.undefined,
        before.needed,
        before.segments[:-1],
    )
    assert (after.builds, after.install_name) == (before.builds, before.install_name)
    assert {name for name, _ in symbols(library_of(recorded(target)))} == {
        API,
        *(f"_{name}".replace("_dyld_stub", "dyld_stub") for name in after.undefined),
    }


def test_the_signature_is_that_of_what_was_written() -> None:
    """Without a true signature no Apple processor of ARM loads a library."""
    library = library_of(LIBRARY)
    assert is_truly_signed(library)
    assert not is_truly_signed(library[:100] + b"?" + library[101:])
    assert macho_of(library, "library").images[0].signature is MachSignature.AD_HOC
    assert macho_of(library_of(recorded("macos-x86_64")), "").images[0].signature is MachSignature.NONE


@pytest.mark.parametrize(
    ("field", "value"), [(0, 0), (20, 0), (20 + 37, 1), (20 + 16, 0xFFFFFFF), (20 + 16, 3), (20 + 39, 0)]
)
def test_a_damaged_signature_is_refused(field: int, value: int) -> None:
    """A magic number of nothing, another kind of digest, digests beyond the end or before it, pages of one byte."""
    damaged = bytearray(LIBRARY)
    start = LIBRARY.index(b"\xfa\xde\x0c\xc0")
    struct.pack_into(">B" if field in {20 + 37, 20 + 39} else ">I", damaged, start + field, value)
    assert "signature" in refused(BinaryError, library_of, bytes(damaged)).why


def test_symbols_are_in_a_file_of_their_own() -> None:
    """Of the same UUID and addresses, without a byte of what is mapped; but for those that the assembler made up."""
    library, content = taken_apart(WEAK.read_bytes(), {API})
    (image,), (shipped,) = (macho_of(each, "").images for each in (content, library))
    assert (image.kind, image.uuid, image.builds) == (MachKind.SYMBOLS, shipped.uuid, shipped.builds)
    assert [each.memory for each in image.segments[:-1]] == [each.memory for each in shipped.segments[:-1]]
    assert not any(each.file_bytes for each in image.segments[:-1])
    assert dict(symbols(content)) == {
        name: address for name, address in symbols(WEAK.read_bytes()) if address and name.startswith("_")
    }


def test_the_uuid_hangs_on_what_is_left_alone() -> None:
    """What zig's linker leaves of its memory in a table that nobody reads is in no library, and not in its UUID."""
    changed, other = bytearray(LIBRARY), bytearray(LIBRARY)
    place, _ = indirect(LIBRARY)
    struct.pack_into("<I", changed, place, 0x61636F6C)
    struct.pack_into("<I", other, place, 0x90510045)
    assert library_of(bytes(changed)) == library_of(bytes(other))
    assert calls(library_of(bytes(changed)))[0] == 0x80000000
    other[PAGE_BYTES] ^= 1
    uuids = {macho_of(library_of(bytes(each)), "").images[0].uuid for each in (changed, other)}
    assert len(uuids) == 2


def test_calls_follow_a_symbol_that_moved() -> None:
    """A library may call what it offers through its own table: such an entry goes along with the symbol."""
    tampered = bytearray(LIBRARY)
    place, _ = indirect(LIBRARY)
    names = [name for name, _ in symbols(LIBRARY)]
    struct.pack_into("<I", tampered, place, names.index(API))
    library = library_of(bytes(tampered))
    assert symbols(library)[calls(library)[0]][0] == API
    assert [symbols(library)[number] for number in calls(library)[1:]] == [
        symbols(LIBRARY)[number] for number in calls(LIBRARY)[1:]
    ]


def test_weak_symbols_are_the_librarys_own() -> None:
    """On a Mac the loader would else take another library's, with which this one's code would be at odds."""
    library = library_of(WEAK.read_bytes())
    assert (weak_bindings(WEAK.read_bytes()), weak_bindings(library)) == (2, 0)
    flags = [struct.unpack_from("<I", each, 24)[0] & WEAK_FLAGS for each in (WEAK.read_bytes(), library)]
    assert flags == [WEAK_FLAGS, 0]
    assert exported(library) == ("OrtGetApiBase",)


def test_a_weak_symbol_of_another_library_is_refused() -> None:
    """Where nothing of the library's own would be found, its code would jump to nowhere."""
    content = bytearray(WEAK.read_bytes())
    place, size = struct.unpack_from("<II", content, command(bytes(content), 0x80000022) + 8)
    content[place : place + size] = bytes(size)  # what says which pointers move along with the library
    caught = refused(BinaryError, taken_apart, bytes(content), {API}, "weak.dylib")
    assert caught.code == "corrupt-mach-o"
    assert "another library's" in caught.why


def test_a_name_that_is_not_there_is_refused() -> None:
    """A list that does not fit the library is not half followed."""
    caught = refused(BinaryError, taken_apart, LIBRARY, {API, "_OrtMissing"}, "libonnxruntime.dylib")
    assert caught.code == "symbol-missing"
    assert "_OrtMissing" in caught.what


@pytest.mark.parametrize(
    ("content", "reference"),
    [
        (b"", "corrupt-mach-o"),
        (b"\x7fELF" + bytes(60), "corrupt-mach-o"),
        (LIBRARY[:12] + b"\x01" + LIBRARY[13:], "not-mach-o"),
        (LIBRARY[:40000], "corrupt-mach-o"),
    ],
)
def test_what_is_no_library_is_refused(content: bytes, reference: str) -> None:
    caught = refused(BinaryError, taken_apart, content, {API}, "libonnxruntime.dylib")
    assert (caught.code, caught.where) == (reference, "libonnxruntime.dylib")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(min_value=0, max_value=3000), st.integers(min_value=0, max_value=255)), max_size=9)
)
def test_damage_gives_a_library_or_a_diagnostic(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(recorded("macos-x86_64"))
    for place, value in changes:
        damaged[place] = value
    with contextlib.suppress(BinaryError):
        taken_apart(bytes(damaged), {API})


def weak_bindings(library: bytes) -> int:
    """Return how many pointers the loader is to direct to whatever library of the program has a weak symbol first."""
    parsed = lief.MachO.parse(library)
    assert parsed is not None
    binary = parsed.at(0)
    assert binary is not None
    return sum(
        getattr(binding, "binding_class", None) == lief.MachO.DyldBindingInfo.CLASS.WEAK for binding in binary.bindings
    )


def symbols(library: bytes) -> list[tuple[str, int]]:
    place, count, names, _ = struct.unpack_from("<4I", library, command(library, 0x2) + 8)
    found = []
    for number in range(count):
        start, _, _, _, value = struct.unpack_from("<IBBHQ", library, place + 16 * number)
        found.append((library[names + start : library.index(0, names + start)].decode(), value))
    return found


def calls(library: bytes) -> list[int]:
    place, count = indirect(library)
    return [struct.unpack_from("<I", library, place + 4 * number)[0] for number in range(count)]


def indirect(library: bytes) -> tuple[int, int]:
    place, count = struct.unpack_from("<2I", library, command(library, 0xB) + 56)
    return place, count


def command(library: bytes, kind: int) -> int:
    start = 32
    while struct.unpack_from("<I", library, start)[0] != kind:
        start += struct.unpack_from("<I", library, start + 4)[0]
    return start


NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)


def read(trie: bytes, place: int = 0, prefix: bytes = b"") -> Iterator[tuple[str, int]]:
    size, place = uleb128(trie, place)
    if size:
        flags, after = uleb128(trie, place)
        address, end = uleb128(trie, after)
        assert (flags, end) == (0, place + size)
        yield prefix.decode(), address
    place += size
    count, place = trie[place], place + 1
    for _ in range(count):
        end = trie.index(0, place)
        child, after = uleb128(trie, end + 1)
        yield from read(trie, child, prefix + trie[place:end])
        place = after


def uleb128(content: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (content[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if not content[place - 1] & 0x80:
            return number, place


@given(addresses=st.dictionaries(NAMES, st.integers(min_value=0, max_value=2**40), max_size=40))
def test_what_is_written_is_read_back(addresses: dict[str, int]) -> None:
    """Names that begin alike, that are the beginning of others, and that lie far into the trie are all found."""
    assert dict(read(exports_trie(addresses))) == addresses


def test_a_trie_of_nothing_is_one_empty_node() -> None:
    assert exports_trie({}) == b"\0\0"


def test_another_reader_finds_the_same() -> None:
    parsed = lief.MachO.parse(library_of(recorded("macos-arm64")))
    assert parsed is not None
    binary = parsed.at(0)
    assert binary is not None
    (symbol,) = (symbol for symbol in binary.symbols if symbol.has_export_info)
    assert symbol.export_info is not None
    assert (symbol.name, symbol.export_info.address) == ("_OrtGetApiBase", symbol.value)


PAGE_BYTES = 0x4000
