"""A log line's time by the library date, which stands before the C++ library's own, with the real compilers."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements

pytestmark = pytest.mark.network

DATE: Final = """\
#pragma once
#include <chrono>
#include <ostream>
namespace date {
template <class Traits, class Duration>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const std::chrono::time_point<std::chrono::system_clock, Duration>& time) {
  return out << "by date: " << time.time_since_epoch().count();
}
}
"""
SINK: Final = """\
#include <iostream>
#include <sstream>
int main() {
  std::ostringstream line;
  const std::chrono::time_point<std::chrono::system_clock> time{};
  std::chrono::operator<<(line, time);
  std::cout << line.str();
}
"""
"""The call of upstream's sinks, whose namespace is `std::chrono` as C++20, and `date` as C++17."""
Compiler = Callable[[Path], tuple[str, ...]]


def zig(tools: Path) -> tuple[str, ...]:
    """Return the pinned compiler, whose C++ library is libc++."""
    return (str(tools / "ziglang" / "zig"), "c++")


def gcc(_tools: Path) -> tuple[str, ...]:
    """Return the system's compiler, whose C++ library is another one."""
    return ("g++",)


@pytest.mark.parametrize("compiler", [zig, pytest.param(gcc, marks=pytest.mark.needs("g++"))])
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_time_is_written_by_the_library_date(compiler: Compiler, standard: str, tmp_path: Path) -> None:
    """Whichever standard the source is compiled as."""
    source, program, date = tmp_path / "sink.cc", tmp_path / "sink", tmp_path / "date" / "date.h"
    date.parent.mkdir()
    date.write_text(DATE)
    source.write_text(SINK)
    header = ("-I", str(tmp_path), "-I", str(shipped_folder("cmake")), "-include", "log_times.h")
    words = (f"-std={standard}", "-Wall", "-Werror", *header, str(source), "-o", str(program))
    done = run((*compiler(packages_folder("tools", tool_requirements())), *words))
    assert done.returncode == 0, done.stderr
    assert run((str(program),)).stdout == "by date: 0"
