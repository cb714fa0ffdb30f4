"""A library without sparse tensors refuses a model that has them: the hook, with the real CMake, ninja and compiler."""

import re
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.network, pytest.mark.needs("g++")]

LINE: Final = "auto fbs_initializers = fbs_graph.initializers();"
GRAPH: Final = f"""\
#include "core/graph/graph.h"
std::string load(const Graph& fbs_graph) {{
  {LINE}
  return fbs_initializers == nullptr ? "nothing" : "loaded";
}}
"""
FILES: Final = {
    "cmake/CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.28)
project(onnxruntime CXX)
set(CMAKE_CXX_STANDARD 17)
set(ROOT "${CMAKE_CURRENT_SOURCE_DIR}/../onnxruntime")
include_directories("${ROOT}")
add_library(onnxruntime_graph STATIC "${ROOT}/core/graph/graph.cc" "${ROOT}/core/graph/model.cc")
add_executable(load "${ROOT}/main.cc")
target_link_libraries(load onnxruntime_graph)
""",
    "onnxruntime/core/common/common.h": """\
#include <string>
#define ORT_RETURN_IF(condition, message) do { if (condition) return std::string(message); } while (false)
""",
    "onnxruntime/core/flatbuffers/schema/ort.fbs.h": """\
#include <vector>
struct Graph {
  std::vector<int> dense{1}, sparse;
  const std::vector<int>* initializers() const { return &dense; }
  const std::vector<int>* sparse_initializers() const { return sparse.empty() ? nullptr : &sparse; }
};
""",
    "onnxruntime/core/graph/graph.h": """\
#pragma once
#include <string>
#ifndef initializers
#include "core/flatbuffers/schema/ort.fbs.h"
#endif
std::string load(const Graph& fbs_graph);
""",
    "onnxruntime/core/graph/graph.cc": GRAPH,
    "onnxruntime/core/graph/model.cc": "int initializers() { return 0; }\n",
    "onnxruntime/main.cc": """\
#include <cstdio>
#include "core/graph/graph.h"
int main(int count, char**) {
  Graph graph;
  if (count > 1) graph.sparse.push_back(1);
  std::puts(load(graph).c_str());
}
""",
}


LISTS: Final = ("dependencies", "selection")
"""What ortrim's CMake file reads besides; both are empty here."""


class Miniature:
    """Sources laid out in a folder, and the programs that build them."""

    def __init__(self, folder: Path, graph: str = GRAPH) -> None:
        self.folder = folder
        self._tools = packages_folder("tools", tool_requirements())
        for name, text in {**FILES, "onnxruntime/core/graph/graph.cc": graph}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in LISTS:
            (folder / f"{name}.cmake").write_text("")

    def configure(self, *, without_sparse: bool) -> Completed:
        words = (
            *("-DCMAKE_CXX_COMPILER=g++", f"-DCMAKE_MAKE_PROGRAM={self._tools}/bin/ninja"),
            f"-DCMAKE_PROJECT_onnxruntime_INCLUDE={shipped_folder('cmake')}/units.cmake",
            *(f"-DORTRIM_{name.upper()}={self.folder}/{name}.cmake" for name in LISTS),
            "-DCMAKE_BUILD_TYPE=MinSizeRel",
            f"-Donnxruntime_DISABLE_SPARSE_TENSORS={'ON' if without_sparse else 'OFF'}",
        )
        cmake = self._tools / "cmake" / "data" / "bin" / "cmake"
        return run((cmake, "-S", self.folder / "cmake", "-B", self.folder / "out", "-G", "Ninja", *words))

    def say(self, *words: str) -> str:
        """Build the program and return what it says of a model, which has sparse weights when there are words."""
        built = run((self._tools / "bin" / "ninja", "-C", self.folder / "out", "load"))
        assert built.returncode == 0, built.stdout
        return run((self.folder / "out" / "load", *words)).stdout


def test_a_model_with_sparse_weights_is_refused_and_any_other_is_not(tmp_path: Path) -> None:
    """By the one source that reads weights; the others keep the name."""
    miniature = Miniature(tmp_path)
    assert miniature.configure(without_sparse=True).returncode == 0
    assert miniature.say() == "loaded\n"
    assert miniature.say("sparse").startswith("The model has sparse weights, and this library is compiled without")


def test_with_sparse_tensors_the_source_stays_as_it_is(tmp_path: Path) -> None:
    """Upstream's own code reads them then."""
    miniature = Miniature(tmp_path)
    assert miniature.configure(without_sparse=False).returncode == 0
    assert miniature.say("sparse") == "loaded\n"


def test_another_version_of_the_source_stops_the_build(tmp_path: Path) -> None:
    """A check that no longer checks anything would not be seen otherwise."""
    miniature = Miniature(tmp_path, GRAPH.replace(LINE, "auto dense = fbs_graph.initializers();"))
    done = miniature.configure(without_sparse=True)
    assert done.returncode != 0
    assert "refuse_sparse.h does not fit this version of" in " ".join(done.stderr.split())


def test_sparse_tensors_stay_where_they_cannot_be_refused(tmp_path: Path) -> None:
    """The executor looks at the source before, and says so to CMake."""
    miniature = Miniature(tmp_path, GRAPH.replace(LINE, "auto dense = fbs_graph.initializers();"))
    (tmp_path / "selection.cmake").write_text("set(ORTRIM_LEFT_OUT refuse_sparse.h)\n")
    assert miniature.configure(without_sparse=True).returncode == 0
    assert "onnxruntime_DISABLE_SPARSE_TENSORS:BOOL=OFF\n" in (tmp_path / "out" / "CMakeCache.txt").read_text()


def test_the_pinned_source_has_the_line_once() -> None:
    """And the name that the header takes for it nowhere else."""
    source = fetch_sources(runtime_pins("1.21.0"), "auto").folder / "onnxruntime/onnxruntime/core/graph/graph.cc"
    text = source.read_text(encoding="utf-8")
    assert text.count(LINE) == len(re.findall(r"\binitializers\(\)", text)) == 1
