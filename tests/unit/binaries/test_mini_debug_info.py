"""Compressed unwind tables: which frames are in them, and what the library is like that has them."""

from contextlib import suppress
from pathlib import Path

import pytest

from elf_frames import frames_of, functions_in
from ortrim.binaries.elf import add_unwind_tables, read_library, take_apart
from ortrim.errors import BinaryError

DATA = Path(__file__).parent / "data"
FRAMED = ("framed.so", "framed-32.so")


def shipped(folder: Path, name: str) -> tuple[Path, Path]:
    """Return a library that was stripped, and the same as it was linked."""
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
    """There is nothing to give."""
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
    """The library stays."""
    library, symbols = shipped(tmp_path, "framed.so")
    bare, whole = library.read_bytes(), symbols.read_bytes()
    symbols.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(BinaryError):
        add_unwind_tables(library, symbols)
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
