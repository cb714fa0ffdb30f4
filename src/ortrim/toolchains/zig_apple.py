"""The hermetic toolchain for Macs: zig's clang, libc++ and linker, with the headers and stubs of macOS's libc. Pure.

zig carries nothing of Apple's frameworks: a library that needs one cannot be built with it.
"""

from typing import Final

from ortrim.core.plan import Toolchain
from ortrim.core.targets import Architecture, Target
from ortrim.toolchains.wrappers import compiler_wrapper, tool_wrapper
from ortrim.toolchains.zig import LEVELS

MACHINE: Final = {Architecture.ARM64: "aarch64", Architecture.X64: "x86_64"}

REWRITES: Final = {Architecture.ARM64: (("-march=armv8.2-a+dotprod", "-mcpu=apple_m1"),), Architecture.X64: ()}
"""zig refuses `-march` with extensions; every arm64 Mac has the dot product."""


def zig_apple_toolchain(target: Target, deployment_target: str, version: str) -> Toolchain:
    """Return the toolchain that compiles for a Mac so that the library loads on `deployment_target` and newer."""
    triple = f"{MACHINE[target.architecture]}-macos.{deployment_target}"
    options = f"-target {triple}"
    identity = f"zig {version} {triple}"
    rewrites = (*LEVELS, *REWRITES[target.architecture])
    return Toolchain(
        kind="zig",
        version=version,
        triple=triple,
        environment=tuple(
            (name, "${tools}/ziglang/zig")
            for name in ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
        ),
        wrappers=(
            ("cc", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_C" cc {options}', rewrites)),
            ("c++", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_CXX" c++ {options}', rewrites, precompiles=True)),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR" ar')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB" ranlib')),
        ),
    )
