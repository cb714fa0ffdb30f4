"""Android: what compiles without an NDK, and what upstream's build is told; one library for each ABI. Pure.

zig has clang, libc++ and a linker, and its sysroot is made of bionic: no NDK, no SDK. What a library exports and needs
is the same as with the NDK, and so is how it keeps its threads' variables: by emulation, as clang does for Android.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import ABIS, Architecture, Target
from ortrim.compiling.plan import SYMBOLS, AssemblyJob, BuildJob, Toolchain
from ortrim.compiling.toolchains import LIBC_FILE, Sysroot, zig_for
from ortrim.compiling.upstream_arguments import folding_flags, keeps_frames, symbol_flags, upstream_arguments
from ortrim.compiling.upstream_arguments import runner_arguments as plain_runner
from ortrim.errors import PlanError
from ortrim.pins.runtime import CommitPin, read_commit_pin
from ortrim.pins.shipped import shipped_text
from ortrim.platforms.android.jni import PAGES, android_build, linker_flags
from ortrim.platforms.android.ndk import LIBRARIES as NDK_LIBRARIES
from ortrim.platforms.android.ndk import LIBRARY_FOLDERS

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


PIN: Final = "android/bionic.toml"
LICENCE: Final = ("bionic", "BSD-2-Clause", "licences/bionic.txt")
"""Of the start files, which are a part of every library: the notice that stands in them."""
MACHINES: Final = {
    Architecture.ARM64: "aarch64-linux-android", Architecture.X64: "x86_64-linux-android",
    Architecture.X86: "x86-linux-android", Architecture.ARM: "arm-linux-androideabi",
}  # fmt: skip
"""zig's words for what it compiles for; the API level follows behind a dot."""
PROCESSORS: Final = {
    Architecture.ARM64: "aarch64", Architecture.ARM: "armv7-a", Architecture.X64: "x86_64", Architecture.X86: "i686",
}  # fmt: skip
"""CMake's words, as the NDK's own CMake files set them."""
FLAGS: Final = "-DANDROID -fstack-protector-strong -D_FORTIFY_SOURCE=2"
"""What the NDK's `android.toolchain.cmake` has for every source; sources ask for the first beside `__ANDROID__`."""
LIBCXX: Final = (
    "-D_LIBCPP_ABI_VERSION=1", "-D_LIBCPP_ABI_NAMESPACE=__1", "-D_LIBCPP_HAS_THREADS=1",
    "-D_LIBCPP_HAS_MONOTONIC_CLOCK", "-D_LIBCPP_HAS_TERMINAL", "-D_LIBCPP_HAS_MUSL_LIBC=0",
    "-D_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS", "-D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
    "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0", "-D_LIBCPP_HAS_FILESYSTEM=1", "-D_LIBCPP_HAS_RANDOM_DEVICE",
    "-D_LIBCPP_HAS_LOCALIZATION", "-D_LIBCPP_HAS_UNICODE", "-D_LIBCPP_HAS_WIDE_CHARACTERS",
    "-D_LIBCPP_HAS_NO_STD_MODULES", "-D_LIBCPP_HAS_TIME_ZONE_DATABASE", "-D_LIBCPP_PSTL_BACKEND_SERIAL",
    "-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
)  # fmt: skip
"""How zig configures its C++ library, as `zig c++ -v` says; whose headers must see the same."""
DRIVER: Final = """\
language=$1
shift
case " $* " in
*" -c "*|*" -E "*|*" -S "*|*" c++-header "*) ;;
*) exec "$ORTRIM_COMPILER_C" "$language" -dynamic -target TRIPLE "$@" ;;
esac
lib="${ORTRIM_COMPILER_C%/*}/lib"
set -- -nostdlibinc -nobuiltininc -isystem "$lib/include" -isystem "$ORTRIM_BIONIC/include" "$@"
[ "$language" = cc ] || set -- --driver-mode=g++ -nostdinc++ \\
  -isystem "$lib/libcxx/include" -isystem "$lib/libcxxabi/include" LIBCXX "$@"
exec "$ORTRIM_COMPILER_C" clang --target=CLANG "$@"
"""
"""Compiles with the clang inside zig, which knows Android's rules as the NDK's does, and links with zig.

zig's own driver lets nobody ask for these rules: it computes without an FPU on 32-bit ARM, leaves out the instructions
that an ABI has beyond the processor's first (SSE4.2, POPCNT) and the remedy for Cortex-A53's erratum 835769, and calls
functions for the atomic operations of ARM64, with which its `memcpy` comes, a loop over bytes.
"""
COMPILED: Final = {
    Architecture.ARM64: "aarch64-linux-android{api} -mno-outline-atomics",
    Architecture.ARM: "armv7a-linux-androideabi{api} -mthumb -mfpu=neon",
    Architecture.X64: "x86_64-linux-android{api}", Architecture.X86: "i686-linux-android{api}",
}  # fmt: skip
"""clang's words for what it compiles for. It would call functions for atomic operations on ARM64, too, which would ask
the system for quicker ones; zig's ask nobody."""
REALIGNED_BELOW: Final = 24
"""The first level whose 32-bit x86 devices keep the stack aligned as the ABI has it (the NDK's own CMake files)."""
LINK_PROCESSORS: Final = {
    Architecture.ARM64: "generic+fix_cortex_a53_835769", Architecture.ARM: "",
    Architecture.X64: "x86_64+sse4_2+popcnt+cx16", Architecture.X86: "i686+ssse3",
}  # fmt: skip
"""zig's words for the processors that ABIs ask for, clang's in other spelling: its own C++ library is compiled so."""
ATOMIC: Final = tuple(
    f"__aarch64_{operation}{size}_{order}"
    for operation in ("cas", "swp", "ldadd", "ldclr", "ldeor", "ldset")
    for size in (1, 2, 4, 8)
    for order in ("relax", "acq", "rel", "acq_rel")
)
"""What zig's C++ library calls for atomic operations on ARM64."""


def require_zig(target: Target, chosen: AndroidSpec) -> None:
    """Refuse what zig cannot do for Android. Raises `PlanError` `needs-ndk`."""
    shared = "libc++_shared.so is a part of the NDK, with which an app's other libraries share it"
    why = {
        "the C++ library as a library of its own": shared if chosen.stl == "c++_shared" else "",
    }
    for name, reason in why.items():
        if reason:
            what = f"zig cannot build {name} for Android"
            hint = "install the NDK and say android.toolchain = 'ndk', or leave it out"
            raise PlanError("needs-ndk", what, where=target.identifier, why=reason, hint=hint)


def bionic_pin() -> CommitPin:
    """Return the commit of bionic that sysroots are made of."""
    return read_commit_pin(shipped_text(PIN), PIN)


def installation_lines(folder: str) -> tuple[str, ...]:
    """Return the lines of the file by which zig is told where a C library is; see `zig libc`."""
    return (
        f"include_dir={folder}/include",
        f"sys_include_dir={folder}/include",
        f"crt_dir={folder}/lib",
        f"cc_dir={folder}/lib",
        "msvc_lib_dir=",
        "kernel32_lib_dir=",
        "darwin_sdk_dir=",
    )


def zig_android_toolchain(target: Target, api: int, version: str) -> Toolchain:
    """Return the toolchain that compiles for an Android target so that it loads on an API level and newer."""
    lines = " ".join(f'"{line}"' for line in installation_lines("$ORTRIM_BIONIC"))
    triple = f"{MACHINES[target.architecture]}.{api}"
    realigned = target.architecture is Architecture.X86 and api < REALIGNED_BELOW
    flags = f"{FLAGS} -mstackrealign" if realigned else FLAGS
    processor = LINK_PROCESSORS[target.architecture]
    words = {
        "TRIPLE": f"{triple} {f'-mcpu={processor} ' if processor else ''}{flags}",
        "CLANG": f"{COMPILED[target.architecture].format(api=api)} {flags}",
        "LIBCXX": " ".join(LIBCXX),
    }
    driver = re.sub(r"\b(TRIPLE|CLANG|LIBCXX)\b", lambda found: words[found[0]], DRIVER)
    sysroot = Sysroot(
        identity=f"bionic {bionic_pin().commit[:12]}",
        variable=("ORTRIM_BIONIC", "${bionic}"),
        preparing=LIBC_FILE.replace("LINES", lines),
        libraries='-L"$ORTRIM_BIONIC/lib" -llog',
        calls=ATOMIC if target.architecture is Architecture.ARM64 else (),
    )
    return zig_for(triple, version, (), flags, with_lld=True, sysroot=sysroot, driver=driver)


GNU_HASH_LEVEL: Final = 23
"""The first whose loader needs no other table of hashes (bionic's android-changes-for-ndk-developers.md)."""
LINK: Final = ("-Wl,--no-undefined", "-Wl,--print-map")
"""The first as the NDK's own files have it: a name that no stub has would be missed only by a phone."""


def system_definitions(job: BuildJob) -> tuple[str, ...]:
    """Return the CMake definitions that the NDK's toolchain file and upstream's `--android` come to.

    `CMAKE_SYSTEM_VERSION=1` keeps CMake from looking for an NDK (its `Platform/Android-Determine.cmake`).
    """
    hashes = ("-Wl,--hash-style=gnu",) if android_build(job).api >= GNU_HASH_LEVEL else ()
    flags = (*linker_flags(job), *hashes, *folding_flags(job), *LINK, *symbol_flags(job), PAST_DRIVER)
    plain = ("-nostdlib++",) if job.build_options.libcxx_no_exceptions else ()
    return (
        "CMAKE_SYSTEM_NAME=Android",
        "CMAKE_SYSTEM_VERSION=1",
        f"CMAKE_SYSTEM_PROCESSOR={PROCESSORS[job.target.architecture]}",
        f"CMAKE_ANDROID_ARCH_ABI={ABIS[job.target.architecture]}",
        "ANDROID=ON",
        "onnxruntime_DISABLE_FLOAT8_TYPES=ON",
        f"CMAKE_SHARED_LINKER_FLAGS={' '.join((*flags, *plain))}",
    )
