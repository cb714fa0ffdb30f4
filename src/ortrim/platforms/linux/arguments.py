"""What upstream's build is told for Linux, whose compiler is zig or the system's own. Pure."""

from pathlib import PurePosixPath
from typing import Final

from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.targets import Architecture, CLibrary, version_numbers
from ortrim.compiling import upstream_arguments as upstream
from ortrim.compiling.plan import ARCHIVE, SYMBOLS, BuildJob

PROCESSOR: Final = {
    Architecture.X64: "x86_64", Architecture.ARM64: "aarch64", Architecture.ARM: "armv7l",
    Architecture.RISCV64: "riscv64",
}  # fmt: skip
"""What `uname -m` says, which upstream's CMake files go by."""
FIRST_PACKED: Final = (2, 36)
"""The first glibc that reads packed relocations; an older one refuses a library that has them."""
LIBRARY: Final = "libonnxruntime.so"
SYSTEM_LIBRARIES: Final = ("-ldl", "-lpthread", "-lm")
"""All that a program needs beside the static library."""


def build_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return upstream's `build.py` arguments; zig's target is named, the host's own too, so that plans are alike.

    A compiler of the system compiles for the host alone, and CMake is better left to find that out.
    """
    named = ("CMAKE_SYSTEM_NAME=Linux", f"CMAKE_SYSTEM_PROCESSOR={PROCESSOR[job.target.architecture]}")
    flags = f"CMAKE_SHARED_LINKER_FLAGS={' '.join(_linker_flags(job))}"
    return upstream.upstream_arguments(job, (*(named if job.toolchain.kind == "zig" else ()), flags))


def _linker_flags(job: BuildJob) -> list[str]:
    """Return the linker's flags for the shared library.

    An executable stack is refused by hardened systems, and 1.21 does not ask for a plain one (upstream's issue
    24911). The map tells where every byte comes from. zig's driver takes a single script, none of lld's other options
    here, and no symbols without what else debuggers read.
    """
    options, kept = job.build_options, keeps_symbols(job)
    reads_packed = bool(job.minimum_glibc) and version_numbers(job.minimum_glibc) >= FIRST_PACKED
    packing = ("-Wl,-z,pack-relative-relocs",) if options.packed_relocations and reads_packed else ()
    symbols = upstream.symbol_flags(job) if kept else ()
    flags = ["-Wl,-z,noexecstack", upstream.BUILD_ID, *upstream.folding_flags(job), *packing, *symbols]
    if job.toolchain.kind == "zig":
        flags += ["-Wl,--print-map", *((PAST_DRIVER,) if kept else ())]
    if not options.hash_style_both:
        flags.append("-Wl,--hash-style=gnu")
    if options.libcxx_no_exceptions:
        flags.append("-nostdlib++")
    return flags


def runner_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's arguments that make the runner: plain C, nothing needed but libc.

    For a static library it is the program that proves the archive: C alone, linked with the system's libraries and
    nothing of C++. zig takes the static musl unless told so, and a static program opens no library.
    """
    own: tuple[str, ...] = ()
    if job.target.c_library is CLibrary.MUSL:
        own = ("-static",) if job.linkage == "static" else ("-dynamic",) if job.toolchain.kind == "zig" else ()
    return upstream.runner_arguments(job, ("-s", *own), SYSTEM_LIBRARIES)


def expected_outputs(job: BuildJob) -> tuple[PurePosixPath, ...]:
    """Return the shared library and its symbols, its map where the linker writes one, and the archive if wanted."""
    library = (LIBRARY, SYMBOLS) if keeps_symbols(job) else (linked(job),)
    link_map = ("link.map",) if job.toolchain.kind == "zig" else ()
    archive = (ARCHIVE,) if job.linkage == "static" else ()
    return tuple(map(PurePosixPath, (*library, *link_map, *archive)))


def keeps_symbols(job: BuildJob) -> bool:
    """Whether symbols are kept: all but upstream's own recipe does so, which strips at the link."""
    return job.profile != "upstream"


def linked(job: BuildJob) -> str:
    """Return where the build leaves the library as it was linked."""
    return f"MinSizeRel/{LIBRARY}.{job.ort_version}"
