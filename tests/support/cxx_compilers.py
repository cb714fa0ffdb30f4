"""The compilers of C++ that tests compile the headers in `data/cmake` with."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements

Compiler = Callable[[Path], tuple[str, ...]]


def zig(tools: Path) -> tuple[str, ...]:
    """Return the pinned compiler, whose C++ library is libc++."""
    return (str(tools / "ziglang" / "zig"), "c++")


def gcc(_tools: Path) -> tuple[str, ...]:
    """Return the system's compiler, whose C++ library is another one."""
    return ("g++",)


COMPILERS: Final = (zig, pytest.param(gcc, marks=pytest.mark.needs("g++")))


def compile_with(compiler: Compiler, header: str, source: Path, made: Path, *options: str) -> Path:
    included = ("-I", str(source.parent), "-I", str(shipped_folder("cmake")), "-include", header)
    words = ("-Wall", "-Werror", *options, *included, str(source), "-o", str(made))
    done = run((*compiler(packages_folder("tools", tool_requirements())), *words))
    assert done.returncode == 0, done.stderr
    return made
