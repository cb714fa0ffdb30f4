import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

import lief
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apple_slices import TRIPLES, recorded
from ortrim.binaries.macho import MachSignature, macho_of
from ortrim.binaries.macho_exports import WEAK as WEAK_CLASS
from ortrim.binaries.macho_exports import WEAK_FLAGS, exports_trie, signed_anew, with_exports
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


@pytest.mark.parametrize("target", TRIPLES)
def test_only_what_is_asked_for_is_offered(target: str) -> None:
    """What zig's linker offers besides is gone, from the table of symbols and from the trie."""
    assert exported(with_exports(recorded(target), {API})) == ("OrtGetApiBase",)


def test_nothing_moves() -> None:
    """The library has its size, its code and its load commands, and asks for what it asked for before."""
    library = with_exports(LIBRARY, {API})
    assert len(library) == len(LIBRARY)
    (before,), (after,) = (macho_of(each, "library").images for each in (LIBRARY, library))
    assert (after.undefined, after.needed, after.segments) == (before.undefined, before.needed, before.segments)
    assert (after.builds, after.install_name, after.uuid) == (before.builds, before.install_name, before.uuid)


def test_the_signature_is_that_of_what_was_written() -> None:
    """Without a true signature no Apple processor of ARM loads a library."""
    library = with_exports(LIBRARY, {API})
    assert library != LIBRARY
    assert signed_anew(library) == library
    assert macho_of(library, "library").images[0].signature is MachSignature.AD_HOC


def test_done_again_it_changes_nothing() -> None:
    """A build that links nothing anew finds the library as it left it."""
    once = with_exports(LIBRARY, {API})
    assert with_exports(once, {API}) == once


def test_what_was_offered_stays_as_a_local_symbol() -> None:
    """Programs that look at crashes still find the name; the numbers of symbols that calls go by are right."""
    before, after = (symbols(each) for each in (LIBRARY, with_exports(LIBRARY, {API})))
    assert sorted(before) == sorted(after)
    assert [before[number] for number in calls(LIBRARY)] == [
        after[number] for number in calls(with_exports(LIBRARY, {API}))
    ]


def test_calls_follow_a_symbol_that_moved() -> None:
    """A library may call what it offers through its own table: such an entry goes along with the symbol."""
    tampered = bytearray(LIBRARY)
    place, _ = indirect(LIBRARY)
    names = [name for name, _ in symbols(LIBRARY)]
    struct.pack_into("<I", tampered, place, names.index(API))
    library = with_exports(bytes(tampered), {API})
    assert symbols(library)[calls(library)[0]][0] == API
    assert calls(library)[0] != names.index(API)


@pytest.mark.parametrize("entry", [0x10000, 0x61636F6C, 0x90510045])
def test_entries_that_the_linker_did_not_write_are_of_no_symbol(entry: int) -> None:
    """Where zig's linker leaves what was in memory, Apple's tools would look for a symbol of that number."""
    tampered = bytearray(LIBRARY)
    place, _ = indirect(LIBRARY)
    struct.pack_into("<I", tampered, place, entry)
    assert calls(with_exports(bytes(tampered), {API}))[0] == 0x80000000
    struct.pack_into("<I", tampered, place, 0x40000000)
    assert calls(with_exports(bytes(tampered), {API}))[0] == 0x40000000


def test_weak_symbols_are_the_librarys_own() -> None:
    """On a Mac the loader would else take another library's, with which this one's code would be at odds."""
    library = with_exports(WEAK.read_bytes(), {API})
    assert (weak_bindings(WEAK.read_bytes()), weak_bindings(library)) == (2, 0)
    flags = [struct.unpack_from("<I", each, 24)[0] & WEAK_FLAGS for each in (WEAK.read_bytes(), library)]
    assert flags == [WEAK_FLAGS, 0]
    assert exported(library) == ("OrtGetApiBase",)


def test_a_weak_symbol_of_another_library_is_refused() -> None:
    """Where nothing of the library's own would be found, its code would jump to nowhere."""
    content = bytearray(WEAK.read_bytes())
    place, size = struct.unpack_from("<II", content, command(bytes(content), 0x80000022) + 8)
    content[place : place + size] = bytes(size)  # what says which pointers move along with the library
    caught = refused(BinaryError, with_exports, bytes(content), {API}, "weak.dylib")
    assert caught.code == "corrupt-mach-o"
    assert "another library's" in caught.why


def test_a_name_that_is_not_there_is_refused() -> None:
    """A list that does not fit the library is not half followed."""
    caught = refused(BinaryError, with_exports, LIBRARY, {API, "_OrtMissing"}, "libonnxruntime.dylib")
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
    caught = refused(BinaryError, with_exports, content, {API}, "libonnxruntime.dylib")
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
        with_exports(bytes(damaged), {API})


def weak_bindings(library: bytes) -> int:
    """Return how many pointers the loader is to direct to whatever library of the program has a weak symbol first."""
    parsed = lief.MachO.parse(library)
    assert parsed is not None
    binary = parsed.at(0)
    assert binary is not None
    return sum(getattr(binding, "binding_class", None) == WEAK_CLASS for binding in binary.bindings)


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
    parsed = lief.MachO.parse(with_exports(recorded("macos-arm64"), {"_OrtGetApiBase"}))
    assert parsed is not None
    binary = parsed.at(0)
    assert binary is not None
    (symbol,) = (symbol for symbol in binary.symbols if symbol.has_export_info)
    assert symbol.export_info is not None
    assert (symbol.name, symbol.export_info.address) == ("_OrtGetApiBase", symbol.value)


PAGE_BYTES = 0x4000


@pytest.mark.parametrize("place", [100, PAGE_BYTES + 5, 2 * PAGE_BYTES + 1])
def test_a_changed_page_is_signed_anew(place: int) -> None:
    changed = bytearray(LIBRARY)
    changed[place] ^= 0xFF
    signed = signed_anew(bytes(changed))
    assert signed != changed
    assert signed_anew(signed) == signed
    assert len(signed) == len(LIBRARY)


def test_a_true_signature_stays() -> None:
    assert signed_anew(LIBRARY) == LIBRARY


def test_a_file_without_signature_stays_without() -> None:
    plain = recorded("macos-x86_64")
    assert signed_anew(plain) == plain


@pytest.mark.parametrize(
    ("field", "value"), [(0, 0), (20, 0), (20 + 37, 1), (20 + 32, 0xFFFFFFFF), (20 + 16, 0xFFFFFFF)]
)
def test_a_damaged_signature_is_refused(field: int, value: int) -> None:
    """A magic number of nothing, another kind of digest, more bytes than there are, digests beyond the end."""
    damaged = bytearray(LIBRARY)
    start = LIBRARY.index(b"\xfa\xde\x0c\xc0")
    form = ">B" if field == 20 + 37 else ">I"
    struct.pack_into(form, damaged, start + field, value)
    with pytest.raises((ValueError, struct.error)):
        signed_anew(bytes(damaged))


@settings(deadline=None, max_examples=60)
@given(st.integers(min_value=0, max_value=400), st.integers(min_value=0, max_value=255))
def test_damage_is_refused_or_signed(place: int, value: int) -> None:
    damaged = bytearray(LIBRARY)
    start = LIBRARY.index(b"\xfa\xde\x0c\xc0")
    damaged[min(start + place, len(damaged) - 1)] = value
    with contextlib.suppress(ValueError, struct.error):
        assert len(signed_anew(bytes(damaged))) == len(LIBRARY)
