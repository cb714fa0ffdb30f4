"""The runner as the pinned toolchain makes it for every Linux target: small, without a warning, needing almost nothing.

A static library that does nothing but refuse stands for the real one, which `test_static_linkage.py` links.
"""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import onnxruntime
import pytest
from elftools.elf.elffile import ELFFile

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.compiling.plan import PlannedTarget
from ortrim.compiling.workspace import JobPaths
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources
from sample_plans import sample_plan

pytestmark = pytest.mark.network

LINUX: Final = sorted(name for name, target in TARGETS.items() if target.system is OperatingSystem.LINUX)
STRICT: Final = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
ALLOWED: Final = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libc.so"}
MOST_BYTES: Final = 300_000
EMPTY_LIBRARY: Final = """
#include <onnxruntime_c_api.h>
static const OrtApi *ORT_API_CALL none(uint32_t version) { (void)version; return NULL; }
static const char *ORT_API_CALL version(void) { return "0.0.0"; }
const OrtApiBase *ORT_API_CALL OrtGetApiBase(void) { static const OrtApiBase base = {none, version}; return &base; }
"""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A runner, and what its dynamic section says: whether it has one, and the libraries that it needs."""

    program: Path
    dynamic: bool
    needed: frozenset[str]


class Workbench:
    """Compiles the runner as the plan of a target says, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.tools = packages_folder("tools", tool_requirements())
        self.paths = JobPaths(
            sources=fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder,
            build=folder,
            tools=self.tools,
            wrappers=folder,
            config=folder,
            runner=shipped_folder("runner"),
            hooks=folder,
            archive=folder / "libonnxruntime.a",
        )

    def make(self, target: str, linkage: Literal["shared", "static"]) -> Made:
        """Compile the runner for a target; a warning is an error."""
        planned = sample_plan(target, linkage=linkage).targets[0]
        if linkage == "static":
            self._make_archive(planned)
        self._compile(planned, *STRICT, *self.paths.resolve_all(planned.runner.arguments))
        program = self.paths.build / "runner"
        with program.open("rb") as file:
            section: Any = ELFFile(file).get_section_by_name(".dynamic")
            needed = [tag.needed for tag in section.iter_tags("DT_NEEDED")] if section else []
        return Made(program=program, dynamic=section is not None, needed=frozenset(needed))

    def _make_archive(self, planned: PlannedTarget) -> None:
        source, object_file = self.paths.build / "empty.c", self.paths.build / "empty.o"
        source.write_text(EMPTY_LIBRARY)
        include = next(word for word in planned.runner.arguments if word.startswith("-I"))
        self._compile(planned, "-c", self.paths.resolve(include), source, "-o", object_file)
        self._zig("ar", "rcs", self.paths.archive, object_file)

    def _compile(self, planned: PlannedTarget, *words: str | Path) -> None:
        self._zig("cc", "-target", planned.job.toolchain.triple, *words)

    def _zig(self, *words: str | Path) -> None:
        done = run((self.tools / "ziglang" / "zig", *words), cwd=self.paths.build)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.mark.parametrize("target", LINUX)
def test_the_runner_needs_the_c_library_alone(workbench: Workbench, target: str) -> None:
    """It is a small program for any machine that the library runs on, and can open that library."""
    made = workbench.make(target, "shared")
    assert made.dynamic
    assert "libc.so" in {name.removesuffix(".6") for name in made.needed}
    assert made.needed <= ALLOWED
    assert made.program.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("target", LINUX)
def test_the_runner_takes_a_static_library_in(workbench: Workbench, target: str) -> None:
    """On musl nothing is needed of the machine at all; elsewhere no more than the C library's own parts."""
    made = workbench.make(target, "static")
    assert made.needed <= ALLOWED | {"libm.so.6"}
    assert (made.needed == set()) == target.endswith("-musl")
    assert made.program.stat().st_size < MOST_BYTES


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is for x86-64")
def test_the_linked_library_is_the_one_that_answers(workbench: Workbench) -> None:
    made = workbench.make("linux-x64", "static")
    done = run((made.program, "--library", "libonnxruntime.a", "--model", "x"))
    assert done.returncode == 3
    assert "version 0.0.0 has no API version" in done.stdout
