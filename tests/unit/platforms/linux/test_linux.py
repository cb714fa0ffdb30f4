"""What is asked of upstream's build for Linux."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Literal

import pytest

from ortrim.base.files import shipped_folder
from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.buildspec import BuildOptionChoices, TargetSpec
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.compiling.plan import BuildJob, digest
from ortrim.compiling.upstream_arguments import BUILD_ID, DEFINITIONS, RUNNER_SOURCES, compiled_sources
from ortrim.pins.runtime import SourcePin
from ortrim.platforms import BY_SYSTEM, LINUX
from sample_plans import FOREST, OPERATORS, SOURCES, sample_plan, system_gcc


def job(**changes: object) -> BuildJob:
    return sample_plan(**changes).targets[0].job  # type: ignore[arg-type]


def linker_flags(planned: BuildJob) -> list[str]:
    (flags,) = (word for word in planned.arguments if word.startswith("CMAKE_SHARED_LINKER_FLAGS="))
    return flags.partition("=")[2].split()


def test_every_operating_system_has_its_platform() -> None:
    """A target whose system nobody can build for does not exist."""
    assert set(BY_SYSTEM) == set(OperatingSystem)


def test_the_runners_sources_are_all_that_there_are() -> None:
    """The list in the plan and the folder agree, so that no file is forgotten or gone."""
    assert sorted(RUNNER_SOURCES) == sorted(path.name for path in shipped_folder("runner").glob("*.c"))


def test_every_definition_is_one_definition() -> None:
    """Each is NAME=VALUE without a space: build.py hands them to CMake one by one."""
    for definition in DEFINITIONS:
        name, equals, value = definition.partition("=")
        assert name.isidentifier()
        assert equals
        assert value
        assert " " not in definition
    assert len({definition.partition("=")[0] for definition in DEFINITIONS}) == len(DEFINITIONS)


def test_a_compiler_of_the_system_is_asked_by_cmake_what_it_compiles_for() -> None:
    """It compiles for the host alone."""
    assert not [word for word in job(toolchain=system_gcc()).arguments if word.startswith("CMAKE_SYSTEM")]


def test_cpuinfo_is_compiled_in_for_arm_when_the_sources_have_it() -> None:
    """Where it is of no use it is no source of the library, and what the plan says is what the manifest reads."""
    cpuinfo = SourcePin(name="cpuinfo", version="1", kind="upstream", digest="c" * 64, licence="BSD-2-Clause")
    taking = [name for name in TARGETS if cpuinfo in compiled_sources(TARGETS[name], (*SOURCES, cpuinfo))]
    apple = ["ios-arm64", "ios-simulator-arm64", "macos-arm64", "maccatalyst-arm64"]
    assert taking == ["linux-arm64", "linux-armhf", "android-arm64-v8a", "android-armeabi-v7a", *apple]
    with_it = replace(job(target="linux-arm64"), sources=(*SOURCES, cpuinfo))
    assert "onnxruntime_ENABLE_CPUINFO=ON" in LINUX.build_arguments(with_it)
    assert "onnxruntime_ENABLE_CPUINFO=OFF" in job(target="linux-arm64").arguments


def test_a_static_library_is_expected_beside_the_shared_one() -> None:
    """The shared one is what the static one is made and judged by."""
    assert job(linkage="static").expected_outputs == (*job().expected_outputs, PurePosixPath("libonnxruntime.a"))


@pytest.mark.parametrize("target", ["linux-x64", "linux-arm64-musl"])
def test_the_runner_of_a_static_library_is_the_program_that_links_it(target: str) -> None:
    """It names the build that it links, so that another library is another runner; on musl it is static altogether."""
    shared, static = (sample_plan(target, linkage=linkage).targets[0] for linkage in ("shared", "static"))
    assert static.runner.links == digest(static.job)
    assert {"-DORTRIM_LINKED", "${archive}"} <= set(static.runner.arguments)
    assert ("-static" in static.runner.arguments) == (target == "linux-arm64-musl")
    assert shared.runner.links == ""
    assert not {"-DORTRIM_LINKED", "${archive}", "-static"} & set(shared.runner.arguments)


def test_a_target_says_its_own_linkage_or_takes_the_buildspecs() -> None:
    """The nearer one holds."""
    one = (TargetSpec(id="linux-x64", linkage="shared"),)
    assert job(targets=one, linkage="static").linkage == "shared"
    assert job(targets=(TargetSpec(id="linux-x64", linkage="static"),)).linkage == "static"


def test_exceptions_are_off_unless_asked_for() -> None:
    """Off costs an abort and saves the tables; on keeps both the switch and the tables' header away."""
    assert "--disable_exceptions" in job().arguments
    assert "-Wl,--no-eh-frame-hdr" in linker_flags(job())
    assert "--disable_exceptions" not in job(exceptions=True).arguments
    assert "-Wl,--no-eh-frame-hdr" not in linker_flags(job(exceptions=True))


@pytest.mark.parametrize("exceptions", [True, False])
def test_the_upstream_profile_adds_nothing_to_the_linking(exceptions: bool) -> None:  # noqa: FBT001
    """It refuses an executable stack and writes a map, as every build; what saves bytes is balanced's alone."""
    assert linker_flags(job(profile="upstream", exceptions=exceptions)) == [
        "-Wl,-z,noexecstack",
        BUILD_ID,
        "-Wl,--print-map",
    ]


@pytest.mark.parametrize(("glibc", "packed"), [("2.17", False), ("2.35", False), ("2.36", True), ("2.40", True)])
def test_relocations_are_packed_where_every_loader_reads_them(glibc: str, packed: bool) -> None:  # noqa: FBT001
    """An older glibc refuses the library."""
    flags = linker_flags(job(targets=(TargetSpec(id="linux-x64", glibc=glibc),)))
    assert ("-Wl,-z,pack-relative-relocs" in flags) == packed


def test_classical_operators_are_kept_when_a_model_needs_them() -> None:
    """The domain ai.onnx.ml is compiled out unless a model has an operator of it."""
    assert "--disable_ml_ops" in job(operators=OPERATORS).arguments
    assert "--disable_ml_ops" not in job(operators=FOREST).arguments


def test_only_zig_writes_a_map() -> None:
    """The system's linker is not asked for what it spells differently, and the plan does not expect it."""
    gcc = job(toolchain=system_gcc())
    assert "-Wl,--print-map" not in linker_flags(gcc)
    assert PurePosixPath("link.map") in job().expected_outputs
    assert PurePosixPath("link.map") not in gcc.expected_outputs


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_symbols_are_kept_apart_under_a_build_id(toolchain: str) -> None:
    """The linker leaves symbols and frames in; upstream's own recipe strips, and has the build-id alone."""
    compiler = {"toolchain": system_gcc()} if toolchain == "gcc" else {}
    kept, upstream = job(**compiler), job(profile="upstream", **compiler)
    assert kept.expected_outputs[:2] == (PurePosixPath("libonnxruntime.so"), PurePosixPath("libonnxruntime.so.sym"))
    assert upstream.expected_outputs[0] == PurePosixPath("MinSizeRel/libonnxruntime.so.1.21.0")
    assert "ORTRIM_FRAMES=ON" in kept.arguments
    assert "ORTRIM_FRAMES=ON" not in upstream.arguments
    for planned in (kept, upstream):
        assert BUILD_ID in linker_flags(planned)


@pytest.mark.parametrize("changed", [{"exceptions": True}, {"build_options": BuildOptionChoices(unwind_tables=True)}])
def test_loaded_tables_are_in_no_other_place(changed: dict[str, object]) -> None:
    """The symbols have them as they are loaded, without what debuggers read of the toolchain's own libraries."""
    planned = job(**changed)
    assert "ORTRIM_FRAMES=ON" not in planned.arguments
    assert {"-Wl,--strip-debug", PAST_DRIVER} <= set(linker_flags(planned))
    assert "-Wl,--no-eh-frame-hdr" not in linker_flags(planned)
    assert PurePosixPath("libonnxruntime.so.sym") in planned.expected_outputs


@pytest.mark.parametrize(
    ("compiler", "word"), [("zig", "-fforce-dwarf-frame"), ("clang", "-fforce-dwarf-frame"), ("gcc", "-g1")]
)
def test_every_compiler_writes_frames_in_its_own_way(compiler: Literal["zig", "gcc", "clang"], word: str) -> None:
    """None of them is loaded, and only lld takes out those of what the toolchain brings."""
    toolchain = {} if compiler == "zig" else {"toolchain": replace(system_gcc(), kind=compiler)}
    planned = job(**toolchain)
    for kind in ("ORTRIM_COLD=", "ORTRIM_HOT="):
        (words,) = (each.split() for each in planned.arguments if each.startswith(kind))
        assert word in words
        assert ("-g0" in words) == (compiler != "gcc")
    assert ("-Wl,--no-eh-frame-hdr" in linker_flags(planned)) == (compiler == "zig")


def test_only_zig_promises_a_glibc() -> None:
    """What gcc makes loads where its own glibc does; the plan does not claim otherwise."""
    assert job().minimum_glibc == "2.28"
    assert job(toolchain=system_gcc()).minimum_glibc == ""


def test_nothing_is_fetched_behind_our_back() -> None:
    """Every dependency comes from what was pinned: neither the network nor the distribution is asked."""
    arguments = job().arguments
    assert "FETCHCONTENT_FULLY_DISCONNECTED=ON" in arguments
    assert "FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER" in arguments
    assert "--skip_submodule_sync" in arguments
    assert "ORTRIM_DEPENDENCIES=${sources}/dependencies.cmake" in arguments
    assert not [word for word in arguments if word.startswith("FETCHCONTENT_SOURCE_DIR_")]
