"""The compiler's own arithmetic beside the C library's memory functions, linked by the real wrapper and linker."""

import ctypes
from pathlib import Path
from typing import Final

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.link_map import read_link_map
from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.pins.shipped import tool_requirements
from own_caches import zig_of_tests

pytestmark = pytest.mark.network

SOURCE: Final = """\
#include <math.h>
#include <string.h>
typedef unsigned long long number;
#ifdef __SIZEOF_INT128__
typedef unsigned __int128 wide;
#else
typedef number wide;
#endif
number divide(number high, number low, number by) {
  wide whole = high;
  return (number)((sizeof(wide) > 8 ? whole << 63 << 1 | low : low) / by);
}
number blocks(number total, number parts) { return (number)llroundl((long double)total / (long double)parts); }
void copy(char *to, const char *from, unsigned long count) { memcpy(to, from, count); }
"""
TARGETS_TRIED: Final = ("linux-x64", "linux-arm64", "linux-armhf", "linux-riscv64", "linux-arm64-musl")


def link(folder: Path, target: str) -> Path:
    """Return a library that divides and copies memory, and whose link map lies beside it."""
    tools = packages_folder("tools", tool_requirements())
    inputs = BuildInputs(sources=folder / "sources", tools=tools, runner=folder, hooks=shipped_folder("cmake"))
    toolchain = zig_toolchain(TARGETS[target], "" if target.endswith("musl") else "2.28", "0.17.0")
    paths = prepare_workspace(folder / "a tree", inputs, toolchain, zig=zig_of_tests())
    environment = job_environment(paths, toolchain)
    paths.configured.mkdir()
    (paths.configured / "divide.c").write_text(SOURCE)
    compiler = (str(paths.wrappers / "c++"), "-Os", "-fPIC")
    sections = ("-ffunction-sections", "-fno-builtin-memcpy", "-fno-exceptions")
    words = (
        "-shared",
        PAST_DRIVER,
        "-Wl,--print-map",
        "-Wl,--gc-sections",
        "-nostdlib++",
        "divide.o",
        "-o",
        "divide.so",
    )
    for step in ((str(paths.wrappers / "cc"), *compiler[1:], *sections, "-c", "divide.c"), (*compiler, *words, "-lm")):
        done = run(step, cwd=paths.configured, environment=environment)
        assert done.returncode == 0, done.stderr
    return paths.configured / "divide.so"


@pytest.mark.parametrize("target", TARGETS_TRIED)
def test_memory_is_copied_by_the_c_library(tmp_path: Path, target: str) -> None:
    """Whatever the processor lacks: nothing but that comes from the compiler's runtime."""
    made = link(tmp_path, target)
    with made.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        assert "memcpy" in {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
    files = {inner.file for output in read_link_map(made.parents[1] / "link.map") for inner in output.inputs}
    assert "compiler_rt.o" in files
    assert not [file for file in files if "libcompiler_rt.a" in file]


def test_the_arithmetic_is_right(tmp_path: Path) -> None:
    """As the library of this machine computes it."""
    library = ctypes.CDLL(str(link(tmp_path, "linux-x64")))
    library.divide.restype = library.blocks.restype = ctypes.c_ulonglong
    words = [ctypes.c_ulonglong(word) for word in (5, 1 << 60, 7)]
    assert library.divide(*words) == ((5 << 64) + (1 << 60)) // 7 % (1 << 64)
    assert library.blocks(ctypes.c_ulonglong(1001), ctypes.c_ulonglong(3)) == 334
