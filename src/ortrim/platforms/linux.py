"""Linux: one shared library for each architecture. Pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from ortrim.core.plan import AssemblyJob, BuildJob
from ortrim.core.targets import Architecture
from ortrim.platforms.upstream import DEFINITIONS, RUNNER_SOURCES, common_arguments, hook_definitions

PROCESSOR: Final = {Architecture.X64: "x86_64", Architecture.ARM64: "aarch64"}


def build_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return upstream's `build.py` arguments for a Linux target."""
    definitions = (*DEFINITIONS, *hook_definitions(job), *_system(job), *_linking(job))
    return (*common_arguments(job), "--cmake_extra_defines", *definitions)


def runner_arguments() -> tuple[str, ...]:
    """Return the compiler's arguments that make the runner: plain C, nothing needed but libc."""
    include = "-I${sources}/onnxruntime/include/onnxruntime/core/session"
    sources = (f"${{runner}}/{name}" for name in RUNNER_SOURCES)
    return ("-std=c11", "-O2", "-s", include, *sources, "-o", "${build}/runner", "-ldl", "-lpthread", "-lm")


def expected_outputs(job: BuildJob) -> tuple[PurePosixPath, ...]:
    """Return the library and, where the linker writes one, its map."""
    library = PurePosixPath("MinSizeRel") / f"libonnxruntime.so.{job.ort_version}"
    return (library, PurePosixPath("link.map")) if job.toolchain.kind == "zig" else (library,)


def assembly(jobs: Sequence[BuildJob]) -> AssemblyJob | None:
    """Return None: a Linux package holds one architecture."""
    return None


def _system(job: BuildJob) -> tuple[str, ...]:
    """Name the target's system, so that the plan is the same on every host; x64 builds only on x64 hosts so far."""
    if job.target.architecture is Architecture.X64:
        return ()
    return ("CMAKE_SYSTEM_NAME=Linux", f"CMAKE_SYSTEM_PROCESSOR={PROCESSOR[job.target.architecture]}")


def _linking(job: BuildJob) -> tuple[str, ...]:
    """Linker flags of the shared library.

    An executable stack is refused by hardened systems, and 1.21 does not ask for a plain one (upstream's issue
    24911). The map tells where every byte comes from.
    """
    flags = ["-Wl,-z,noexecstack"]
    if job.toolchain.kind == "zig":
        flags.append("-Wl,--print-map")
    if job.profile == "balanced":
        flags.append("-Wl,--hash-style=gnu")
        if not job.exceptions:
            flags.append("-Wl,--no-eh-frame-hdr")
    return (f"CMAKE_SHARED_LINKER_FLAGS={' '.join(flags)}",)
