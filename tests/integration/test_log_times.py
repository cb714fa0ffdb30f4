"""A log line's time by the library date, which stands before the C++ library's own, with the real compilers."""

from pathlib import Path
from typing import Final

import pytest

from cxx_compilers import COMPILERS, Compiler, compile_with
from ortrim.base.command import run

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


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_time_is_written_by_the_library_date(compiler: Compiler, standard: str, tmp_path: Path) -> None:
    source, date = tmp_path / "sink.cc", tmp_path / "date" / "date.h"
    date.parent.mkdir()
    date.write_text(DATE)
    source.write_text(SINK)
    program = compile_with(compiler, "log_times.h", source, tmp_path / "sink", f"-std={standard}")
    assert run((str(program),)).stdout == "by date: 0"
