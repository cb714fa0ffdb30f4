"""One object of many, real ones from zig's linker: what stays visible, what goes, and bad files."""

import io
import re
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.binaries.objects import hide_symbols, visible_symbols
from ortrim.errors import BinaryError, ExitCode

DATA = Path(__file__).with_name("data")
JOINED = (DATA / "joined.o").read_bytes()
JOINED_32 = (DATA / "joined-32.o").read_bytes()
OFFERED = frozenset({"offered"})
both = pytest.mark.parametrize("data", [JOINED, JOINED_32], ids=["64", "32"])


def table_of(elf: ELFFile) -> SymbolTableSection:
    """Return the one table of symbols."""
    (table,) = (section for section in elf.iter_sections() if isinstance(section, SymbolTableSection))
    return table


def targets(data: bytes) -> list[tuple[str, int, str | int, int, int]]:
    """Return each relocation: its section's kind, offset, and the section, value and size of what it points to."""
    elf = ELFFile(io.BytesIO(data))
    symbols = list(table_of(elf).iter_symbols())
    return [
        (section["sh_type"], relocation["r_offset"], symbol["st_shndx"], symbol["st_value"], symbol["st_size"])
        for section in elf.iter_sections()
        if isinstance(section, RelocationSection)
        for relocation in section.iter_relocations()
        for symbol in [symbols[relocation["r_info_sym"]]]
    ]


@both
def test_only_what_is_offered_and_what_is_asked_for_is_visible(data: bytes) -> None:
    """Functions of the library's inside, templates and the C++ library's own cannot clash with an application's."""
    before, asked = visible_symbols(data)
    assert {"offered", "_Z5otheri", "_Z13shared_by_allIiET_S0_"} <= before
    assert "puts" in asked
    assert visible_symbols(hide_symbols(data, OFFERED)) == (OFFERED, asked)


@both
def test_relocations_lead_where_they_led(data: bytes) -> None:
    """Symbols have other numbers, and everything that went by the old ones goes by the new."""
    assert targets(hide_symbols(data, OFFERED)) == targets(data)
    assert len(targets(data)) > 5


@both
def test_the_code_is_as_it_was(data: bytes) -> None:
    """Sections keep their order, flags and bytes; only names and symbols are others."""
    old, new = ELFFile(io.BytesIO(data)), ELFFile(io.BytesIO(hide_symbols(data, OFFERED)))
    assert old.num_sections() == new.num_sections()
    for before, after in zip(old.iter_sections(), new.iter_sections(), strict=True):
        if before["sh_type"] in {"SHT_PROGBITS", "SHT_NOBITS", "SHT_ARM_EXIDX"}:
            same = ("sh_type", "sh_flags", "sh_size", "sh_link", "sh_addralign")
            assert [after[name] for name in same] == [before[name] for name in same]
            assert after.data() == before.data()
            assert after["sh_type"] == "SHT_NOBITS" or after["sh_offset"] % max(after["sh_addralign"], 1) == 0


@both
def test_no_name_of_the_inside_is_left(data: bytes) -> None:
    """Neither symbols nor sections tell what functions were called, which also makes the archive smaller."""
    hidden = hide_symbols(data, OFFERED)
    assert not re.search(rb"shared_by_all|twice|counter|_Z5other", hidden)
    assert len(hidden) < len(data)
    names = {section.name for section in ELFFile(io.BytesIO(hidden)).iter_sections()}
    assert ".text" in names
    assert ".text.offered" not in {name for name in names if "_Z" in name}
    assert ".note.GNU-stack" in names


def test_arms_markers_of_code_and_data_keep_their_names() -> None:
    """Linkers and disassemblers for ARM go by `$a` and `$d`."""
    names = [symbol.name for symbol in table_of(ELFFile(io.BytesIO(hide_symbols(JOINED_32, OFFERED)))).iter_symbols()]
    original = [symbol.name for symbol in table_of(ELFFile(io.BytesIO(JOINED_32))).iter_symbols()]
    assert [name for name in names if name.startswith("$")] == [name for name in original if name.startswith("$")]
    assert names.count("$a") > 1


@both
def test_locals_come_first_and_are_counted(data: bytes) -> None:
    """Linkers refuse a table in which they do not."""
    table = table_of(ELFFile(io.BytesIO(hide_symbols(data, OFFERED))))
    local = [symbol["st_info"]["bind"] == "STB_LOCAL" for symbol in table.iter_symbols()]
    assert local == sorted(local, reverse=True)
    assert table["sh_info"] == sum(local)


@both
def test_doing_it_again_changes_nothing(data: bytes) -> None:
    """What is hidden stays hidden; the same input has the same bytes."""
    once = hide_symbols(data, OFFERED)
    assert hide_symbols(once, OFFERED) == once == hide_symbols(data, OFFERED)


@both
def test_what_it_should_offer_must_be_there(data: bytes) -> None:
    """A library without its own entrance is not made; a name that is only asked for is not offered."""
    for names in ({"offered", "OrtGetApiBase"}, {"puts"}):
        with pytest.raises(BinaryError) as caught:
            hide_symbols(data, frozenset(names), "joined.o")
        assert (caught.value.code, caught.value.exit_code) == ("symbol-missing", ExitCode.BINARY)
        assert caught.value.where == "joined.o"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fELF", b"!<arch>\n" * 8, (DATA / "tiny.so").read_bytes(), b"\x7fELF\x02\x02" + JOINED[6:]],
    ids=["empty", "magic alone", "archive", "shared library", "big-endian"],
)
def test_what_is_no_little_endian_object_is_refused(data: bytes) -> None:
    """Nothing else comes from this linker."""
    for read in (lambda: hide_symbols(data, OFFERED), lambda: visible_symbols(data)):
        with pytest.raises(BinaryError) as caught:
            read()
        assert caught.value.code == "not-an-object"


def test_an_object_with_groups_is_refused() -> None:
    """A group is named by a symbol; the application's linker would drop ours for its own of the same name."""
    row = struct.unpack_from("<Q", JOINED, 40)[0] + 64  # the first section's header
    grouped = JOINED[: row + 4] + struct.pack("<I", 17) + JOINED[row + 8 :]
    with pytest.raises(BinaryError) as caught:
        hide_symbols(grouped, OFFERED)
    assert (caught.value.code, "groups" in caught.value.why) == ("corrupt-elf", True)


def test_a_forged_alignment_makes_no_huge_file() -> None:
    """A section that asks for a multiple of 2^60 is refused, before a byte is written."""
    row = struct.unpack_from("<Q", JOINED, 40)[0] + 64
    forged = JOINED[: row + 48] + struct.pack("<Q", 1 << 60) + JOINED[row + 56 :]
    with pytest.raises(BinaryError) as caught:
        hide_symbols(forged, OFFERED)
    assert caught.value.code == "corrupt-elf"


def outcome(data: bytes) -> str:
    """Return what hiding comes to: `hidden`, or the reference of the diagnostic."""
    try:
        hide_symbols(data, OFFERED)
    except BinaryError as error:
        return error.code
    return "hidden"


@settings(max_examples=150, deadline=None)
@given(length=st.integers(0, len(JOINED)))
def test_a_truncated_object_is_a_diagnostic(length: int) -> None:
    """However much is missing."""
    assert outcome(JOINED[:length]) in ({"corrupt-elf", "not-an-object"} if length < len(JOINED) else {"hidden"})


@settings(max_examples=300, deadline=None)
@given(data=st.sampled_from([JOINED, JOINED_32]), edits=st.lists(st.tuples(st.integers(0, 3007), st.integers(0, 255))))
def test_any_damage_is_a_diagnostic_or_harmless(data: bytes, edits: list[tuple[int, int]]) -> None:
    """No byte makes it loop, run out of memory or fail in another way."""
    damaged = bytearray(data)
    for place, byte in edits:
        damaged[place % len(damaged)] = byte
    assert outcome(bytes(damaged)) in {"hidden", "corrupt-elf", "not-an-object", "symbol-missing"}
