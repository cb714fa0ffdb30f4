"""The system's gcc or clang, for those who want it: found, asked for its version, and written into the plan."""

import re
import shutil
from typing import Final, Literal

from ortrim.core.plan import Toolchain
from ortrim.errors import ToolError
from ortrim.toolchains.wrappers import compiler_wrapper, tool_wrapper
from ortrim.tools.command import run

PROGRAMS: Final = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
MINIMUM_MAJOR: Final = {"gcc": 11, "clang": 14}
SMALLEST_SINCE: Final = 12
"""The first gcc with `-Oz`: to gcc 11 the argument is an error, and `-Os` is the smallest that it has."""
INSTALL: Final = {"gcc": "apt-get install g++", "clang": "apt-get install clang"}


def system_toolchain(kind: Literal["gcc", "clang"]) -> Toolchain:
    """Return the toolchain of a compiler found on `PATH`, which compiles for this machine only.

    Raises `ToolError`: `compiler-missing`, or `compiler-too-old` for one that cannot compile ONNX Runtime (C++20
    in the tests of upstream starts at gcc 11; see its `cmake/CMakeLists.txt`).
    """
    programs = (*PROGRAMS[kind], "ar", "ranlib")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        hint = f'install it ({INSTALL[kind]}) or use compiler = "zig", which needs nothing installed'
        what, why = "the buildspec asks for this compiler, and it is not on PATH", f"not there: {', '.join(missing)}"
        raise ToolError("compiler-missing", what, where=kind, why=why, hint=hint)
    version = _version(kind, programs[0])
    identity = f"{kind} {version}"
    names = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
    rewrites = (("-Oz", "-Os"),) if kind == "gcc" and _major(version) < SMALLEST_SINCE else ()
    return Toolchain(
        kind=kind,
        version=version,
        triple="",
        environment=tuple(zip(names, programs, strict=True)),
        wrappers=(
            ("cc", compiler_wrapper(identity, '"$ORTRIM_COMPILER_C"', rewrites)),
            ("c++", compiler_wrapper(identity, '"$ORTRIM_COMPILER_CXX"', rewrites, precompiles=kind == "clang")),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR"')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB"')),
        ),
    )


def _version(kind: Literal["gcc", "clang"], program: str) -> str:
    printed = run((program, "--version"), timeout_seconds=30).stdout
    first = re.sub(r"\([^)]*\)", "", next(iter(printed.splitlines()), ""))  # in brackets is what the distribution says
    found = re.search(r"\d+\.\d+(\.\d+)?", first)
    if found is None or _major(found.group()) < MINIMUM_MAJOR[kind]:
        what = f"version {MINIMUM_MAJOR[kind]} or newer is needed"
        hint = f'install a newer one ({INSTALL[kind]}) or use compiler = "zig"'
        raise ToolError("compiler-too-old", what, where=program, why=f"it says: {printed[:80]!r}", hint=hint)
    return found.group()


def _major(version: str) -> int:
    return int(version.split(".", maxsplit=1)[0])
