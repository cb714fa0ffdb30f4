"""One object of many, real ones from zig's linker: what stays visible, what goes, and bad files."""

import contextlib
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

import refusing
from apple_slices import recorded
from ar_samples import ar_archive
from ortrim.binaries.objects import archive_members, hide_symbols, own_references, read_object, visible_symbols
from ortrim.errors import BinaryError

DATA = Path(__file__).with_name("data")
TINY = DATA / "tiny.o"
TINY_32 = DATA / "tiny-32.o"
"""Both made by zig 0.17 (`zig cc -g0 -Os -fcommon -ffunction-sections -c tiny.c`, targets `x86_64-linux-gnu.2.28` and
`arm-linux-gnueabihf.2.28`) of a file with functions `offered_function`, `offered_hidden` (hidden), `offered_weakly`
(weak) and the static `kept_inside`, variables `offered_value` and `offered_tentatively` (common), that calls
`needed_function` and, if it is there, `needed_perhaps` (weak)."""
TINY_MACHO = DATA / "tiny-mach.o"
"""Made of the same source for `aarch64-macos.13.3`, where what may be missing is imported weakly."""
DEFINED = frozenset({"offered_function", "offered_hidden", "offered_weakly", "offered_value", "offered_tentatively"})
UNDEFINED = frozenset({"needed_function", "needed_perhaps"})


def refused(path: Path) -> BinaryError:
    caught = refusing.refused(BinaryError, read_object, path)
    assert caught.where == str(path)
    return caught


def patched(tmp_path: Path, offset: int, replacement: bytes) -> Path:
    data = bytearray(TINY.read_bytes())
    data[offset : offset + len(replacement)] = replacement
    path = tmp_path / "patched.o"
    path.write_bytes(data)
    return path


def test_object_offers_and_needs_what_others_can_see() -> None:
    """Global, hidden, weak and common symbols are offered; weak needs count as needs; static ones stay inside."""
    assert read_object(TINY) == (DEFINED, UNDEFINED)


def test_object_of_a_32_bit_target_is_read() -> None:
    """The same source for 32-bit ARM needs the unwinder's routine besides."""
    assert read_object(TINY_32) == (DEFINED, UNDEFINED | {"__aeabi_unwind_cpp_pr0"})


@pytest.mark.parametrize("path", [TINY, TINY_32])
def test_what_an_object_names_of_its_own_is_reported(path: Path) -> None:
    """Functions and variables, by relocations of any kind; not what only others may ask for."""
    assert own_references(path) == DEFINED - {"offered_function", "offered_hidden"}


def test_own_references_of_what_is_no_object_are_refused(tmp_path: Path) -> None:
    """As its symbols are: another kind of file, and none at all."""
    (tmp_path / "a.o").write_bytes(b"BC\xc0\xde")
    with pytest.raises(BinaryError) as caught:
        own_references(tmp_path / "a.o")
    assert caught.value.code == "not-elf"
    with pytest.raises(BinaryError) as caught:
        own_references(tmp_path / "none.o")
    assert caught.value.code == "object-missing"


def test_object_of_apples_is_read() -> None:
    """What the finished library will hide is offered to the link; no name has the underscore that Mach-O adds."""
    assert read_object(TINY_MACHO) == (DEFINED, UNDEFINED)


@pytest.mark.parametrize("target", ["macos-arm64", "macos-x86_64"])
def test_library_of_apples_is_no_object(tmp_path: Path, target: str) -> None:
    path = tmp_path / "library.o"
    path.write_bytes(recorded(target))
    assert refused(path).code == "corrupt-mach-o"


@settings(deadline=None, max_examples=60)
@given(
    length=st.integers(min_value=4, max_value=TINY_MACHO.stat().st_size),
    changes=st.lists(st.tuples(st.integers(4, TINY_MACHO.stat().st_size - 1), st.integers(0, 255)), max_size=9),
)
def test_damaged_object_of_apples_gives_symbols_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, length: int, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(TINY_MACHO.read_bytes())
    for place, value in changes:
        data[place] = value
    path = tmp_path_factory.mktemp("damaged") / "damaged.o"
    path.write_bytes(data[:length])
    with contextlib.suppress(BinaryError):
        read_object(path)


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"!<arch>\n", b"BC\xc0\xde", b"/* GNU ld script */\n"])
def test_other_files_are_not_elf(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "object.o"
    path.write_bytes(content)
    assert refused(path).code == "not-elf"


def test_library_is_not_an_object() -> None:
    error = refused(DATA / "tiny.so")
    assert (error.code, error.why) == ("not-an-object", "ET_DYN")


def test_missing_file_and_folder_are_reported(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.o", tmp_path):
        assert refused(path).code == "object-missing"


def test_object_without_section_headers_is_refused(tmp_path: Path) -> None:
    cut = patched(tmp_path, 40, bytes(8))
    data = bytearray(cut.read_bytes())
    data[58:64] = bytes(6)
    cut.write_bytes(data)
    assert refused(cut).code == "corrupt-elf"


def test_symbols_without_names_are_refused(tmp_path: Path) -> None:
    """Names that were wiped out of the string table are missed."""
    name = b"\0offered_tentatively\0"
    error = refused(patched(tmp_path, TINY.read_bytes().index(name), bytes(len(name))))
    assert error.code == "corrupt-elf"
    assert "no name" in error.why


@given(length=st.integers(min_value=4, max_value=TINY.stat().st_size - 1))
@settings(deadline=None, max_examples=60)
def test_truncated_object_is_always_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    path = tmp_path_factory.mktemp("truncated") / "object.o"
    path.write_bytes(TINY.read_bytes()[:length])
    assert refused(path).code == "corrupt-elf"


flips = st.lists(
    st.tuples(st.integers(min_value=4, max_value=TINY.stat().st_size - 1), st.integers(min_value=1, max_value=255)),
    min_size=1,
    max_size=12,
)


@given(changes=flips)
@settings(deadline=None, max_examples=150)
def test_flipped_bytes_give_symbols_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(TINY.read_bytes())
    for offset, mask in changes:
        data[offset] ^= mask
    path = tmp_path_factory.mktemp("flipped") / "object.o"
    path.write_bytes(data)
    try:
        defined, undefined = read_object(path)
    except BinaryError as error:
        assert error.code in {"corrupt-elf", "not-an-object"}  # noqa: PT017 - both outcomes are right
    else:
        assert not defined & undefined


JOINED = (DATA / "joined.o").read_bytes()
JOINED_32 = (DATA / "joined-32.o").read_bytes()
OFFERED = frozenset({"offered"})
"""Made by zig's linker (`-r --gc-sections --force-group-allocation --strip-debug`), as `vtables-*.o` of a class with
virtual functions, compiled with `-fexperimental-relative-c++-abi-vtables`."""
both = pytest.mark.parametrize("data", [JOINED, JOINED_32], ids=["64", "32"])


def table_of(elf: ELFFile) -> SymbolTableSection:
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


@pytest.mark.parametrize(("machine", "before", "after"), [("arm64", 314, 261), ("riscv64", 59, 57)])
def test_vtables_of_offsets_are_for_every_linker(machine: str, before: int, after: int) -> None:
    """GNU ld refuses the relocations that Clang makes for them: `unrecognized relocation type 0x13a in .rodata`."""
    data = (DATA / f"vtables-{machine}.o").read_bytes()
    hidden = hide_symbols(data, OFFERED)
    assert targets(hidden) == targets(data)
    assert [after if kind == before else kind for kind in kinds(data)] == kinds(hidden) != kinds(data)


def kinds(data: bytes) -> list[int]:
    elf = ELFFile(io.BytesIO(data))
    tables = (section for section in elf.iter_sections() if isinstance(section, RelocationSection))
    return [relocation["r_info_type"] for table in tables for relocation in table.iter_relocations()]


@both
def test_the_code_is_as_it_was(data: bytes) -> None:
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
    table = table_of(ELFFile(io.BytesIO(hide_symbols(data, OFFERED))))
    local = [symbol["st_info"]["bind"] == "STB_LOCAL" for symbol in table.iter_symbols()]
    assert local == sorted(local, reverse=True)
    assert table["sh_info"] == sum(local)


@both
def test_doing_it_again_changes_nothing(data: bytes) -> None:
    once = hide_symbols(data, OFFERED)
    assert hide_symbols(once, OFFERED) == once == hide_symbols(data, OFFERED)


@both
def test_what_it_should_offer_must_be_there(data: bytes) -> None:
    """A library without its own entrance is not made; a name that is only asked for is not offered."""
    for names in ({"offered", "OrtGetApiBase"}, {"puts"}):
        caught = refusing.refused(BinaryError, hide_symbols, data, frozenset(names), "joined.o")
        assert caught.code == "symbol-missing"
        assert caught.where == "joined.o"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fELF", b"!<arch>\n" * 8, (DATA / "tiny.so").read_bytes(), b"\x7fELF\x02\x02" + JOINED[6:]],
    ids=["empty", "magic alone", "archive", "shared library", "big-endian"],
)
def test_what_is_no_little_endian_object_is_refused(data: bytes) -> None:
    assert refusing.refused(BinaryError, hide_symbols, data, OFFERED).code == "not-an-object"


def test_an_object_with_groups_is_refused() -> None:
    """A group is named by a symbol; the application's linker would drop ours for its own of the same name."""
    row = struct.unpack_from("<Q", JOINED, 40)[0] + 64  # the first section's header
    grouped = JOINED[: row + 4] + struct.pack("<I", 17) + JOINED[row + 8 :]
    caught = refusing.refused(BinaryError, hide_symbols, grouped, OFFERED)
    assert (caught.code, "groups" in caught.why) == ("corrupt-elf", True)


def test_a_forged_alignment_makes_no_huge_file() -> None:
    """A section that asks for a multiple of 2^60 is refused, before a byte is written."""
    row = struct.unpack_from("<Q", JOINED, 40)[0] + 64
    forged = JOINED[: row + 48] + struct.pack("<Q", 1 << 60) + JOINED[row + 56 :]
    caught = refusing.refused(BinaryError, hide_symbols, forged, OFFERED)
    assert caught.code == "corrupt-elf"


def outcome(data: bytes) -> str:
    try:
        hide_symbols(data, OFFERED)
    except BinaryError as error:
        return error.code
    return "hidden"


@settings(max_examples=150, deadline=None)
@given(length=st.integers(0, len(JOINED)))
def test_a_truncated_object_is_a_diagnostic(length: int) -> None:
    assert outcome(JOINED[:length]) in ({"corrupt-elf", "not-an-object"} if length < len(JOINED) else {"hidden"})


@settings(max_examples=300, deadline=None)
@given(data=st.sampled_from([JOINED, JOINED_32]), edits=st.lists(st.tuples(st.integers(0, 3007), st.integers(0, 255))))
def test_any_damage_is_a_diagnostic_or_harmless(data: bytes, edits: list[tuple[int, int]]) -> None:
    """No byte makes it loop, run out of memory or fail in another way."""
    damaged = bytearray(data)
    for place, byte in edits:
        damaged[place % len(damaged)] = byte
    assert outcome(bytes(damaged)) in {"hidden", "corrupt-elf", "not-an-object", "symbol-missing"}


ARCHIVE = ar_archive({"/": bytes(8), "//": b"x/\n", "a.o/": b"odd", "b.o/": b"even"})


def written(folder: Path, data: bytes) -> Path:
    path = folder / "lib.a"
    path.write_bytes(data)
    return path


def test_members_are_files_not_indices(tmp_path: Path) -> None:
    assert archive_members(written(tmp_path, ARCHIVE)) == (("a.o", b"odd"), ("b.o", b"even"))


def test_an_empty_archive_has_no_member(tmp_path: Path) -> None:
    assert archive_members(written(tmp_path, b"!<arch>\n")) == ()


@pytest.mark.parametrize(
    "data",
    [b"", b"!<thin>\n", b"\x7fELF" + bytes(100), ARCHIVE[:40], ARCHIVE[:-2], ARCHIVE.replace(b"`\n", b"''", 1)],
    ids=["empty", "thin", "elf", "cut in a header", "cut in a member", "bad header"],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    caught = refusing.refused(BinaryError, archive_members, path)
    assert caught.code == "not-an-archive"
    assert caught.where == str(path)


def test_a_missing_archive_is_a_diagnostic(tmp_path: Path) -> None:
    caught = refusing.refused(BinaryError, archive_members, tmp_path / "none.a")
    assert caught.code == "library-missing"


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_members_or_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("archive") / "lib.a"
    path.write_bytes(b"!<arch>\n" + data)
    reference = "not-an-archive"
    try:
        assert sum(len(content) for _, content in archive_members(path)) <= len(data)
    except BinaryError as error:
        reference = error.code
    assert reference == "not-an-archive"
