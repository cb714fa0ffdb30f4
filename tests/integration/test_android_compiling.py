"""What CMake and upstream add to a build for Android, compiled and linked by zig's clang: no NDK is needed for it."""

import os
import re
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import ABIS, TARGETS
from ortrim.compiling.plan import Toolchain
from ortrim.compiling.toolchains import PRECOMPILED_MARK
from ortrim.compiling.workspace import LEFT_OUT
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms.android.ndk import ndk_toolchain
from ortrim.sources.sources import fetch_sources
from program_files import write_program
from sample_plans import sample_plan

pytestmark = pytest.mark.network

ANDROID: Final = {name: ABIS[target.architecture] for name, target in TARGETS.items() if name.startswith("android-")}
API: Final = 24


@pytest.fixture(scope="module")
def tools() -> Path:
    return packages_folder("tools", tool_requirements())


def as_cmake_spells_it(tools: Path, abi: str) -> str:
    """Return what the pinned CMake gives the NDK's clang as its target, from CMake's own table."""
    modules = "cmake/data/share/cmake-*/Modules/Platform/Android-Determine.cmake"
    (determine,) = tools.glob(modules)
    found = re.search(rf'NDK_ABI_{re.escape(abi)}_LLVM_TRIPLE\s+"(\S+)"', determine.read_text(encoding="utf-8"))
    assert found
    return f"{found[1]}{API}"


class Compiler:
    """The wrappers of the NDK's toolchain in front of zig's clang, called as CMake calls them."""

    def __init__(self, folder: Path, tools: Path, toolchain: Toolchain) -> None:
        self.folder = folder
        self.program = write_program(folder / "clang", f'exec "{tools}/ziglang/zig" clang "$@"')
        self.wrapper = write_program(folder / "wrapper", dict(toolchain.wrappers)["c++"])
        (folder / "common.h").write_text("inline int one() { return __ANDROID_API__; }\n")
        (folder / "a.cc").write_text("int two() { return one(); }\n")
        self.environment = dict(os.environ) | {
            "ORTRIM_COMPILER_CXX": str(self.program), "ORTRIM_SOURCES": str(folder), "ORTRIM_BUILD": str(folder),
            "ORTRIM_PRECOMPILED_HEADERS": str(folder),
        }  # fmt: skip

    def compile(self, *words: str) -> Completed:
        """Compile the source behind the precompiled header."""
        words = (*words, f"{PRECOMPILED_MARK}common-cold", "-fPIC", "-o", "a.o", "-c", "a.cc")
        return run((self.wrapper, *words), cwd=self.folder, environment=self.environment)


@pytest.mark.parametrize("target", ANDROID)
def test_a_header_is_precompiled_for_the_target_that_cmake_names(tools: Path, tmp_path: Path, target: str) -> None:
    compiler = Compiler(tmp_path, tools, ndk_toolchain(TARGETS[target], API, "27.2.12479018"))
    for vendor in ("none", "unknown"):
        done = compiler.compile(f"--target={as_cmake_spells_it(tools, ANDROID[target]).replace('none', vendor)}")
        assert (done.returncode, done.stderr) == (0, "")
        (tmp_path / "precompiled-common-cold.pch").unlink()


@pytest.mark.parametrize("target", ANDROID)
def test_targets_are_spelled_as_cmake_spells_them(tools: Path, target: str) -> None:
    """What goes past CMake, such as the runner, is compiled for the same triple as the library."""
    triple = ndk_toolchain(TARGETS[target], API, "27.2.12479018").triple
    assert triple == as_cmake_spells_it(tools, ANDROID[target])


@pytest.mark.parametrize("profile", ["balanced", "size", "speed", "upstream"])
@pytest.mark.parametrize("options", [AndroidSpec(), AndroidSpec(stl="c++_shared")], ids=["static", "shared"])
def test_one_demangler_is_linked(tools: Path, tmp_path: Path, profile: str, options: AndroidSpec) -> None:
    upstream = fetch_sources(runtime_pins("1.21.0"), "auto").folder / "onnxruntime"
    condition = 'if(CMAKE_SYSTEM_NAME STREQUAL "Android" AND onnxruntime_MINIMAL_BUILD)'
    text = (upstream / "cmake" / "onnxruntime.cmake").read_text(encoding="utf-8")
    body = text[text.index(condition) :].partition("endif()")[0]
    (own,) = re.findall(r'target_sources\(onnxruntime PRIVATE "\$\{ONNXRUNTIME_ROOT\}/(\S+)"\)', body)
    (definition,) = re.findall(r"target_compile_definitions\(onnxruntime PRIVATE (\S+)\)", body)
    arguments = sample_plan("android-x86_64", android=options, profile=profile).targets[0].job.arguments
    assert "--minimal_build" in arguments
    ours = [word.partition("=")[2].split(";") for word in arguments if word.startswith("ORTRIM_SURROGATES=")]
    sources = [shipped_folder("cmake") / name for names in ours for name in names if name.endswith(".c")]
    zig = tools / "ziglang" / "zig"
    (tmp_path / LEFT_OUT).touch()
    words = ("-target", "x86_64-linux-musl", f"-D{definition}", "-fPIC", "-I.", "-c")
    compiled = run((zig, "cc", *words, upstream / "onnxruntime" / own, "-x", "c", *sources), cwd=tmp_path)
    assert compiled.returncode == 0, compiled.stderr
    linked = run((zig, "ld.lld", "-shared", "-o", "linked.so", *tmp_path.glob("*.o")), cwd=tmp_path)
    assert (linked.returncode, linked.stderr) == (0, "")
    assert b"__cxa_demangle" in (tmp_path / "linked.so").read_bytes()
