"""Linux: one library, shared or static, for each architecture and C library. See `platforms.platform.Platform`."""

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.buildspec import BuildSpec, TargetSpec
from ortrim.buildspec.problems import Location, Problem, listed, shown
from ortrim.buildspec.rules import DEFAULT_GLIBC, system_compiler_problems
from ortrim.buildspec.targets import CPUS, TARGETS, Architecture, CLibrary, Target, minimum_glibc, version_numbers
from ortrim.compiling.execution import JobPaths
from ortrim.compiling.plan import ARCHIVE, SYMBOLS, BuildJob, Toolchain
from ortrim.compiling.toolchains import system_toolchain, zig_toolchain
from ortrim.compiling.upstream_arguments import (
    BUILD_ID,
    folding_flags,
    runner_arguments,
    symbol_flags,
    upstream_arguments,
)
from ortrim.errors import PlanError
from ortrim.pins.shipped import tool_versions
from ortrim.platforms.platform import Compilation, Platform

if TYPE_CHECKING:
    from ortrim.platforms.delivery import Packaging, Verifying
    from ortrim.verify.verification import Delivery

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


class Linux(Platform):
    """Linux on this machine's processor or another; its toolchain comes with ortrim, or is the system's own."""

    NAME = "linux"
    IN_AN_APP = (
        "mkdir -p third_party/ortrim && tar xzf {package} --strip-components=1 -C third_party/ortrim",
        "CMakeLists.txt: find_package(onnxruntime REQUIRED CONFIG PATHS third_party/ortrim)",
        "                target_link_libraries(app onnxruntime::onnxruntime)",
    )

    def problems(
        self, target: TargetSpec, location: Location, linkage: Literal["shared", "static"]
    ) -> Iterator[Problem]:
        """Yield what the C library, the processor or the compiler of a target cannot follow."""
        yield from _c_library(target, location)
        yield from _processor(target, location)
        yield from system_compiler_problems(target, location, linkage)

    def toolchain(
        self, spec: BuildSpec, target: TargetSpec, asked: Compilation, host: Callable[[], Target | None]
    ) -> Toolchain:
        """Return zig, or the system's own compiler.

        Raises `PlanError` `no-cross-compiler`, and as `system_toolchain` does.
        """
        if target.compiler == "zig":
            known = TARGETS[target.id]
            glibc = minimum_glibc(known, target.glibc)
            return zig_toolchain(known, glibc, dict(tool_versions())["ziglang"], target.cpu)
        here = host()
        if here is None or target.id != here.identifier:
            what = f"the system's {target.compiler} compiles for {here.identifier if here else 'its own Linux'} only"
            hint = 'use compiler = "zig", which compiles for every target'
            raise PlanError("no-cross-compiler", what, where=target.id, hint=hint)
        return system_toolchain(target.compiler)

    def build_machine(self, target: Target) -> str:
        """Return a machine of the target's own kind where there is one; what runs on musl is made on x86-64."""
        own = target.c_library is CLibrary.GLIBC and target.architecture is Architecture.ARM64
        return "linux-arm64" if own else "linux-x64"

    def build_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return upstream's `build.py` arguments for a Linux target."""
        return upstream_arguments(job, (*_system(job), *_linking(job)))

    def runner_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return the compiler's arguments that make the runner: plain C, nothing needed but libc.

        For a static library it is the program that proves the archive: C alone, linked with the system's libraries and
        nothing of C++. On musl that program needs no file of the system at all.
        """
        return runner_arguments(job, ("-s", *_linking_of_musl(job)), SYSTEM_LIBRARIES)

    def expected_outputs(self, job: BuildJob) -> tuple[PurePosixPath, ...]:
        """Return the shared library and its symbols, its map where the linker writes one, and the archive if wanted."""
        library = (LIBRARY, SYMBOLS) if _keeps_symbols(job) else (_linked(job),)
        link_map = ("link.map",) if job.toolchain.kind == "zig" else ()
        archive = (ARCHIVE,) if job.linkage == "static" else ()
        return tuple(map(PurePosixPath, (*library, *link_map, *archive)))

    def finish(self, job: BuildJob, paths: JobPaths) -> None:
        """Strip what was linked, and keep its symbols apart. Raises as `take_apart` does."""
        if _keeps_symbols(job):
            from ortrim.platforms.linux.delivery import keep_symbols  # noqa: PLC0415 - see `Platform.package`

            keep_symbols(paths.build / _linked(job), paths.build)

    def package(self, packaging: "Packaging") -> "list[Delivery]":
        """Make the archive of one target. Raises as `make_package` does."""
        from ortrim.platforms.linux.delivery import deliver  # noqa: PLC0415 - see `Platform.package`

        return deliver(packaging)

    def verifying(self) -> "Verifying":
        """Return the rules of Linux machines."""
        from ortrim.platforms.linux.delivery import LinuxMachines  # noqa: PLC0415 - see `Platform.package`

        return LinuxMachines()


def _c_library(target: TargetSpec, location: Location) -> Iterator[Problem]:
    if TARGETS[target.id].c_library is not CLibrary.GLIBC and target.glibc != DEFAULT_GLIBC:
        what, why = "has no meaning for this target", f"{target.id} is built against {TARGETS[target.id].c_library}"
        yield Problem(code="stray-key", location=(*location, "glibc"), what=what, why=why)


def _processor(target: TargetSpec, location: Location) -> Iterator[Problem]:
    known = CPUS[TARGETS[target.id].architecture]
    if target.cpu is not None and target.cpu not in known:
        what = f"is {shown(target.cpu)}, which is not a processor that {target.id} can be built for"
        hint = f"choose among {listed(list(known), 'and')}, or leave 'cpu' out for any processor of the architecture"
        yield Problem(code="unknown-cpu", location=(*location, "cpu"), what=what, hint=hint)


def _linking_of_musl(job: BuildJob) -> tuple[str, ...]:
    """Say how a program takes musl: zig takes the static one unless told so, and a static program opens no library."""
    if job.target.c_library is not CLibrary.MUSL:
        return ()
    if job.linkage == "static":
        return ("-static",)
    return ("-dynamic",) if job.toolchain.kind == "zig" else ()


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
    24911). The map tells where every byte comes from. zig's driver takes a single script, none of lld's other options
    here, and no symbols without what else debuggers read.
    """
    packing = (
        ("-Wl,-z,pack-relative-relocs",)
        if job.build_options.packed_relocations and _reads_packed(job.minimum_glibc)
        else ()
    )
    kept = _keeps_symbols(job)
    flags = ["-Wl,-z,noexecstack", BUILD_ID, *folding_flags(job), *packing, *(symbol_flags(job) if kept else ())]
    if job.toolchain.kind == "zig":
        flags += ["-Wl,--print-map", *((PAST_DRIVER,) if kept else ())]
    if not job.build_options.hash_style_both:
        flags.append("-Wl,--hash-style=gnu")
    if job.build_options.libcxx_no_exceptions:
        flags.append("-nostdlib++")
    return (f"CMAKE_SHARED_LINKER_FLAGS={' '.join(flags)}",)


def _keeps_symbols(job: BuildJob) -> bool:
    """Whether symbols are kept: all but upstream's own recipe does so, which strips at the link."""
    return job.profile != "upstream"


def _linked(job: BuildJob) -> str:
    return f"MinSizeRel/{LIBRARY}.{job.ort_version}"


def _reads_packed(minimum_glibc: str) -> bool:
    return bool(minimum_glibc) and version_numbers(minimum_glibc) >= FIRST_PACKED
