"""Linux: one library, shared or static, for each architecture. Pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from ortrim.build.plan import ARCHIVE, AssemblyJob, BuildJob
from ortrim.build.upstream_arguments import (
    DEFINITIONS,
    RUNNER_SOURCES,
    common_arguments,
    cpuinfo_definitions,
    folding_flags,
    hook_definitions,
)
from ortrim.spec.build_options import PAST_DRIVER
from ortrim.spec.targets import Architecture, CLibrary, version_numbers

PROCESSOR: Final = {
    Architecture.X64: "x86_64", Architecture.ARM64: "aarch64", Architecture.ARM: "armv7l",
    Architecture.RISCV64: "riscv64",
}  # fmt: skip
"""What `uname -m` says, which upstream's CMake files go by."""
FIRST_PACKED: Final = (2, 36)
"""The first glibc that reads packed relocations; an older one refuses a library that has them."""
SYSTEM_LIBRARIES: Final = ("-ldl", "-lpthread", "-lm")
"""All that a program needs beside the static library."""


def build_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return upstream's `build.py` arguments for a Linux target."""
    own = (*cpuinfo_definitions(job), *hook_definitions(job), *_system(job), *_linking(job))
    definitions = (*DEFINITIONS, *own)
    return (*common_arguments(job), "--cmake_extra_defines", *definitions)


def runner_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's arguments that make the runner: plain C, nothing needed but libc.

    For a static library it is the program that proves the archive: C alone, linked with the system's libraries and
    nothing of C++. On musl that program needs no file of the system at all.
    """
    include = "-I${sources}/onnxruntime/include/onnxruntime/core/session"
    sources = tuple(f"${{runner}}/{name}" for name in RUNNER_SOURCES)
    linked = ("-DORTRIM_LINKED", "${archive}") if job.linkage == "static" else ()
    plain = ("-std=c11", "-O2", "-s", *_linking_of_musl(job), include)
    return (*plain, *linked[:1], *sources, *linked[1:], "-o", "${build}/runner", *SYSTEM_LIBRARIES)


def _linking_of_musl(job: BuildJob) -> tuple[str, ...]:
    """Say how a program takes musl: zig takes the static one unless told so, and a static program opens no library."""
    if job.target.c_library is not CLibrary.MUSL:
        return ()
    if job.linkage == "static":
        return ("-static",)
    return ("-dynamic",) if job.toolchain.kind == "zig" else ()


def finishing(job: BuildJob) -> tuple[tuple[str, ...], ...]:
    """Return nothing: upstream's build leaves the library as it ships."""
    return ()


def expected_outputs(job: BuildJob) -> tuple[PurePosixPath, ...]:
    """Return the shared library, its map where the linker writes one, and the archive if that is wanted."""
    library = PurePosixPath("MinSizeRel") / f"libonnxruntime.so.{job.ort_version}"
    link_map = (PurePosixPath("link.map"),) if job.toolchain.kind == "zig" else ()
    return (library, *link_map, *((PurePosixPath(ARCHIVE),) if job.linkage == "static" else ()))


def assembly(jobs: Sequence[BuildJob]) -> AssemblyJob | None:
    """Return None: a Linux package holds one architecture."""
    return None


def _system(job: BuildJob) -> tuple[str, ...]:
    """Name the target's system, the host's own too, so that the plan is the same on every host.

    A compiler of the system compiles for the host alone, and CMake is better left to find that out.
    """
    if job.toolchain.kind != "zig":
        return ()
    return ("CMAKE_SYSTEM_NAME=Linux", f"CMAKE_SYSTEM_PROCESSOR={PROCESSOR[job.target.architecture]}")


def _linking(job: BuildJob) -> tuple[str, ...]:
    """Linker flags of the shared library.

    An executable stack is refused by hardened systems, and 1.21 does not ask for a plain one (upstream's issue
    24911). The map tells where every byte comes from. zig's driver takes a single script, and none of lld's other
    options here.
    """
    packing = (
        ("-Wl,-z,pack-relative-relocs",)
        if job.build_options.packed_relocations and _reads_packed(job.minimum_glibc)
        else ()
    )
    of_lld = (*folding_flags(job), *packing)
    flags = ["-Wl,-z,noexecstack", *of_lld]
    if job.toolchain.kind == "zig":
        flags += ["-Wl,--print-map", *((PAST_DRIVER,) if of_lld else ())]
    if not job.build_options.hash_style_both:
        flags.append("-Wl,--hash-style=gnu")
    if job.build_options.libcxx_no_exceptions:
        flags.append("-nostdlib++")
    return (f"CMAKE_SHARED_LINKER_FLAGS={' '.join(flags)}",)


def _reads_packed(minimum_glibc: str) -> bool:
    return bool(minimum_glibc) and version_numbers(minimum_glibc) >= FIRST_PACKED
