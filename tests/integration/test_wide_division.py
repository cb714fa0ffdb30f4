"""The division of 128-bit numbers that stands before the compiler's own, with the real compiler."""

import ctypes
from pathlib import Path
from typing import Final

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import example, given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements

pytestmark = pytest.mark.network

SOURCE: Final = """\
#include <string.h>
typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;
typedef struct { wide quotient, rest; unsigned_wide unsigned_quotient, unsigned_rest; } results;
void divide_all(const wide *numbers, results *found) {
  unsigned_wide left, by;
  memcpy(&left, numbers, sizeof left);
  memcpy(&by, numbers + 1, sizeof by);
  found->quotient = numbers[0] / numbers[1];
  found->rest = numbers[0] % numbers[1];
  found->unsigned_quotient = left / by;
  found->unsigned_rest = left % by;
}
void copy(char *to, const char *from, unsigned long count) { memcpy(to, from, count); }
"""
BYTES: Final = 16


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that divides, and copies memory."""
    folder = tmp_path_factory.mktemp("wide-division")
    source, made = folder / "divide.c", folder / "divide.so"
    source.write_text(SOURCE)
    compiler = (str(packages_folder("tools", tool_requirements()) / "ziglang" / "zig"), "cc")
    options = ("-Os", "-Wall", "-Werror", "-fPIC", "-shared", "-fno-builtin-memcpy", "-Wl,--gc-sections")
    run([*compiler, *options, str(source), str(shipped_folder("cmake") / "wide_division.c"), "-o", str(made)])
    return made


NUMBERS: Final = st.integers(0, (1 << 128) - 1) | st.sampled_from([1, 2, 1 << 64, (1 << 127) - 1, 1 << 127])


@given(left=NUMBERS | st.just(0), by=NUMBERS.filter(bool))
@example(left=1 << 127, by=(1 << 128) - 1)
def test_quotients_and_rests_are_those_of_arithmetic(made: Path, left: int, by: int) -> None:
    """Signed towards zero, as C says, and unsigned."""
    given_ = b"".join(number.to_bytes(BYTES, "little") for number in (left, by))
    found = ctypes.create_string_buffer(4 * BYTES)
    ctypes.CDLL(str(made)).divide_all(given_, found)
    parts = [int.from_bytes(found.raw[start : start + BYTES], "little") for start in range(0, 4 * BYTES, BYTES)]
    dividend, divisor = (number - (number >> 127 << 128) for number in (left, by))
    quotient = abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
    expected = (quotient, dividend - quotient * divisor, *divmod(left, by))
    assert parts == [number % (1 << 128) for number in expected]


def test_memory_is_copied_by_the_c_library(made: Path) -> None:
    """The compiler's own division would bring its own, slower copy along."""
    with made.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        symbols = table.iter_symbols()
        assert "memcpy" in {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"}
