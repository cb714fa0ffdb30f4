"""The hermetic toolchain for Macs: zig's clang, libc++ and linker, with the headers and stubs of macOS's libc. Pure."""

from pathlib import Path
from typing import Final

from ortrim.base.files import storage_errors
from ortrim.binaries.apple import EXPORTS, slice_of
from ortrim.buildspec.targets import Architecture, Target
from ortrim.compiling.plan import BuildJob, Toolchain
from ortrim.compiling.toolchains import LEVELS, zig_for
from ortrim.compiling.workspace import JobPaths

APPLE_MACHINE: Final = {Architecture.ARM64: "aarch64", Architecture.X64: "x86_64"}

REWRITES: Final = {
    Architecture.ARM64: (
        ("-march=armv8.2-a+dotprod", "-mcpu=apple_m1"),
        ("-march=armv8.2-a+i8mm", "-mcpu=apple_m1+i8mm"),
    ),
    Architecture.X64: (),
}
"""zig refuses `-march` with extensions. Every arm64 Mac has the dot product; int8 matrix products, which one file of
1.24 and newer wants, came with the M2, and upstream chooses those kernels at run time.
"""


UNWINDING: Final = "-fno-omit-frame-pointer -femit-dwarf-unwind=no-compact-unwind"
"""Frame pointers, as Apple's systems have them, and with these compact unwind information, which is enough.

zig leaves them out where it optimises, and then clang describes every frame in `__eh_frame`, too: 221 of 1,742 kB of
the demo.
"""


def zig_apple_toolchain(target: Target, deployment_target: str, version: str) -> Toolchain:
    """Return the toolchain that compiles for a Mac so that the library loads on `deployment_target` and newer."""
    triple = f"{APPLE_MACHINE[target.architecture]}-macos.{deployment_target}"
    return zig_for(triple, version, (*LEVELS, *REWRITES[target.architecture]), UNWINDING)


LINKING: Final = "-Wl,-x"
"""Leaves names out of the table of symbols that are no library's business: with zig's linker upstream's `-s` does not.

What of code nothing needs is left out anyway, and a map zig's linker cannot write.
"""


def cross_definitions(job: BuildJob, install_name: str) -> tuple[str, ...]:
    """Return the CMake definitions that name a Mac's system, and what of it is not here.

    Which systems the library runs on is in the compiler's triple. Upstream chooses the kernels for matrices by CMake's
    list of a Mac's architectures. It demands iconv of every Unix, and no minimal build calls it; zig has no stub of a
    Mac's.
    """
    architecture = slice_of(job.target).architectures[0]
    plain = ("-nostdlib++",) if job.build_options.libcxx_no_exceptions else ()
    return (
        "CMAKE_SYSTEM_NAME=Darwin",
        f"CMAKE_SYSTEM_PROCESSOR={architecture}",
        f"CMAKE_OSX_ARCHITECTURES={architecture}",
        "Iconv_IS_BUILT_IN=TRUE",
        "ORTRIM_APPLE_CROSS=ON",
        f"ORTRIM_INSTALL_NAME={install_name}",
        f"CMAKE_SHARED_LINKER_FLAGS={' '.join((LINKING, *plain))}",
    )


def is_cross_built(job: BuildJob) -> bool:
    """Whether a job makes a library for an Apple system without Apple's own tools."""
    return job.apple is not None and job.toolchain.kind != "xcode"


def offer_public_api_alone(job: BuildJob, paths: JobPaths) -> None:
    """Leave a linked library the names that upstream has it export, in place; done again it changes nothing."""
    from ortrim.binaries.macho_exports import with_exports  # noqa: PLC0415 - imports lief

    library = paths.build / job.expected_outputs[0]
    with storage_errors(library):
        names = frozenset(Path(paths.resolve(EXPORTS)).read_text(encoding="utf-8").split())
        library.write_bytes(with_exports(library.read_bytes(), names, str(library)))
