"""The search for the largest byte that stands before libc++'s own, with the real compilers."""

import ctypes
from typing import Final

import numpy as np
import pytest

from cxx_compilers import COMPILERS, compile_with

pytestmark = pytest.mark.network

SOURCE: Final = """\
#include <algorithm>
#include <cstdint>
extern "C" long place_of_unsigned(const uint8_t* data, long count) {
  return std::max_element(data, data + count) - data;
}
extern "C" long place_of_signed(const int8_t* data, long count) { return std::max_element(data, data + count) - data; }
extern "C" long place_of_float(const float* data, long count) { return std::max_element(data, data + count) - data; }
"""
LENGTHS: Final = (1, 2, 15, 16, 17, 255, 1500)


@pytest.fixture(scope="module", params=COMPILERS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the functions of `SOURCE`, compiled as `qlinear_softmax.cc` is."""
    folder = tmp_path_factory.mktemp("largest-byte")
    source = folder / "rows.cc"
    source.write_text(SOURCE)
    made = compile_with(request.param, "largest_byte.h", source, folder / "rows.so", "-O2", "-fPIC", "-shared")
    return ctypes.CDLL(str(made))


@pytest.mark.parametrize(
    ("name", "kind"), [("place_of_unsigned", np.uint8), ("place_of_signed", np.int8), ("place_of_float", np.float32)]
)
def test_the_first_of_the_largest_is_found(library: ctypes.CDLL, name: str, kind: type[np.generic]) -> None:
    """It is the one that the standard names, whatever the length, where several are equal and where all are."""
    find = getattr(library, name)
    find.restype, generator = ctypes.c_long, np.random.default_rng(7)
    for length in LENGTHS:
        for low, high in ((-128, 128), (-3, 3), (0, 1)):
            row = generator.integers(low, high, length).astype(kind)
            assert find(row.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(length)) == int(row.argmax())


def test_of_no_bytes_it_is_the_end(library: ctypes.CDLL) -> None:
    assert library.place_of_unsigned(None, ctypes.c_long(0)) == 0
