"""Symbols of Mach-O objects and libraries: what is defined where, and what gives way to another definition."""

import struct
from pathlib import Path

from apple_slices import recorded
from ortrim.binaries.macho.symbols import defined_symbols, own_references, yield_to_others

EMPTY = struct.pack("<4s7I", b"\xcf\xfa\xed\xfe", 0x01000007, 3, 1, 0, 0, 0, 0)
"""The least object without a table of symbols, such as clang makes of a source without code or data for x86-64."""


def test_an_object_without_symbols_defines_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.o").write_bytes(EMPTY)
    assert defined_symbols(tmp_path / "empty.o") == ()
    assert own_references(EMPTY) == frozenset()


def test_a_static_library_with_such_an_object_stays_as_it_is(tmp_path: Path) -> None:
    header = f"{'calls.o/':16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(EMPTY):<10}`\n".encode()
    content = b"!<arch>\n" + header + EMPTY
    (tmp_path / "lib.a").write_bytes(content)
    yield_to_others(tmp_path / "lib.a", ["calls"])
    assert (tmp_path / "lib.a").read_bytes() == content


def test_code_and_data_are_told_apart(tmp_path: Path) -> None:
    """By the sections that an ELF object would have, which what looks for unused kernels goes by."""
    (tmp_path / "library").write_bytes(recorded("macos-arm64"))
    (api,) = (each for each in defined_symbols(tmp_path / "library") if each.name == "OrtGetApiBase")
    assert (api.code, api.section, api.elf_section) == (True, "__text", ".text.OrtGetApiBase")
