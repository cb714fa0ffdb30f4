"""What is asked of upstream's build for Android."""

from pathlib import PurePosixPath
from typing import Any, Literal

import pytest

from ortrim.buildspec.buildspec import AndroidSpec, BuildOptionChoices, TargetSpec
from ortrim.buildspec.targets import ABIS, TARGETS
from ortrim.compiling.plan import AssemblyJob, BuildJob
from ortrim.compiling.upstream_arguments import FRAMES_OF_LTO
from ortrim.errors import ExitCode, PlanError
from ortrim.platforms.android import arguments as android_platform
from ortrim.platforms.android import jni
from ortrim.platforms.android.ndk import LIBRARY_FOLDERS
from refusing import refused
from sample_plans import sample_plan

ANDROID = [name for name in TARGETS if name.startswith("android-")]
ERRATUM = "-Wl,--fix-cortex-a53-843419"
PAGES = ["-Wl,-z,max-page-size=16384", "-Wl,-z,common-page-size=16384"]


def job(target: str = "android-arm64-v8a", options: AndroidSpec | None = None, **changes: Any) -> BuildJob:
    return sample_plan(target, android=options or AndroidSpec(), **changes).targets[0].job


WITHOUT_TABLES = job(build_options=BuildOptionChoices(unwind_tables=False))


def linker_flags(planned: BuildJob) -> list[str]:
    (flags,) = (word for word in planned.arguments if word.startswith("CMAKE_SHARED_LINKER_FLAGS_INIT="))
    return flags.partition("=")[2].split()


@pytest.mark.parametrize("target", ANDROID)
@pytest.mark.parametrize("profile", ["balanced", "upstream"])
def test_pages_of_16_kilobytes_always(target: str, profile: str) -> None:
    """Segments and the end of RELRO are aligned in every ABI and profile, and in the runner too."""
    planned = sample_plan(target, profile=profile).targets[0]
    flags = linker_flags(planned.job)
    assert [flag for flag in flags if "page-size" in flag] == PAGES
    assert "-Wl,-z,noexecstack" in flags
    assert [word for word in planned.runner.arguments if "page-size" in word] == PAGES


@pytest.mark.parametrize(
    ("api", "packed_relocations"),
    [
        (21, []),
        (22, []),
        (23, ["-Wl,--pack-dyn-relocs=android"]),
        (27, ["-Wl,--pack-dyn-relocs=android"]),
        (28, ["-Wl,--pack-dyn-relocs=android+relr", "-Wl,--use-android-relr-tags"]),
        (29, ["-Wl,--pack-dyn-relocs=android+relr", "-Wl,--use-android-relr-tags"]),
        (30, ["-Wl,--pack-dyn-relocs=android+relr"]),
        (36, ["-Wl,--pack-dyn-relocs=android+relr"]),
    ],
)
def test_relocations_are_packed_as_the_level_can_read_them(api: int, packed_relocations: list[str]) -> None:
    """A loader that does not know a form skips it, and the library crashes: each level gets what it understands."""
    flags = linker_flags(job(options=AndroidSpec(api=api)))
    assert [flag for flag in flags if "reloc" in flag or "relr" in flag] == packed_relocations


@pytest.mark.parametrize("exceptions", [True, False])
def test_the_upstream_profile_packs_nothing(exceptions: bool) -> None:  # noqa: FBT001
    """It aligns, names and maps the library; what saves bytes is balanced's alone."""
    planned = job(options=AndroidSpec(api=30), profile="upstream", exceptions=exceptions)
    added = {"-Wl,--build-id=sha1", "-Wl,--strip-debug", "-Wl,-Map=../link.map", ERRATUM}
    assert set(linker_flags(planned)) == {"-Wl,-z,noexecstack", *PAGES, *added}


@pytest.mark.parametrize(("api", "together"), [(21, True), (29, True), (30, False), (36, False)])
def test_older_unwinders_get_code_and_constants_in_one_segment(api: int, together: bool) -> None:  # noqa: FBT001
    """As the NDK's own files have it: a crash report would end there."""
    assert ("-Wl,--no-rosegment" in linker_flags(job(options=AndroidSpec(api=api)))) == together


@pytest.mark.parametrize(
    ("api", "profile", "emulated"),
    [(24, "size", True), (28, "speed", True), (29, "size", False), (24, "balanced", False)],
)
def test_a_linker_that_compiles_emulates_threads_variables(api: int, profile: str, emulated: bool) -> None:  # noqa: FBT001
    """Older loaders have none. CMake's files give the linker no `-flto`, by which clang's driver would say so."""
    flags = linker_flags(job(options=AndroidSpec(api=api), profile=profile))
    assert ("-Wl,-mllvm,-emulated-tls" in flags) == emulated


def test_only_exceptions_have_unwind_tables_loaded() -> None:
    assert "-Wl,--no-eh-frame-hdr" in linker_flags(job())
    assert "-Wl,--no-eh-frame-hdr" in linker_flags(WITHOUT_TABLES)
    assert "-Wl,--no-eh-frame-hdr" not in linker_flags(job(exceptions=True))


@pytest.mark.parametrize("profile", ["balanced", "size", "speed"])
@pytest.mark.parametrize("chosen", [None, False])
def test_frames_stay_in_the_library_until_it_is_stripped(profile: str, chosen: bool | None) -> None:  # noqa: FBT001
    """The linker keeps them, those of what it compiles itself too, and so do the symbols, whatever the library has."""
    planned = job(profile=profile, build_options=BuildOptionChoices(unwind_tables=chosen))
    assert "-Wl,--strip-debug" not in linker_flags(planned)
    assert (FRAMES_OF_LTO in linker_flags(planned)) == (profile != "balanced")
    assert "ORTRIM_FRAMES=ON" in planned.arguments
    assert "--keep-section=.debug_frame" in planned.finishing[1]
    for kind in ("ORTRIM_COLD=", "ORTRIM_HOT="):
        (words,) = (word for word in planned.arguments if word.startswith(kind))
        assert "-fforce-dwarf-frame" in words.split()


def test_symbols_are_kept_apart_under_the_build_id() -> None:
    """The linker leaves the symbols in; then one file has all of them and the one that ships has none."""
    planned = job(exceptions=True)
    assert {"-Wl,--build-id=sha1", "-Wl,--strip-debug"} <= set(linker_flags(planned))
    linked = "${build}/MinSizeRel/libonnxruntime.so"
    assert planned.finishing == (
        ("${wrappers}/objcopy", "--strip-all", linked, "${build}/libonnxruntime.so"),
        ("${wrappers}/objcopy", "--strip-debug", linked, "${build}/libonnxruntime.so.sym"),
    )
    assert planned.expected_outputs[0] == PurePosixPath("libonnxruntime.so")
    assert set(planned.expected_outputs[1:]) == {PurePosixPath("link.map"), PurePosixPath("libonnxruntime.so.sym")}


@pytest.mark.parametrize("target", ANDROID)
def test_a_shared_cpp_library_is_packaged_beside(target: str) -> None:
    """It is the NDK's own for the ABI, stripped; a static one adds no file and no flag."""
    planned = job(target, AndroidSpec(stl="c++_shared"))
    assert "--android_cpp_shared" in planned.arguments
    *words, source, destination = planned.finishing[-1]
    assert words == ["${wrappers}/objcopy", "--strip-all"]
    assert source.startswith("${ndk_prebuilt}/sysroot/")
    assert source.endswith(f"/usr/lib/{LIBRARY_FOLDERS[TARGETS[target].architecture]}/libc++_shared.so")
    assert destination == "${build}/libc++_shared.so"
    assert PurePosixPath("libc++_shared.so") in planned.expected_outputs
    static = job(target)
    assert "--android_cpp_shared" not in static.arguments
    assert PurePosixPath("libc++_shared.so") not in static.expected_outputs


def test_other_libraries_of_the_package_are_linked_alike() -> None:
    """What the packaging links itself, such as the JNI library, has the same words; they are no secret of the build."""
    planned = job(options=AndroidSpec(api=30))
    assert set(jni.linker_flags(planned)) < set(linker_flags(planned))
    assert {*PAGES, "-Wl,-z,noexecstack", "-Wl,--build-id=sha1"} <= set(jni.linker_flags(planned))


def planned_together(*stls: Literal["c++_static", "c++_shared"]) -> AssemblyJob | None:
    specs = tuple(
        TargetSpec(id=f"android-{abi}", android=AndroidSpec(stl=stl))
        for abi, stl in zip(ABIS.values(), stls, strict=False)
    )
    jobs = [sample_plan(spec.id, targets=(spec,)).targets[0].job for spec in specs]
    return android_platform.assembly(jobs)


def test_one_package_holds_all_abis() -> None:
    """In the order of the plan; without any ABI there is none."""
    assert planned_together("c++_static", "c++_static") == AssemblyJob(
        identifier="android", targets=("android-arm64-v8a", "android-armeabi-v7a")
    )
    assert planned_together() is None


def test_abis_with_different_cpp_libraries_do_not_go_into_one_package() -> None:
    """The package would have a library for one ABI and lack it for another."""
    caught = refused(PlanError, planned_together, "c++_static", "c++_shared")
    assert (caught.code, caught.exit_code) == ("mixed-stl", ExitCode.PLAN)
    assert caught.where == "android-arm64-v8a, android-armeabi-v7a"
    assert "android.stl" in caught.hint
