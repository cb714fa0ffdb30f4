"""Android: one library for each ABI, and one AAR of all. Pure.

- What Android offers to apps by API level: bionic's symbols and the public libraries.
"""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Final

from ortrim.binaries.android import ABI_FACTS, Abi, SystemApi, SystemLibrary
from ortrim.build.plan import AndroidBuild, AssemblyJob, BuildJob
from ortrim.build.upstream_arguments import (
    DEFINITIONS,
    RUNNER_SOURCES,
    common_arguments,
    cpuinfo_definitions,
    folding_flags,
    hook_definitions,
    provider_definitions,
    provider_flags,
)
from ortrim.errors import PlanError
from ortrim.pins.shipped import pin_text
from ortrim.platforms.android.jni import PAGES, linker_flags
from ortrim.platforms.android.ndk import LIBRARIES as NDK_LIBRARIES
from ortrim.platforms.android.ndk import LIBRARY_FOLDERS
from ortrim.spec.targets import ABIS

ASSEMBLY: Final = "android"
LIBRARY: Final = "libonnxruntime.so"
SYMBOLS: Final = "libonnxruntime.so.sym"
"""The library with its table of symbols, for who reads crashes: named as Android's own build tools name such files."""
SHARED_STL: Final = "libc++_shared.so"
LINKED: Final = f"${{build}}/MinSizeRel/{LIBRARY}"

SYSTEM_LIBRARIES: Final = ("-ldl", "-lm")
"""Threads are in bionic's libc itself."""


def build_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return upstream's `build.py` arguments for an Android target.

    The SDK is asked for and not used, since nothing is built with Gradle: the NDK stands in for it. The linker's flags
    go in as CMake's initial ones, so that those of the NDK stay.
    """
    flags = (*linker_flags(job), *folding_flags(job), "-Wl,--strip-debug", "-Wl,-Map=../link.map")
    # `core/platform/android/cxa_demangle.cc` is in every minimal build.
    own = (*cpuinfo_definitions(job), *provider_definitions(job), *hook_definitions(job, demangler_apart=False))
    definitions = (*DEFINITIONS, *own, f"CMAKE_SHARED_LINKER_FLAGS_INIT={' '.join(flags)}")
    return (*common_arguments(job), *_android(job), *provider_flags(job), "--cmake_extra_defines", *definitions)


def runner_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's arguments that make the runner: plain C, nothing needed but libc."""
    include = "-I${sources}/onnxruntime/include/onnxruntime/core/session"
    sources = tuple(f"${{runner}}/{name}" for name in RUNNER_SOURCES)
    return ("-std=c11", "-O2", "-s", *PAGES, include, *sources, "-o", "${build}/runner", *SYSTEM_LIBRARIES)


def finishing(job: BuildJob) -> tuple[tuple[str, ...], ...]:
    """Return the commands that take the library apart: what ships, and its symbols.

    The linker is kept from stripping all, which upstream asks it for: a later flag overrules an earlier one.
    """
    strip, keep = (("${wrappers}/objcopy", word) for word in ("--strip-all", "--strip-debug"))
    library, symbols = (*strip, LINKED, f"${{build}}/{LIBRARY}"), (*keep, LINKED, f"${{build}}/{SYMBOLS}")
    if _options(job).stl == "c++_static":
        return (library, symbols)
    beside = f"${{ndk}}/{NDK_LIBRARIES}/{LIBRARY_FOLDERS[job.target.architecture]}/{SHARED_STL}"
    return (library, symbols, (*strip, beside, f"${{build}}/{SHARED_STL}"))


def expected_outputs(job: BuildJob) -> tuple[PurePosixPath, ...]:
    """Return the library, its map and its symbols, and the C++ library that goes beside it if that is wanted."""
    beside = (SHARED_STL,) if _options(job).stl == "c++_shared" else ()
    return tuple(map(PurePosixPath, (LIBRARY, "link.map", SYMBOLS, *beside)))


def assembly(jobs: Sequence[BuildJob]) -> AssemblyJob | None:
    """Return the job that makes one AAR of all ABIs. Raises `PlanError` `mixed-stl`."""
    if len({_options(job).stl for job in jobs}) > 1:
        what = "some ABIs have the C++ library linked statically and others as a shared library"
        why = "an AAR has the same libraries for every ABI"
        hint = "choose one: android.stl at the top of the buildspec, and in no target"
        raise PlanError("mixed-stl", what, where=", ".join(job.target.identifier for job in jobs), why=why, hint=hint)
    targets = tuple(job.target.identifier for job in jobs)
    return AssemblyJob(identifier=ASSEMBLY, targets=targets) if targets else None


def _android(job: BuildJob) -> tuple[str, ...]:
    options = _options(job)
    return (
        *("--android", "--android_abi", ABIS[job.target.architecture], "--android_api", str(options.api)),
        *("--android_sdk_path", "${ndk}", "--android_ndk_path", "${ndk}"),
        *(("--android_cpp_shared",) if options.stl == "c++_shared" else ()),
    )


def _options(job: BuildJob) -> AndroidBuild:
    assert job.android is not None
    return job.android


LIBRARIES: Final = "android/libraries.toml"
API_SYMBOLS: Final = "android/symbols.toml"


@cache
def system_api(abi: str) -> SystemApi:
    """Return what Android offers to apps of an ABI, whatever the API level. Raises KeyError for an ABI that is none."""
    about, symbols = _table(LIBRARIES), _table(API_SYMBOLS)
    libraries = {
        name: SystemLibrary(
            name=name,
            since=entry["since"],
            symbols=_symbols(symbols[name], ABI_FACTS[abi]) if entry.get("exact") else None,
            begins=tuple(entry.get("begins", ())),
        )
        for name, entry in about["libraries"].items()
    }
    return SystemApi(libraries=libraries, versions=about["versions"])


def _symbols(levels: dict[str, dict[str, str]], abi: Abi) -> dict[str, int]:
    """Return the symbols of one ABI with the first level that has each."""
    keys = ("all", str(abi.bits), abi.bionic)
    found: dict[str, int] = {}
    for level in sorted(levels, key=int):
        for name in (name for key in keys for name in levels[level].get(key, "").split()):
            found.setdefault(name, int(level))
    return found


@cache
def _table(name: str) -> dict[str, Any]:
    text = pin_text(name)
    assert text is not None
    return tomllib.loads(text)
