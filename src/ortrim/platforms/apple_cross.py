"""A library for Macs that is compiled on another machine, with zig: what upstream's build then wants to know. Pure.

`data/cmake/apple_cross.cmake` does what no definition can.
"""

from typing import Final

from ortrim.core.apple import slice_of
from ortrim.core.plan import BuildJob

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
    return (
        "CMAKE_SYSTEM_NAME=Darwin",
        f"CMAKE_SYSTEM_PROCESSOR={architecture}",
        f"CMAKE_OSX_ARCHITECTURES={architecture}",
        "Iconv_IS_BUILT_IN=TRUE",
        "ORTRIM_APPLE_CROSS=ON",
        f"ORTRIM_INSTALL_NAME={install_name}",
        f"CMAKE_SHARED_LINKER_FLAGS={LINKING}",
    )


def is_cross_built(job: BuildJob) -> bool:
    """Whether a job makes a library for an Apple system without Apple's own tools."""
    return job.apple is not None and job.toolchain.kind != "xcode"
