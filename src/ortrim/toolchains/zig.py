"""The hermetic toolchain: clang, lld, libc++ and glibc stubs from the pinned `ziglang` wheel. Pure."""

from typing import Final

from ortrim.core.plan import Toolchain
from ortrim.core.processors import zig_cpu
from ortrim.core.targets import Architecture, CLibrary, Target
from ortrim.toolchains.linking import linking
from ortrim.toolchains.wrappers import compiler_wrapper, tool_wrapper

MACHINE: Final = {
    Architecture.X64: "x86_64", Architecture.ARM64: "aarch64", Architecture.ARM: "arm",
    Architecture.RISCV64: "riscv64",
}  # fmt: skip
FLOAT_ABI: Final = {Architecture.ARM: "eabihf"}

PROGRAM: Final = '"$ORTRIM_COMPILER_CXX"'
LEVELS: Final = (("-Oz", "-Os -Xclang -Oz"), ("-O3", "-O2 -Xclang -O3"))
"""zig takes -Oz for -Os, and -O3 for -O2, unless clang itself is told."""
ARM64_FEATURES: Final = (
    ("-march=armv8.2-a+fp16", "+v8_2a+fullfp16"),
    ("-march=armv8.2-a+bf16", "+v8_2a+bf16"),
    ("-march=armv8.2-a+dotprod", "+v8_2a+dotprod"),
    ("-march=armv8.2-a+i8mm", "+v8_2a+i8mm"),
)
"""What upstream asks for in single files of kernels that are chosen at run time, and clang's names of it.

zig refuses `-march` with extensions and wants them in `-mcpu`, where they come on top of the floor.
"""
ARM_REWRITES: Final = (("-mfpu=neon", ""),)
"""Upstream's one flag for ARMv7; the `-mcpu` of every floor has NEON already."""


def zig_toolchain(target: Target, minimum_glibc: str, version: str, cpu: str | None = None) -> Toolchain:
    """Return the toolchain that compiles for a Linux target so that it loads on `minimum_glibc` and newer.

    `minimum_glibc` is empty for musl. `cpu` is the floor as buildspecs name it; raises KeyError for an unknown one.
    """
    triple = _triple(target, minimum_glibc)
    floor = zig_cpu(target.architecture, cpu)
    options = f"-target {triple} -mcpu={floor}" if floor else f"-target {triple}"
    identity = f"zig {version} {options.removeprefix('-target ')}"
    cc, cxx = f'"$ORTRIM_COMPILER_C" cc {options}', f"{PROGRAM} c++ {options}"
    rewrites = _rewrites(target.architecture, floor)
    return Toolchain(
        kind="zig",
        version=version,
        triple=triple,
        environment=tuple(
            (name, "${tools}/ziglang/zig")
            for name in ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
        ),
        wrappers=(
            ("cc", compiler_wrapper(identity, cc, rewrites, quick_trials=True)),
            ("c++", _cxx_wrapper(identity, cxx, rewrites)),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR" ar')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB" ranlib')),
        ),
    )


def _cxx_wrapper(identity: str, cxx: str, rewrites: tuple[tuple[str, str], ...]) -> str:
    links = linking(PROGRAM, cxx)
    return compiler_wrapper(identity, cxx, rewrites, precompiles=True, linking=links, quick_trials=True)


def _triple(target: Target, minimum_glibc: str) -> str:
    abi = FLOAT_ABI.get(target.architecture, "")
    if target.c_library is CLibrary.MUSL:
        return f"{MACHINE[target.architecture]}-linux-musl{abi}"
    return f"{MACHINE[target.architecture]}-linux-gnu{abi}.{minimum_glibc}"


def _rewrites(architecture: Architecture, floor: str) -> tuple[tuple[str, str], ...]:
    match architecture:
        case Architecture.ARM64:
            return (*LEVELS, *((old, f"-mcpu={floor or 'generic'}{features}") for old, features in ARM64_FEATURES))
        case Architecture.ARM:
            return (*LEVELS, *ARM_REWRITES)
        case _:
            return LEVELS
