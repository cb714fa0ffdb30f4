from collections.abc import Iterator

import lief
from hypothesis import given
from hypothesis import strategies as st

from apple_slices import recorded
from ortrim.binaries.macho_exports import exports_trie, with_exports

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)


def read(trie: bytes, place: int = 0, prefix: bytes = b"") -> Iterator[tuple[str, int]]:
    """Yield the names of a trie and their addresses, as dyld walks it."""
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
    """Read a number and where the next thing begins."""
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
    """A library that offers nothing has a trie all the same."""
    assert exports_trie({}) == b"\0\0"


def test_another_reader_finds_the_same() -> None:
    """LIEF reads the address of what is exported out of a library with such a trie."""
    parsed = lief.MachO.parse(with_exports(recorded("macos-arm64"), {"_OrtGetApiBase"}))
    assert parsed is not None
    binary = parsed.at(0)
    assert binary is not None
    (symbol,) = (symbol for symbol in binary.symbols if symbol.has_export_info)
    assert symbol.export_info is not None
    assert (symbol.name, symbol.export_info.address) == ("_OrtGetApiBase", symbol.value)
