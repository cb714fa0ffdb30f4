"""What upstream's build is told for Android: one library for each ABI, and one AAR of all. Pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from ortrim.buildspec.targets import ABIS
from ortrim.compiling.plan import SYMBOLS, AssemblyJob, BuildJob
from ortrim.compiling.upstream_arguments import folding_flags, keeps_frames, symbol_flags, upstream_arguments
from ortrim.compiling.upstream_arguments import runner_arguments as plain_runner
from ortrim.errors import PlanError
from ortrim.platforms.android.jni import PAGES, android_build, linker_flags
from ortrim.platforms.android.ndk import LIBRARIES as NDK_LIBRARIES
from ortrim.platforms.android.ndk import LIBRARY_FOLDERS
from ortrim.platforms.android.zig_toolchain import system_definitions

ASSEMBLY: Final = "android"
LIBRARY: Final = "libonnxruntime.so"
SHARED_STL: Final = "libc++_shared.so"
LINKED: Final = f"${{build}}/MinSizeRel/{LIBRARY}"

SYSTEM_LIBRARIES: Final = ("-ldl", "-lm")
"""Threads are in bionic's libc itself. zig links these with every program."""


def build_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return upstream's `build.py` arguments for an Android target.

    To compile with zig, CMake is told what the NDK's own files would say. With the NDK the SDK is asked for and not
    used, since nothing is built with Gradle: the NDK stands in for it. The linker's flags go in as CMake's initial
    ones, so that those of the NDK stay.
    """
    if job.toolchain.kind == "zig":
        return upstream_arguments(job, system_definitions(job), demangler_apart=False)
    flags = (*linker_flags(job), *folding_flags(job), *symbol_flags(job), "-Wl,-Map=../link.map")
    linking = f"CMAKE_SHARED_LINKER_FLAGS_INIT={' '.join(flags)}"
    # `core/platform/android/cxa_demangle.cc` is in every minimal build.
    options = android_build(job)
    system = (
        *("--android", "--android_abi", ABIS[job.target.architecture], "--android_api", str(options.api)),
        *("--android_sdk_path", "${ndk}", "--android_ndk_path", "${ndk}"),
        *(("--android_cpp_shared",) if options.stl == "c++_shared" else ()),
    )
    return upstream_arguments(job, (linking,), system=system, demangler_apart=False)


def runner_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's arguments that make the runner: plain C, nothing needed but libc."""
    return plain_runner(job, ("-s", *PAGES), SYSTEM_LIBRARIES if job.toolchain.kind == "ndk" else ())


def finishing(job: BuildJob) -> tuple[tuple[str, ...], ...]:
    """Return the NDK's commands that take the library apart: what ships, and its symbols.

    The linker is kept from stripping all, which upstream asks it for: a later flag overrules an earlier one.
    """
    if job.toolchain.kind == "zig":
        return ()
    strip, keep = (("${wrappers}/objcopy", word) for word in ("--strip-all", "--strip-debug"))
    frames = ("--keep-section=.debug_frame",) if keeps_frames(job) else ()
    library, symbols = (*strip, LINKED, f"${{build}}/{LIBRARY}"), (*keep, *frames, LINKED, f"${{build}}/{SYMBOLS}")
    if android_build(job).stl == "c++_static":
        return (library, symbols)
    beside = f"${{ndk_prebuilt}}/{NDK_LIBRARIES}/{LIBRARY_FOLDERS[job.target.architecture]}/{SHARED_STL}"
    return (library, symbols, (*strip, beside, f"${{build}}/{SHARED_STL}"))


def expected_outputs(job: BuildJob) -> tuple[PurePosixPath, ...]:
    """Return the library, its map and its symbols, and the C++ library that goes beside it if that is wanted."""
    beside = (SHARED_STL,) if android_build(job).stl == "c++_shared" else ()
    return tuple(map(PurePosixPath, (LIBRARY, "link.map", SYMBOLS, *beside)))


def assembly(jobs: Sequence[BuildJob]) -> AssemblyJob | None:
    """Return the job that makes one AAR of all ABIs."""
    if len({android_build(job).stl for job in jobs}) > 1:
        what = "some ABIs have the C++ library linked statically and others as a shared library"
        why = "an AAR has the same libraries for every ABI"
        hint = "choose one: android.stl at the top of the buildspec, and in no target"
        raise PlanError("mixed-stl", what, where=", ".join(job.target.identifier for job in jobs), why=why, hint=hint)
    targets = tuple(job.target.identifier for job in jobs)
    return AssemblyJob(identifier=ASSEMBLY, targets=targets) if targets else None
