"""The hermetic toolchain: clang, lld, libc++ and glibc stubs from the pinned `ziglang` wheel. Pure."""

from typing import Final

from ortrim.core.plan import Toolchain
from ortrim.core.targets import Architecture, Target
from ortrim.toolchains.wrappers import compiler_wrapper, tool_wrapper

MACHINE: Final = {Architecture.X64: "x86_64", Architecture.ARM64: "aarch64"}

# zig refuses `-march` with extensions and wants clang's feature names in `-mcpu` instead.
ARM64_REWRITES: Final = (
    ("-march=armv8.2-a+fp16", "-mcpu=generic+v8_2a+fullfp16"),
    ("-march=armv8.2-a+bf16", "-mcpu=generic+v8_2a+bf16"),
    ("-march=armv8.2-a+dotprod", "-mcpu=generic+v8_2a+dotprod"),
    ("-march=armv8.2-a+i8mm", "-mcpu=generic+v8_2a+i8mm"),
)

LLVM_LICENCE: Final = "Apache-2.0 WITH LLVM-exception"
RUNTIME_LICENCES: Final = (
    ("libc++", LLVM_LICENCE, "ziglang/lib/libcxx/LICENSE.TXT"),
    ("libc++abi", LLVM_LICENCE, "ziglang/lib/libcxxabi/LICENSE.TXT"),
    ("libunwind", LLVM_LICENCE, "ziglang/lib/libunwind/LICENSE.TXT"),
    ("compiler-rt", "MIT", "ziglang/LICENSE"),
)
"""What zig links into the library: component, licence, and the text's place among the tool packages."""


def zig_toolchain(target: Target, minimum_glibc: str, version: str) -> Toolchain:
    """Return the toolchain that compiles for a Linux target so that it loads on `minimum_glibc` and newer."""
    triple = f"{MACHINE[target.architecture]}-linux-gnu.{minimum_glibc}"
    identity = f"zig {version} {triple}"
    cxx = f'"$ORTRIM_COMPILER_CXX" c++ -target {triple}'
    rewrites = ARM64_REWRITES if target.architecture is Architecture.ARM64 else ()
    return Toolchain(
        kind="zig",
        version=version,
        triple=triple,
        environment=tuple(
            (name, "${tools}/ziglang/zig")
            for name in ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
        ),
        wrappers=(
            ("cc", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_C" cc -target {triple}', rewrites)),
            ("c++", compiler_wrapper(identity, cxx, rewrites, precompiles=True)),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR" ar')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB" ranlib')),
        ),
    )
