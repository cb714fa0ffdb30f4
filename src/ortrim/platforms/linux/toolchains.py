"""What compiles for Linux: the hermetic toolchain, or the compiler of a system that is the target itself."""

from collections.abc import Callable

from ortrim.build.plan import BuildJob, Toolchain
from ortrim.build.toolchains import system_toolchain, zig_toolchain
from ortrim.errors import PlanError
from ortrim.pins.shipped import tool_versions
from ortrim.platforms.platform import Compilation
from ortrim.spec.buildspec import BuildSpec, TargetSpec
from ortrim.spec.targets import TARGETS, Architecture, CLibrary, Target, minimum_glibc


def toolchain(_spec: BuildSpec, target: TargetSpec, _asked: Compilation, host: Callable[[], Target]) -> Toolchain:
    """Return zig, or the system's own compiler. Raises `PlanError` `no-cross-compiler`, and as `system_toolchain`."""
    if target.compiler == "zig":
        known = TARGETS[target.id]
        glibc = minimum_glibc(known, target.glibc)
        return zig_toolchain(known, glibc, dict(tool_versions())["ziglang"], target.cpu)
    if target.id != host().identifier:
        what = f"the system's {target.compiler} compiles for {host().identifier} only"
        hint = 'use compiler = "zig", which compiles for every target'
        raise PlanError("no-cross-compiler", what, where=target.id, hint=hint)
    return system_toolchain(target.compiler)


def toolchain_of(job: BuildJob) -> Toolchain | None:
    """Return zig; None for a compiler of the machine that made the plan."""
    if job.toolchain.kind != "zig":
        return None
    return zig_toolchain(job.target, job.minimum_glibc, dict(tool_versions())["ziglang"], job.cpu or None)


def build_machine(target: Target) -> str:
    """Return a machine of the target's own kind where there is one; what another C library runs is made on x86-64."""
    own = target.c_library is CLibrary.GLIBC and target.architecture is Architecture.ARM64
    return "linux-arm64" if own else "linux-x64"
