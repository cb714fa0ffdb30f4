"""Apple's systems: what compiles for them without Xcode, and what upstream's build is told. Pure.

Upstream's own `--ios` and `--macos MacOSX` want Xcode's generator, with which nothing can be left out of a build and
nothing goes by the wrappers. CMake itself compiles for these systems with Ninja, told by the definitions below.

Upstream's `--macos Catalyst` goes with Ninja too, and hands MLAS's sources all flags of C as one word, which newer
clangs refuse as a triple (upstream's issue 25920). All that it says besides is the triple, which the wrappers have.

zig brings the headers of Apple's C library and nothing of Apple's frameworks: what needs one takes Xcode.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from ortrim.binaries.apple import EXPORTS, ApplePlatform, AppleVariant, Slice, slice_of
from ortrim.buildspec.targets import Architecture, Target
from ortrim.compiling.plan import AppleBuild, AssemblyJob, BuildJob, Toolchain
from ortrim.compiling.toolchains import LEVELS, LIBC_FILE, Sysroot, zig_for
from ortrim.compiling.upstream_arguments import runner_arguments as plain_runner
from ortrim.compiling.upstream_arguments import upstream_arguments
from ortrim.errors import PlanError
from ortrim.platforms.apple.sysroot import sysroot_digest
from ortrim.platforms.apple.xcode import sdk_folder

ASSEMBLY: Final = "apple"
LIBRARY: Final = "libonnxruntime.dylib"
LINKED: Final = f"MinSizeRel/{LIBRARY}"
"""The library as it was linked, or the link to it under its version."""
ARCHIVE: Final = "libonnxruntime.a"
SYMBOLS: Final = "libonnxruntime.dylib.dwarf"
"""What a dSYM holds for the library, for who reads crashes: its table of symbols."""
JOINED: Final = "onnxruntime.o"
ROOT: Final = "${build}/MinSizeRel/CMakeFiles/onnxruntime.dir/generated_source.c.o"
"""The one object of the shared library itself, which refers to all that is exported."""

WITHOUT: Final = ("protobuf_BUILD_PROTOC_BINARIES=OFF", "CMAKE_CXX_SCAN_FOR_MODULES=OFF")
"""A compiler of protobuf's own, which upstream leaves out for phones too, since CMake would make an app of it; and the
search for modules of C++20, of which upstream has none and for which Apple's clang has no program."""


def apple_build(job: BuildJob) -> AppleBuild:
    """Return what a job for Apple's systems is built for."""
    assert job.apple is not None
    return job.apple


def build_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return upstream's `build.py` arguments for an Apple target."""
    return upstream_arguments(job, _system(job))


def runner_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's arguments that make the runner: plain C, nothing needed but the system's own library.

    A static library of Xcode's also wants the system's C++ library, and the frameworks of what is inside.
    """
    inside = ("-lc++", *(word for name in frameworks(job) for word in ("-framework", name)))
    return plain_runner(job, (), inside if job.linkage == "static" and not is_cross_built(job) else ())


def frameworks(job: BuildJob) -> tuple[str, ...]:
    """Return the system's frameworks that a job's library needs."""
    return ("Foundation", *(("CoreML",) if "coreml" in job.providers else ()))


def finishing(job: BuildJob) -> tuple[tuple[str, ...], ...]:
    """Return the commands that make of the linked library what a framework holds, and the symbols apart from it.

    Apple's linker strips nothing when upstream asks it to. A framework's library is loaded by another name than the one
    that it was linked under; a change of it voids the signature without which no Apple processor of ARM loads it.
    """
    if job.toolchain.kind != "xcode":
        return ()
    linked, library = f"${{build}}/{LINKED}", f"${{build}}/{LIBRARY}"
    dynamic = (
        ("${wrappers}/dsymutil", "--flat", linked, "-o", f"${{build}}/{SYMBOLS}"),
        ("${wrappers}/strip", "-x", "-S", "-o", library, linked),
        ("${wrappers}/install_name_tool", "-id", install_name(slice_of(job.target)), library),
        ("${wrappers}/codesign", "--force", "--sign", "-", "--timestamp=none", library),
    )
    if job.linkage == "shared":
        return dynamic
    # One object that shows the C API, and hides what else it is made of: an app may have another abseil or protobuf.
    joined = f"${{build}}/{JOINED}"
    return (
        *dynamic,
        ("${wrappers}/join", f"-Wl,-exported_symbols_list,{EXPORTS}", "-o", joined, ROOT),
        ("${wrappers}/libtool", "-static", "-D", "-o", f"${{build}}/{ARCHIVE}", joined),
    )


def install_name(part: Slice) -> str:
    """Return the name by which apps look for the library of a framework: frameworks of a Mac have versions."""
    return f"@rpath/onnxruntime.framework/{'Versions/A/' if part.on_mac else ''}onnxruntime"


def expected_outputs(job: BuildJob) -> tuple[PurePosixPath, ...]:
    """Return the library, its symbols, and the archive if that is wanted."""
    return tuple(map(PurePosixPath, (LIBRARY, SYMBOLS, *((ARCHIVE,) if job.linkage == "static" else ()))))


def assembly(jobs: Sequence[BuildJob]) -> AssemblyJob | None:
    """Return the job that makes one xcframework of all slices; one slice has one oldest system."""
    if not jobs:
        return None
    names = tuple(job.target.identifier for job in jobs)
    if len({job.linkage for job in jobs}) > 1:
        what, hint = "some slices are dynamic and others static", "choose one: apple.framework at the top, in no target"
        raise PlanError("mixed-frameworks", what, where=", ".join(names), hint=hint)
    minimums: dict[tuple[str, str], BuildJob] = {}
    for job in jobs:
        part = slice_of(job.target)
        other = minimums.setdefault((part.platform, part.variant), job)
        if apple_build(other).deployment_target != apple_build(job).deployment_target:
            what = "are joined into one file and made for different systems"
            why = f"{apple_build(other).deployment_target} and {apple_build(job).deployment_target}"
            hint = "choose one deployment target at the top of the buildspec, and in no target"
            where = f"{other.target.identifier}, {job.target.identifier}"
            raise PlanError("mixed-deployment-targets", what, where=where, why=why, hint=hint)
    return AssemblyJob(identifier=ASSEMBLY, targets=names)


def _system(job: BuildJob) -> tuple[str, ...]:
    """Name the target's system, the host's own too, so that the plan is the same on every host."""
    part = slice_of(job.target)
    if is_cross_built(job):
        return cross_definitions(job, install_name(part))
    catalyst = part.variant is AppleVariant.CATALYST
    phone = part.platform is ApplePlatform.IOS and not catalyst
    minimum = "" if catalyst else apple_build(job).deployment_target  # CMake would take it for a version of macOS
    return (
        f"CMAKE_SYSTEM_NAME={'iOS' if phone else 'Darwin'}",
        f"CMAKE_SYSTEM_PROCESSOR={part.architectures[0]}",
        f"CMAKE_OSX_ARCHITECTURES={part.architectures[0]}",
        f"CMAKE_OSX_DEPLOYMENT_TARGET={minimum}",
        f"CMAKE_OSX_SYSROOT=${{xcode}}/{sdk_folder(part)}",
        *WITHOUT,
    )


APPLE_MACHINE: Final = {Architecture.ARM64: "aarch64", Architecture.X64: "x86_64"}
ZIG_SYSTEMS: Final = {
    (ApplePlatform.IOS, AppleVariant.NONE): "ios.{}",
    (ApplePlatform.IOS, AppleVariant.SIMULATOR): "ios.{}-simulator",
    (ApplePlatform.IOS, AppleVariant.CATALYST): "maccatalyst.{}",
    (ApplePlatform.MACOS, AppleVariant.NONE): "macos.{}",
}
"""Platform and variant -> zig's words, with the oldest version."""

DOT_PRODUCT, MATRIX_PRODUCT = "-march=armv8.2-a+dotprod", "-march=armv8.2-a+i8mm"
MAC_REWRITES: Final = ((DOT_PRODUCT, "-mcpu=apple_m1"), (MATRIX_PRODUCT, "-mcpu=apple_m1+i8mm"))
PHONE_REWRITES: Final = ((DOT_PRODUCT, "-mcpu=apple_a13"), (MATRIX_PRODUCT, "-mcpu=apple_a15"))
"""zig refuses `-march` with extensions. Upstream chooses these kernels at run time.

Every arm64 Mac has the dot product, and of phones those since the A13. int8 matrix products, which one file of 1.24 and
newer wants, came with the M2 and the A15.
"""


UNWINDING: Final = "-fno-omit-frame-pointer -femit-dwarf-unwind=no-compact-unwind"
"""Frame pointers, as Apple's systems have them, and with these compact unwind information, which is enough.

zig leaves them out where it optimises, and then clang describes every frame in `__eh_frame`, too: 221 of 1,742 kB of
the demo.
"""


LIBC_LINES: Final = (
    "include_dir=$ORTRIM_APPLE/include",
    "sys_include_dir=${ORTRIM_COMPILER_C%/*}/lib/libc/include/any-darwin-any",
    "crt_dir=$ORTRIM_APPLE/usr/lib",
    "cc_dir=$ORTRIM_APPLE/usr/lib",
    "msvc_lib_dir=",
    "kernel32_lib_dir=",
    "darwin_sdk_dir=$ORTRIM_APPLE",
)
"""Where zig finds the C library; see `zig libc`. Our one header comes before those that it corrects."""


def zig_apple_toolchain(target: Target, deployment_target: str, version: str) -> Toolchain:
    """Return the toolchain that compiles for an Apple target so that it runs on `deployment_target` and newer."""
    part = slice_of(target)
    system = ZIG_SYSTEMS[part.platform, part.variant].format(deployment_target)
    triple = f"{APPLE_MACHINE[target.architecture]}-{system}"
    sysroot = Sysroot(
        identity=f"libSystem {sysroot_digest(triple)}",
        variable=("ORTRIM_APPLE", "${apple}"),
        preparing=LIBC_FILE.replace("LINES", " ".join(f'"{line}"' for line in LIBC_LINES)),
    )
    return zig_for(triple, version, (*LEVELS, *_rewrites(target, part)), UNWINDING, sysroot=sysroot)


def _rewrites(target: Target, part: Slice) -> tuple[tuple[str, str], ...]:
    if target.architecture is not Architecture.ARM64:
        return ()
    return MAC_REWRITES if part.platform is ApplePlatform.MACOS else PHONE_REWRITES


def cross_definitions(job: BuildJob, install_name: str) -> tuple[str, ...]:
    """Return the CMake definitions that name Apple's system, and what of it is not here.

    Which systems the library runs on is in the compiler's triple: for iOS, CMake would look for Xcode's SDK. Upstream
    chooses the kernels for matrices by CMake's list of a Mac's architectures. It demands iconv of every Unix, and no
    minimal build calls it; the stub has none of it.
    """
    architecture = slice_of(job.target).architectures[0]
    return (
        "CMAKE_SYSTEM_NAME=Darwin",
        f"CMAKE_SYSTEM_PROCESSOR={architecture}",
        f"CMAKE_OSX_ARCHITECTURES={architecture}",
        "Iconv_IS_BUILT_IN=TRUE",
        "ORTRIM_APPLE_CROSS=ON",
        f"ORTRIM_INSTALL_NAME={install_name}",
        *(("CMAKE_SHARED_LINKER_FLAGS=-nostdlib++",) if job.build_options.libcxx_no_exceptions else ()),
    )


def is_cross_built(job: BuildJob) -> bool:
    """Whether a job makes a library for an Apple system without Apple's own tools."""
    return job.apple is not None and job.toolchain.kind != "xcode"
