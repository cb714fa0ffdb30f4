"""A table of products as upstream's sources fill it, with `few_bits.h` ahead."""

import ctypes
from pathlib import Path
from typing import Final

import pytest

import ortrim
from ortrim.base.command import run

pytestmark = pytest.mark.needs("gcc")

HEADER: Final = Path(ortrim.__file__).parent / "resources" / "cmake" / "few_bits.h"
PLATFORM: Final = """
#pragma once
struct MLAS_QNBIT_GEMM_DISPATCH;
extern "C" const MLAS_QNBIT_GEMM_DISPATCH Table;
"""
DECLARED: Final = """
#pragma once
#include "mlasi.h"
struct MLAS_QNBIT_GEMM_DISPATCH {
  typedef int(Kernel_Fn)(int);
  Kernel_Fn* Four = nullptr;
  Kernel_Fn* Eight = nullptr;
  Kernel_Fn* Floats = nullptr;
  Kernel_Fn* Row = nullptr;
};
"""
FILLING: Final = """
#include "qnbitgemm.h"
static int Four_avx2(int value) { return value + 4; }
static int Eight(int value) { return value + 8; }
template <bool vnni> int Floats_avx2(int value) { return value; }
static int Row(int value) { return value + 1; }
const MLAS_QNBIT_GEMM_DISPATCH Table = []() {
  MLAS_QNBIT_GEMM_DISPATCH d;
  d.Four = Four_avx2;
  d.Eight = Eight;
  d.Floats = Floats_avx2<true>;
  d.Row = Row;
  return d;
}();
"""


def test_what_is_unused_stays_null_and_is_compiled_away(tmp_path: Path) -> None:
    """Also a function that is called as its place in the table; all others have theirs."""
    for name, text in (("mlasi.h", PLATFORM), ("qnbitgemm.h", DECLARED), ("table.cc", FILLING)):
        (tmp_path / name).write_text(text)
    library = tmp_path / "libtable.so"
    words = ("g++", "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{tmp_path}", "-include", str(HEADER))
    done = run((*words, "-DORTRIM_UNUSED_FUNCTIONS=Eight,Floats", "-o", str(library), str(tmp_path / "table.cc")))
    assert done.returncode == 0, done.stderr
    table = (ctypes.c_void_p * 4).in_dll(ctypes.CDLL(str(library)), "Table")
    kernel = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    assert [place and kernel(place)(1) for place in table] == [5, None, None, 2]
    symbols = run(("nm", str(library))).stdout
    assert "Row" in symbols
    assert not any(name in symbols for name in ("Eight", "Floats_avx2"))
