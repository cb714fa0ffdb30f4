"""What a small upstream of the same shape declares, by the real CMake, git and patch."""

import re
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.errors import SourcesError
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import Declaration, apply_patches, arrange_dependencies, declarations
from refusing import refused

pytestmark = pytest.mark.network

DEPENDENCIES: Final = """\
# name;address;SHA-1
abseil_cpp;https://example.org/abseil.zip;da39a3ee5e6b4b0d3255bfef95601890afd80709
json;https://example.org/json.zip;da39a3ee5e6b4b0d3255bfef95601890afd80709
pytorch_cpuinfo;https://example.org/cpuinfo.zip;da39a3ee5e6b4b0d3255bfef95601890afd80709
"""
DECLARED: Final = """\
include(FetchContent)
file(STRINGS ${PROJECT_SOURCE_DIR}/deps.txt lines REGEX "^[^#]")
foreach(line IN LISTS lines)
  list(GET line 0 name)
  list(GET line 1 URL_${name})
endforeach()
find_package(Patch)
FetchContent_Declare(abseil_cpp URL ${URL_abseil_cpp} EXCLUDE_FROM_ALL
  PATCH_COMMAND ${Patch_EXECUTABLE} --binary -p1 < ${PROJECT_SOURCE_DIR}/patches/one.patch &&
                ${Patch_EXECUTABLE} --binary --ignore-whitespace -p1 < ${PROJECT_SOURCE_DIR}/patches/two.patch)
FetchContent_MakeAvailable(abseil_cpp)
FetchContent_Declare(nlohmann_json URL ${URL_json} FIND_PACKAGE_ARGS 3.10 NAMES nlohmann_json)
FetchContent_MakeAvailable(nlohmann_json)
add_library(json ALIAS nlohmann_json)
get_target_property(kind json TYPE)
if(NOT kind)
  message(FATAL_ERROR "a target that only a real configuration has")
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(patch PATCH_COMMAND ${Patch_EXECUTABLE} -p1 < ${PROJECT_SOURCE_DIR}/patches/linux.patch)
endif()
FetchContent_Declare(PyTorch_CPUInfo URL ${URL_pytorch_cpuinfo} ${patch})
FetchContent_MakeAvailable(PyTorch_CPUInfo)
"""


def patch(before: str, after: str, *, context: str = "same") -> str:
    """Return a patch of the file `text`, whose second line changes."""
    return f"--- a/text\n+++ b/text\n@@ -1,3 +1,3 @@\n first\n-{before}\n+{after}\n {context}\n"


@pytest.fixture
def cmake() -> Path:
    return packages_folder("tools", tool_requirements()) / "cmake" / "data" / "bin" / "cmake"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a folder of unpacked sources: a small upstream, and three dependencies with a text each."""
    upstream = tmp_path / "onnxruntime" / "cmake"
    (upstream / "external").mkdir(parents=True)
    (upstream / "patches").mkdir()
    (upstream / "deps.txt").write_text(DEPENDENCIES)
    (upstream / "external" / "onnxruntime_external_deps.cmake").write_text(DECLARED)
    for name, (before, after) in {"one": ("old", "newer"), "two": ("newer", "newest"), "linux": ("old", "own")}.items():
        (upstream / "patches" / f"{name}.patch").write_text(patch(before, after))
    for name in ("abseil_cpp", "nlohmann_json", "cpuinfo"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("first\nold\nsame\n")
    return tmp_path


def second_line(folder: Path) -> str:
    return (folder / "text").read_text().splitlines()[1]


def test_what_is_declared_hangs_on_the_system(cmake: Path, sources: Path) -> None:
    """Names are FetchContent's, and what only a configuration could do is passed over."""
    tree = sources / "onnxruntime"
    patches = tree / "cmake" / "patches"
    common = (
        Declaration(
            name="abseil_cpp",
            url="https://example.org/abseil.zip",
            patches=(patches / "one.patch", patches / "two.patch"),
        ),
        Declaration(name="nlohmann_json", url="https://example.org/json.zip", patches=()),
    )
    cpuinfo = Declaration(name="pytorch_cpuinfo", url="https://example.org/cpuinfo.zip", patches=())
    on_linux = Declaration(name=cpuinfo.name, url=cpuinfo.url, patches=(patches / "linux.patch",))
    assert declarations(cmake, tree, "Android", "aarch64") == (*common, cpuinfo)
    assert declarations(cmake, tree, "Linux", "x86_64") == (*common, on_linux)


@pytest.mark.parametrize(
    "text", ["", "include(FetchContent)\nnonsense(", "include(nowhere)\n", "FetchContent_MakeAvailable(a)\n"]
)
def test_files_that_declare_nothing_are_refused(cmake: Path, sources: Path, text: str) -> None:
    """A version whose files ortrim cannot evaluate is not built from half of its dependencies."""
    tree = sources / "onnxruntime"
    (tree / "cmake" / "external" / "onnxruntime_external_deps.cmake").write_text(text)
    assert refused(SourcesError, declarations, cmake, tree, "Linux", "x86_64").code == "unknown-declarations"


def test_another_way_to_patch_is_refused(cmake: Path, sources: Path) -> None:
    """A dependency that upstream patches by a program of its own is not taken unpatched."""
    file = sources / "onnxruntime" / "cmake" / "external" / "onnxruntime_external_deps.cmake"
    file.write_text(DECLARED.replace("${Patch_EXECUTABLE} --binary -p1 <", "python3"))
    assert "python3" in refused(SourcesError, declarations, cmake, sources / "onnxruntime", "Linux", "x86_64").why


def test_dependencies_are_patched_and_found_by_cmake(cmake: Path, sources: Path) -> None:
    arrange_dependencies(sources, cmake, {"abseil_cpp": True, "nlohmann_json": False, "cpuinfo": True})
    script = sources / "show.cmake"
    names = ("ABSEIL_CPP", "NLOHMANN_JSON", "PYTORCH_CPUINFO")
    show = "\n".join(f'message("${{FETCHCONTENT_SOURCE_DIR_{name}}}")' for name in names)
    script.write_text(f"include(${{CMAKE_CURRENT_LIST_DIR}}/dependencies.cmake)\n{show}\n")
    found = {}
    for system in ("Linux", "Android", "iOS"):
        done = run((cmake, f"-DCMAKE_SYSTEM_NAME={system}", "-P", script))
        found[system] = [second_line(Path(line)) for line in done.stderr.split()]
    assert found == {
        "Linux": ["newest", "old", "own"],
        "Android": ["newest", "old", "old"],
        "iOS": ["newest", "old", "old"],
    }
    assert all(str(sources) not in line for line in (sources / "dependencies.cmake").read_text().splitlines())


def test_a_dependency_that_is_not_there_is_left_out(cmake: Path, sources: Path) -> None:
    """It may be of use to another target alone; CMake, disconnected, says when it is not."""
    arrange_dependencies(sources, cmake, {"nlohmann_json": True})
    listed = re.findall(r"SOURCE_DIR_(\w+)", (sources / "dependencies.cmake").read_text())
    assert listed == ["NLOHMANN_JSON"]


def test_patches_fit_exactly_nearly_or_not(tmp_path: Path) -> None:
    """Changed context is forgiven, as upstream's own `patch` does; a line to be removed that is not there is not."""
    text = tmp_path / "text"
    text.write_text("one\ntwo\nthree\nold\nfive\nsix\nseven\n")
    near = tmp_path / "near.patch"
    lines = (" ONE", " two", " three", "-old", "+new", " five", " six", " SEVEN")
    near.write_text("\n".join(["--- a/text", "+++ b/text", "@@ -1,7 +1,7 @@", *lines]) + "\n")
    apply_patches(tmp_path, (near,))
    assert text.read_text().splitlines()[3] == "new"
    assert refused(SourcesError, apply_patches, tmp_path, (near,)).code == "patch-failed"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".orig") == []
