"""Android's NDK: clang, lld, libc++ and bionic's stubs from an installation, whose version the plan holds. Pure.

CMake's own modules for Android choose the NDK's compiler by its path, whatever `CC` says. The wrappers take its place
all the same: CMake calls a compiler by way of its launcher, and ours hands over to the wrapper. Linking goes without.
"""

from typing import Final

from ortrim.core.ndk import PROGRAMS, TRIPLES
from ortrim.core.plan import Toolchain
from ortrim.core.targets import Target
from ortrim.toolchains.wrappers import compiler_wrapper, launcher, tool_wrapper

ENVIRONMENT: Final = {
    "ORTRIM_COMPILER_C": "clang", "ORTRIM_COMPILER_CXX": "clang++", "ORTRIM_AR": "llvm-ar",
    "ORTRIM_RANLIB": "llvm-ranlib", "ORTRIM_OBJCOPY": "llvm-objcopy",
}  # fmt: skip


def ndk_toolchain(target: Target, api: int, version: str) -> Toolchain:
    """Return the toolchain that compiles for an Android target so that it loads on an API level and newer."""
    triple = f"{TRIPLES[target.architecture]}{api}"
    identity = f"ndk {version} {triple}"
    cxx = f'"$ORTRIM_COMPILER_CXX" --target={triple}'
    return Toolchain(
        kind="ndk",
        version=version,
        triple=triple,
        environment=tuple((name, f"${{ndk}}/{PROGRAMS[program]}") for name, program in ENVIRONMENT.items()),
        wrappers=(
            ("cc", compiler_wrapper(identity, f'"$ORTRIM_COMPILER_C" --target={triple}')),
            ("c++", compiler_wrapper(identity, cxx, precompiles=True)),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR"')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB"')),
            ("objcopy", tool_wrapper(identity, '"$ORTRIM_OBJCOPY"')),
            ("launch-cc", launcher(identity, "cc")),
            ("launch-c++", launcher(identity, "c++")),
        ),
    )
