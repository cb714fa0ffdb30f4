"""The NDK's wrappers and launchers, run by a real shell in front of programs that show what they were given."""

import json
import sys
from pathlib import Path

import pytest

from ortrim.base.command import run
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import Toolchain
from ortrim.platforms.android.ndk import ENVIRONMENT, ndk_toolchain

ANDROID = [name for name in TARGETS if name.startswith("android-")]
COMPILATION = ("-c", "a file.c", "-o", "a.o", '-DNAME="a b"', "", "$HOME", "*")
SHOW = "import json, sys\nprint(json.dumps(sys.argv))\n"
CACHE = (
    "import os, sys\nprint(os.path.basename(sys.argv[0]))\nsys.stdout.flush()\nos.execv(sys.argv[1], sys.argv[1:])\n"
)


class Bench:
    """Folders with blanks in their names: an NDK's programs that print their arguments, and the wrappers of a job."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "the ndk"
        self.wrappers = folder / "the wrappers"
        for name in ENVIRONMENT.values():
            self.program(self.programs / name, SHOW)
        self.program(folder / "ccache", CACHE)
        self.cache = folder / "ccache"
        toolchain = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, "27.2.12479018")
        for name, text in toolchain.wrappers:
            self.program(self.wrappers / name, text)
        self.environment = {"PATH": "/usr/bin:/bin", "ORTRIM_SOURCES": "/a b/sources", "ORTRIM_BUILD": "/a b/build"} | {
            variable: str(self.programs / name) for variable, name in ENVIRONMENT.items()
        }

    @staticmethod
    def program(path: Path, text: str) -> None:
        """Write a program; one in Python unless it says itself what it is."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if text.startswith("#!") else f"#!{sys.executable}\n{text}")
        path.chmod(0o755)

    def lines(self, *words: str | Path) -> list[str]:
        """Run a command and return the lines that it prints."""
        done = run([*map(str, words)], environment=self.environment)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Make the folders."""
    return Bench(tmp_path)


def assert_wrapped(bench: Bench, line: str, program: str) -> None:
    """Check what the NDK's compiler was given: its target, the folders to keep out, and the compilation as it was."""
    words: list[str] = json.loads(line)
    assert words[:2] == [str(bench.programs / program), "--target=aarch64-none-linux-android24"]
    maps = words[2 : -len(COMPILATION)]
    assert [word.rpartition("=")[0] for word in maps] == [
        "-ffile-prefix-map=/a b/sources",
        "-ffile-prefix-map=/a b/build",
    ]
    assert words[-len(COMPILATION) :] == list(COMPILATION)


@pytest.mark.parametrize(("wrapper", "program"), [("cc", "clang"), ("c++", "clang++")])
def test_a_wrapper_calls_the_ndks_compiler(bench: Bench, wrapper: str, program: str) -> None:
    """For the target and its level, with the folders' names kept out; all arguments arrive as they were given."""
    (line,) = bench.lines(bench.wrappers / wrapper, *COMPILATION)
    assert_wrapped(bench, line, program)


@pytest.mark.parametrize(("wrapper", "program"), [("cc", "clang"), ("c++", "clang++")])
def test_a_launcher_puts_the_wrapper_in_the_compilers_place(bench: Bench, wrapper: str, program: str) -> None:
    """CMake calls the launcher with the compiler that it chose itself; what runs is the wrapper's call."""
    (line,) = bench.lines(bench.wrappers / f"launch-{wrapper}", bench.programs / program, *COMPILATION)
    assert_wrapped(bench, line, program)


@pytest.mark.parametrize(("wrapper", "program"), [("cc", "clang"), ("c++", "clang++")])
def test_behind_a_compiler_cache_the_wrapper_is_the_compiler(bench: Bench, wrapper: str, program: str) -> None:
    """The cache sees the wrapper, whose text names the NDK's version, as on Linux."""
    command = (bench.wrappers / f"launch-{wrapper}", bench.cache, bench.programs / program, *COMPILATION)
    name, line = bench.lines(*command)
    assert name == "ccache"
    assert_wrapped(bench, line, program)


def test_a_failing_compiler_fails_its_launcher(bench: Bench) -> None:
    bench.program(bench.programs / "clang", "#!/bin/sh\nexit 3\n")
    done = run(
        [bench.wrappers / "launch-cc", bench.cache, "/ndk/bin/clang", "-c", "a.c"], environment=bench.environment
    )
    assert done.returncode == 3


@pytest.mark.parametrize("name", ["ar", "ranlib", "objcopy"])
def test_other_tools_are_the_ndks_own(bench: Bench, name: str) -> None:
    (line,) = bench.lines(bench.wrappers / name, "rc", "a b.a")
    assert json.loads(line) == [str(bench.programs / f"llvm-{name}"), "rc", "a b.a"]


def toolchains() -> list[Toolchain]:
    return [
        ndk_toolchain(TARGETS[target], api, version)
        for target in ANDROID
        for api in (24, 30)
        for version in ("27.2.12479018", "28.0.13004108")
    ]


def test_the_compiler_of_each_abi_level_and_version_is_another_one() -> None:
    """The text of a wrapper is what the compiler cache goes by."""
    made = toolchains()
    assert len({dict(toolchain.wrappers)["cc"] for toolchain in made}) == len(made)
    assert {toolchain.kind for toolchain in made} == {"ndk"}
