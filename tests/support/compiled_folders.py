"""A source folder and a build folder with the real toolchain, and a few files to compile in them."""

import hashlib
import os
import random
import shutil
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, run
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.compiler_cache import CompilerCache
from ortrim.compiling.execution import BuildInputs, job_environment, prepare_workspace
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.pins.shipped import tool_requirements, tool_versions

HEADER: Final = """#pragma once
inline const char* here() { return __FILE__; }
inline int twice(int x) { return 2 * x; }
"""
SOURCE: Final = """#include <cstddef>
#include "shape.h"
extern const unsigned char data{n}[] = {{{bytes}}};
const char* where{n}() {{ return here(); }}
const char* who{n}() {{ return __FILE__; }}
int value{n}() {{ return twice({n}) + OFFSET; }}
"""
GENERATED: Final = "#define OFFSET 7\n"
DATA_BYTES: Final = 3000


class CompiledFolders:
    """Sources, compiler and a build folder beside each other below `root`, as in ortrim's cache on some machine."""

    def __init__(self, root: Path, files: int = 2) -> None:
        self.installed = packages_folder("tools", tool_requirements())
        self.tools = root / "tools"
        shutil.copytree(self.installed / "ziglang", self.tools / "ziglang", copy_function=_linked)
        self.sources = root / "sources"
        self.toolchain = zig_toolchain(TARGETS["linux-x64"], "2.28", dict(tool_versions())["ziglang"])
        (self.sources / "include").mkdir(parents=True)
        (self.sources / "include" / "shape.h").write_text(HEADER)
        self.names = tuple(f"file{n}" for n in range(files))
        for n, name in enumerate(self.names):
            (self.sources / f"{name}.cc").write_text(SOURCE.format(n=n, bytes=_bytes_text(n)))
        (root / "hooks").mkdir()
        (root / "builds" / "one").mkdir(parents=True)
        inputs = BuildInputs(sources=self.sources, tools=self.tools, runner=root, hooks=root / "hooks")
        self.paths = prepare_workspace(root / "builds" / "one", inputs, self.toolchain)
        self.cwd = self.paths.build / "MinSizeRel"
        self.cwd.mkdir()
        (self.cwd / "generated.h").write_text(GENERATED)

    @property
    def programs(self) -> Path:
        return self.installed / "bin"

    @property
    def bases(self) -> tuple[Path, ...]:
        return (self.paths.build.parent, self.sources, self.tools)

    def compile(self, cache: CompilerCache | None, name: str) -> str:
        """Compile one file as ninja would, and return the SHA-256 of the object."""
        output = self.cwd / f"{name}.o"
        output.unlink(missing_ok=True)
        done = self.run(cache, name)
        assert done.returncode == 0, done.stderr
        return hashlib.sha256(output.read_bytes()).hexdigest()

    def compile_all(self, cache: CompilerCache | None) -> tuple[str, ...]:
        """Compile every file, and return the digests of the objects."""
        return tuple(self.compile(cache, name) for name in self.names)

    def run(self, cache: CompilerCache | None, name: str) -> Completed:
        includes = ("-I", str(self.sources / "include"), f"-I{self.cwd}", "-include", str(self.cwd / "generated.h"))
        outputs = ("-MD", "-MT", f"{name}.o", "-MF", f"{name}.o.d", "-o", f"{name}.o")
        compiler = (str(self.paths.wrappers / "c++"), "-Os", "-fPIC", *includes, *outputs)
        command = (*((cache.launcher,) if cache else ()), *compiler, "-c", str(self.sources / f"{name}.cc"))
        environment = job_environment(self.paths, self.toolchain) | dict(cache.environment if cache else {})
        return run(command, cwd=self.cwd, environment=environment)

    def dependencies(self, name: str) -> set[Path]:
        """Return the files that ninja would watch for an object."""
        words = (self.cwd / f"{name}.o.d").read_text().replace("\\\n", " ").partition(": ")[2].split()
        return {Path(os.path.normpath(self.cwd / word)) for word in words}


def _linked(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)
        shutil.copymode(source, destination)


def _bytes_text(n: int) -> str:
    return ",".join(str(byte) for byte in random.Random(n).randbytes(DATA_BYTES))  # noqa: S311 - only incompressible
