"""Compressed unwind tables: which frames are in them, and what the library is like that has them."""

import importlib.util
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from android_samples import sample
from elf_frames import frames_of, functions_in
from ortrim.binaries.elf import LibraryFacts, add_unwind_tables, read_library, take_apart
from ortrim.errors import BinaryError
from refusing import refused

TINY = Path(__file__).with_name("data") / "tiny.so"
PROGRAM_HEADERS = 64
PROGRAM_HEADER_BYTES = 56
GNU_STACK = 0x6474E551
DYNAMIC = 2


def patched(tmp_path: Path, *changes: tuple[int, bytes]) -> Path:
    data = bytearray(TINY.read_bytes())
    for offset, replacement in changes:
        data[offset : offset + len(replacement)] = replacement
    path = tmp_path / "patched.so"
    path.write_bytes(data)
    return path


def program_header(kind: int) -> int:
    data = TINY.read_bytes()
    offsets = range(PROGRAM_HEADERS, PROGRAM_HEADERS + 16 * PROGRAM_HEADER_BYTES, PROGRAM_HEADER_BYTES)
    return next(offset for offset in offsets if struct.unpack_from("<I", data, offset)[0] == kind)


def last_dynamic_entry() -> int:
    data = TINY.read_bytes()
    offset = int(struct.unpack_from("<Q", data, program_header(DYNAMIC) + 8)[0])
    while struct.unpack_from("<Q", data, offset)[0]:
        offset += 16
    return offset


def outcome(path: Path) -> str:
    try:
        read_library(path)
    except BinaryError as error:
        return error.code
    return ""


def test_small_library_is_read_in_full() -> None:
    assert read_library(TINY) == LibraryFacts(
        soname="libonnxruntime.so.1",
        machine="x64",
        needed=("libm.so.6", "libc.so.6"),
        symbol_versions=("GLIBC_2.2.5",),
        exported=("OrtGetApiBase",),
        executable_stack=False,
        text_relocations=False,
        stripped=True,
        load_alignment=4096,
    )


def test_official_library_exports_only_the_public_interface() -> None:
    """The wheel's library, made by GNU ld, is read as well: the versions it defines are not counted as exports."""
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    (library,) = (Path(spec.origin).parent / "capi").glob("libonnxruntime.so.*")
    facts = read_library(library)
    assert facts.soname == "libonnxruntime.so.1"
    assert facts.exported == ("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU")
    assert "libstdc++.so.6" in facts.needed
    ordered = facts.symbol_versions
    assert ordered.index("GLIBC_2.4") < ordered.index("GLIBC_2.14") < ordered.index("GLIBC_2.27")


def test_stack_header_with_execute_flag_means_executable_stack(tmp_path: Path) -> None:
    flags = program_header(GNU_STACK) + 4
    assert read_library(patched(tmp_path, (flags, struct.pack("<I", 7)))).executable_stack


def test_absent_stack_header_means_executable_stack(tmp_path: Path) -> None:
    header = program_header(GNU_STACK)
    assert read_library(patched(tmp_path, (header, struct.pack("<I", 0)))).executable_stack


@pytest.mark.parametrize(("tag", "value"), [(22, 0), (30, 0x4)])
def test_text_relocations_are_reported(tmp_path: Path, tag: int, value: int) -> None:
    """Both ways of announcing them count: the tag DT_TEXTREL and the flag DF_TEXTREL in DT_FLAGS."""
    patch = (last_dynamic_entry(), struct.pack("<QQ", tag, value) + struct.pack("<QQ", 0, 0))
    assert read_library(patched(tmp_path, patch)).text_relocations


def test_machine_of_another_architecture_is_named(tmp_path: Path) -> None:
    """Known machines have ortrim's words, all others those of pyelftools."""
    assert read_library(patched(tmp_path, (18, struct.pack("<H", 183)))).machine == "arm64"
    assert read_library(patched(tmp_path, (18, struct.pack("<H", 40)))).machine == "EM_ARM"


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"PK\x03\x04", b"#!/bin/sh\n", b"INPUT(libonnxruntime.so.1)\n"])
def test_other_files_are_not_elf(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(content)
    caught = refused(BinaryError, read_library, path)
    assert caught.code == "not-elf"


@pytest.mark.parametrize("kind", [1, 2, 4])
def test_objects_programs_and_core_dumps_are_not_libraries(tmp_path: Path, kind: int) -> None:
    caught = refused(BinaryError, read_library, patched(tmp_path, (16, struct.pack("<H", kind))))
    assert caught.code == "not-a-library"


def test_missing_file_and_folder_are_reported(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.so", tmp_path):
        caught = refused(BinaryError, read_library, path)
        assert caught.code == "library-missing"
        assert str(path) in str(caught)


def test_library_without_section_headers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BinaryError, match="damaged") as caught:
        read_library(patched(tmp_path, (40, bytes(8)), (58, bytes(6))))
    assert caught.value.code == "corrupt-elf"


def test_segment_beyond_the_end_of_the_file_is_refused(tmp_path: Path) -> None:
    file_size = program_header(1) + 32
    caught = refused(BinaryError, read_library, patched(tmp_path, (file_size, struct.pack("<Q", 1 << 40))))
    assert caught.code == "corrupt-elf"
    assert "beyond the end" in caught.why


def test_forged_count_of_versions_ends_in_bounded_time(tmp_path: Path) -> None:
    """A chain of version entries that leads back to itself does not keep the reader busy for ever."""
    table = struct.unpack_from("<Q", TINY.read_bytes(), 40)[0]
    versions_needed = table + 4 * 64  # .gnu.version_r is the fourth section; sh_info counts its entries
    started = time.monotonic()
    caught = refused(BinaryError, read_library, patched(tmp_path, (versions_needed + 44, b"\xff\xff\xff\xff")))
    assert caught.code == "corrupt-elf"
    assert "more tables" in caught.why
    assert time.monotonic() - started < 60


@given(length=st.integers(min_value=4, max_value=TINY.stat().st_size - 1))
@settings(deadline=20_000, max_examples=60)
def test_truncated_library_is_always_a_diagnostic(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    path = tmp_path_factory.mktemp("truncated") / "library.so"
    path.write_bytes(TINY.read_bytes()[:length])
    caught = refused(BinaryError, read_library, path)
    assert caught.code == "corrupt-elf"


flips = st.lists(
    st.tuples(st.integers(min_value=4, max_value=TINY.stat().st_size - 1), st.integers(min_value=1, max_value=255)),
    min_size=1,
    max_size=12,
)


@given(changes=flips)
@settings(deadline=20_000, max_examples=200)
def test_flipped_bytes_give_facts_or_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(TINY.read_bytes())
    for offset, mask in changes:
        data[offset] ^= mask
    path = tmp_path_factory.mktemp("flipped") / "library.so"
    path.write_bytes(data)
    assert outcome(path) in {"", "corrupt-elf", "not-a-library"}


LINKED = sample("unstripped.so")


def taken_apart(folder: Path, data: bytes) -> tuple[Path, Path]:
    linked, library, symbols = (folder / name for name in ("linked.so", "lib.so", "lib.so.sym"))
    linked.write_bytes(data)
    take_apart(linked, library, symbols)
    return library, symbols


def test_the_table_of_symbols_goes_and_nothing_else(tmp_path: Path) -> None:
    """What ships is smaller and the same to a loader; the symbols stay in the other file."""
    library, symbols = taken_apart(tmp_path, LINKED)
    assert symbols.read_bytes() == LINKED
    assert library.stat().st_size < len(LINKED)
    before, after = read_library(symbols), read_library(library)
    assert (before.stripped, after.stripped) == (False, True)
    assert (after.needed, after.exported, after.soname) == (before.needed, before.exported, before.soname)
    assert after.load_alignment == before.load_alignment


@pytest.mark.parametrize("length", [0, 3, 5, 63, 200, len(LINKED) // 2, len(LINKED) - 1])
def test_a_library_that_was_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    refused(BinaryError, taken_apart, tmp_path, LINKED[:length])
    assert [path.name for path in tmp_path.iterdir()] == ["linked.so"]


DATA = Path(__file__).parent / "data"
FRAMED = ("framed.so", "framed-32.so")


def shipped(folder: Path, name: str) -> tuple[Path, Path]:
    library, symbols = folder / "lib.so", folder / "lib.so.sym"
    take_apart(DATA / name, library, symbols)
    return library, symbols


@pytest.mark.parametrize("name", FRAMED)
def test_each_function_that_is_there_has_one_frame(tmp_path: Path, name: str) -> None:
    """The linker left a frame of one that nobody calls, and of one that was folded into another."""
    library, symbols = shipped(tmp_path, name)
    add_unwind_tables(library, symbols)
    places = [begin for begin, _ in frames_of(library)]
    assert len(places) == 2
    assert places == sorted({place for _, place in functions_in(symbols)})


@pytest.mark.parametrize("name", FRAMED)
def test_a_loader_sees_no_difference(tmp_path: Path, name: str) -> None:
    """The tables are behind all that is mapped, and nothing else is added."""
    library, symbols = shipped(tmp_path, name)
    before, facts = library.read_bytes(), read_library(library)
    add_unwind_tables(library, symbols)
    assert read_library(library) == facts
    assert facts.stripped
    assert len(before) < library.stat().st_size < len(before) + 400


def test_a_library_is_given_its_tables_once(tmp_path: Path) -> None:
    """What follows a build may be done again after an interruption."""
    library, symbols = shipped(tmp_path, "framed.so")
    add_unwind_tables(library, symbols)
    once = library.read_bytes()
    add_unwind_tables(library, symbols)
    assert library.read_bytes() == once


def test_a_library_without_frames_stays_as_it_is(tmp_path: Path) -> None:
    library, _ = shipped(tmp_path, "framed.so")
    bare = library.read_bytes()
    add_unwind_tables(library, library)
    assert library.read_bytes() == bare


def test_frames_of_another_kind_are_left_out(tmp_path: Path) -> None:
    """A build does not end for what one object of assembly has (`B`: return addresses that are signed otherwise)."""
    library, symbols = shipped(tmp_path, "framed.so")
    data = bytearray(symbols.read_bytes())
    data[data.index(b"\x14\0\0\0\xff\xff\xff\xff") + 9] = ord("B")
    symbols.write_bytes(data)
    add_unwind_tables(library, symbols)
    assert len(frames_of(library)) < 2


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_symbols_that_were_cut_short_are_refused(tmp_path: Path, part: float) -> None:
    library, symbols = shipped(tmp_path, "framed.so")
    bare, whole = library.read_bytes(), symbols.read_bytes()
    symbols.write_bytes(whole[: int(len(whole) * part)])
    refused(BinaryError, add_unwind_tables, library, symbols)
    assert library.read_bytes() == bare


@pytest.mark.parametrize("place", range(0, 0x90, 8))
def test_damaged_frames_end_in_a_diagnostic_or_in_tables(tmp_path: Path, place: int) -> None:
    """And soon: a length or a reference that leads nowhere is not followed for ever."""
    library, symbols = shipped(tmp_path, "framed.so")
    data = bytearray(symbols.read_bytes())
    begin = data.index(b"\x14\0\0\0\xff\xff\xff\xff")
    data[begin + place : begin + place + 4] = b"\xfa\xff\xff\xff"
    symbols.write_bytes(data)
    with suppress(BinaryError):
        add_unwind_tables(library, symbols)
        assert read_library(library).stripped
