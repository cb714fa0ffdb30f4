"""CMake's trials through the wrapper that a real shell runs before a program that plays zig's part."""

import json
import sys
from pathlib import Path

import pytest

from ortrim.base.command import Completed, run
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.toolchains import zig_toolchain

ZIG = """
import json, os, sys
words = sys.argv[1:]
with open(os.environ["RECORD"], "a") as record:
    record.write(json.dumps(words) + "\\n")
print("to stdout")
print("a warning", file=sys.stderr)
sys.exit(1 if "needs-c++" in words and "-nostdlib++" in words else int(os.environ.get("EXIT", "0")))
"""
TRIAL = "the build/CMakeFiles/CMakeScratch/trial"


class Bench:
    """The wrappers in front of a zig that records what it is asked and cannot link one program without libc++."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        zig = folder / "a zig"
        zig.write_text(f"#!{sys.executable} -S\n{ZIG}")
        zig.chmod(0o755)
        for name, text in zig_toolchain(TARGETS["linux-x64"], "2.28", "0.17.0").wrappers:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "ORTRIM_COMPILER_C": str(zig),
            "ORTRIM_COMPILER_CXX": str(zig),
            "ORTRIM_SOURCES": "/sources",
            "ORTRIM_BUILD": str(folder / "the build"),
            "RECORD": str(folder / "record"),
        }

    def call(self, wrapper: str, *arguments: str, where: str = TRIAL, code: str = "0") -> Completed:
        """Run a wrapper in a folder below this one."""
        work = self.folder / where
        work.mkdir(parents=True, exist_ok=True)
        return run((str(self.folder / wrapper), *arguments), cwd=work, environment=self.environment | {"EXIT": code})

    def calls(self) -> list[list[str]]:
        """Return what zig was asked, in order, without what is always there."""
        maps = [f"-ffile-prefix-map={self.environment[name]}=." for name in ("ORTRIM_SOURCES", "ORTRIM_BUILD")]
        start = ["-target", "x86_64-linux-gnu.2.28", *maps]
        calls = [json.loads(line) for line in (self.folder / "record").read_text().splitlines()]
        assert all(call[1 : 1 + len(start)] == start for call in calls)
        return [[call[0], *call[1 + len(start) :]] for call in calls]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Make the folders."""
    return Bench(tmp_path)


@pytest.mark.parametrize(("wrapper", "language"), [("cc", "cc"), ("c++", "c++")])
def test_a_trial_is_first_linked_without_the_library(bench: Bench, wrapper: str, language: str) -> None:
    """Nor with the sanitizer; what zig says arrives where it was said."""
    done = bench.call(wrapper, "a.o", "-o", "trial")
    assert (done.returncode, done.stdout, done.stderr) == (0, "to stdout\n", "a warning\n")
    assert bench.calls() == [[language, "a.o", "-o", "trial", "-fno-sanitize=undefined", "-nostdlib++"]]


def test_a_trial_that_needs_the_library_is_linked_as_asked(bench: Bench) -> None:
    """What CMake learns is what it would have learnt."""
    assert bench.call("c++", "needs-c++", "-o", "trial").returncode == 0
    assert bench.calls() == [
        ["c++", "needs-c++", "-o", "trial", "-fno-sanitize=undefined", "-nostdlib++"],
        ["c++", "needs-c++", "-o", "trial", "-fno-sanitize=undefined"],
    ]


def test_a_trial_that_fails_fails(bench: Bench) -> None:
    """The exit code is that of the link as asked."""
    assert bench.call("c++", "a.o", "-o", "trial", code="3").returncode == 3
    assert len(bench.calls()) == 2


@pytest.mark.parametrize("kind", ["-c", "-E", "-S"])
def test_a_trial_that_is_not_linked_is_done_once(bench: Bench, kind: str) -> None:
    """A library is no matter there."""
    assert bench.call("c++", kind, "a.cc", code="1").returncode == 1
    assert bench.calls() == [["c++", kind, "a.cc", "-fno-sanitize=undefined"]]


@pytest.mark.parametrize("where", ["the build", "the build/CMakeFilesOfMine", "CMakeFiles/mine", "."])
def test_what_is_no_trial_is_as_asked(bench: Bench, where: str) -> None:
    """Compiled and linked is in the build folder itself, which may lie anywhere."""
    bench.call("c++", "a.o", "-o", "library.so", where=where)
    assert bench.calls() == [["c++", "a.o", "-o", "library.so"]]
