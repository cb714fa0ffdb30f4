import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.binaries.macho.files import unwritten_bytes
from ortrim.errors import BinaryError
from ortrim.size.library import differences, differs_in_what_was_not_written
from refusing import refused

DATA = Path(__file__).parents[1] / "binaries" / "data"
TINY = DATA / "tiny.so"
APPLE = DATA / "apple"
SECTION_HEADERS, HEADER_BYTES, SIZE_OFFSET = 2384, 64, 32
"""Where tiny.so keeps its section headers, how long each is, and where in one the section's size stands."""
BSS = 17
"""The number of the section of zero-initialised data."""


def changed(tmp_path: Path, old: bytes, new: bytes) -> Path:
    data = TINY.read_bytes()
    assert data.count(old) == 1
    path = tmp_path / "changed.so"
    path.write_bytes(data.replace(old, new))
    return path


def test_a_library_does_not_differ_from_itself(tmp_path: Path) -> None:
    copy = tmp_path / "copy.so"
    copy.write_bytes(TINY.read_bytes())
    assert differences(TINY, TINY) == ()
    assert differences(TINY, copy) == ()


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        (b"OrtGetApiBase", b"OrtGetApiBass", "exported symbols: ('OrtGetApiBase',) and ('OrtGetApiBass',)"),
        (b"libm.so.6", b"libz.so.6", "needed libraries: ('libm.so.6', 'libc.so.6') and ('libz.so.6', 'libc.so.6')"),
        (b"GLIBC_2.2.5", b"GLIBC_2.3.0", "needed versions: ('GLIBC_2.2.5',) and ('GLIBC_2.3.0',)"),
    ],
    ids=["export", "library", "version"],
)
def test_what_a_loader_would_miss_is_named(tmp_path: Path, old: bytes, new: bytes, difference: str) -> None:
    """Both sides are shown, the first library's first, and nothing is said of what is equal."""
    assert differences(TINY, changed(tmp_path, old, new)) == (difference,)


def test_a_section_that_has_grown_is_named_with_its_sizes(tmp_path: Path) -> None:
    """Sections in memory count even when the file is as long as before."""
    data = bytearray(TINY.read_bytes())
    offset = SECTION_HEADERS + BSS * HEADER_BYTES + SIZE_OFFSET
    assert struct.unpack_from("<Q", data, offset) == (300,)
    struct.pack_into("<Q", data, offset, 301)
    grown = tmp_path / "grown.so"
    grown.write_bytes(data)
    assert differences(TINY, grown) == ("section .bss bytes: 300 and 301",)
    assert differences(grown, TINY) == ("section .bss bytes: 301 and 300",)


def test_a_longer_file_is_reported(tmp_path: Path) -> None:
    longer = tmp_path / "longer.so"
    longer.write_bytes(TINY.read_bytes() + b"\0")
    assert differences(TINY, longer) == ("file bytes: 3664 and 3665",)


def test_other_bytes_of_the_same_sizes_are_a_difference(tmp_path: Path) -> None:
    """One instruction that is another is enough, and so is another name in .comment."""
    data = bytearray(TINY.read_bytes())
    data[1392] ^= 1
    (tmp_path / "code.so").write_bytes(data)
    expected = ("the same sizes, exports and needs, but other bytes",)
    assert differences(TINY, tmp_path / "code.so") == expected
    assert differences(TINY, changed(tmp_path, b"\0.comment\0", b"\0.komment\0")) == expected


def test_libraries_for_macs_are_compared_as_well(tmp_path: Path) -> None:
    """A copy does not differ; what is offered besides does, and so does a byte of code."""
    library, copy = APPLE / "no-entry.dylib", tmp_path / "copy.dylib"
    copy.write_bytes(library.read_bytes())
    assert differences(library, copy) == ()
    told = differences(library, APPLE / "extra.dylib")
    assert any(each.startswith("exported symbols: ") and "another_abseil" in each for each in told)
    data = bytearray(library.read_bytes())
    data[-1] ^= 1
    copy.write_bytes(data)
    assert differences(library, copy) == ("the same sizes, exports and needs, but other bytes",)


@pytest.mark.parametrize(
    ("content", "reference"),
    [(b"", "not-elf"), (b"!<arch>\n", "not-elf"), (TINY.read_bytes()[:2000], "corrupt-elf"), (None, "library-missing")],
    ids=["empty", "archive", "truncated", "missing"],
)
def test_what_is_no_library_is_a_diagnostic(tmp_path: Path, content: bytes | None, reference: str) -> None:
    """On either side, and on both: two empty files are not two equal libraries."""
    broken = tmp_path / "broken.so"
    if content is not None:
        broken.write_bytes(content)
    for pair in ((TINY, broken), (broken, TINY), (broken, broken)):
        error = refused(BinaryError, differences, *pair)
        assert error.code == reference
        assert error.where == str(broken)


@settings(deadline=None, max_examples=100)
@given(offset=st.integers(0, TINY.stat().st_size - 1), mask=st.integers(1, 255))
def test_any_other_byte_is_a_difference_or_damage(
    tmp_path_factory: pytest.TempPathFactory, offset: int, mask: int
) -> None:
    data = bytearray(TINY.read_bytes())
    data[offset] ^= mask
    other = tmp_path_factory.mktemp("flipped") / "other.so"
    other.write_bytes(data)
    try:
        found = differences(TINY, other)
    except BinaryError:
        return
    assert found


def test_what_zigs_linker_does_not_write_is_no_difference_of_macs(tmp_path: Path) -> None:
    """The last entries of the table of indirect symbols are what was in memory, and the UUID is made of all bytes."""
    mac, other = APPLE / "macos-x86_64.dylib", tmp_path / "other.dylib"
    data = bytearray(mac.read_bytes())
    for place in unwritten_bytes(bytes(data)):
        data[place.stop - 1] ^= 1
    other.write_bytes(data)
    found = differences(mac, other)
    assert differs_in_what_was_not_written(found, mac, other)
    data[data.index(b"OrtGetApiBase")] ^= 1
    other.write_bytes(data)
    assert not differs_in_what_was_not_written(differences(mac, other), mac, other)


def test_other_code_of_the_same_size_is_a_difference_of_macs(tmp_path: Path) -> None:
    mac, other = APPLE / "macos-x86_64.dylib", tmp_path / "other.dylib"
    data = bytearray(mac.read_bytes())
    data[unwritten_bytes(bytes(data))[0].start - 1] ^= 1
    other.write_bytes(data)
    assert not differs_in_what_was_not_written(differences(mac, other), mac, other)
    assert not differs_in_what_was_not_written(differences(TINY, TINY), TINY, TINY)
