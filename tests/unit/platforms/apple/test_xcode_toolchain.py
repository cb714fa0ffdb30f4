"""Xcode's wrappers, run by a real shell in front of programs that show what they were given."""

import json
import sys
from pathlib import Path

import pytest

from ortrim.base.command import run
from ortrim.buildspec.targets import TARGETS
from ortrim.platforms.apple.xcode import ENVIRONMENT, apple_triple, xcode_toolchain

SHOW = "import json, sys\nprint(json.dumps(sys.argv))\n"
COMPILATION = ("-c", "a file.c", "-o", "a.o", '-DNAME="a b"', "", "$HOME", "*")


class Bench:
    """Folders with blanks in their names: programs that print their arguments, and the wrappers of a job."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.wrappers = folder / "the tools", folder / "the wrappers"
        self.build = folder / "the build"
        self.build.mkdir()
        for name in (*ENVIRONMENT.values(), "codesign"):
            self.program(self.programs / name, SHOW)
        for name, text in xcode_toolchain(TARGETS["ios-simulator-arm64"], "15.1", "16.4").wrappers:
            self.program(self.wrappers / name, text)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "ORTRIM_SOURCES": "/a b/sources",
            "ORTRIM_BUILD": str(self.build),
            "ORTRIM_SDK": "/a b/iPhoneSimulator.sdk",
            "ORTRIM_CODESIGN": str(self.programs / "codesign"),
            **{variable: str(self.programs / name) for variable, name in ENVIRONMENT.items()},
        }

    @staticmethod
    def program(path: Path, text: str) -> None:
        """Write a program; one in Python unless it says itself what it is."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if text.startswith("#!") else f"#!{sys.executable}\n{text}")
        path.chmod(0o755)

    def given(self, wrapper: str, *words: str) -> list[str]:
        """Run a wrapper and return what the program behind it was given, its own name first."""
        done = run([str(self.wrappers / wrapper), *words], environment=self.environment)
        assert (done.returncode, done.stderr) == (0, "")
        found: list[str] = json.loads(done.stdout)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Make the folders."""
    return Bench(tmp_path)


@pytest.mark.parametrize(("wrapper", "program"), [("cc", "clang"), ("c++", "clang++")])
def test_a_wrapper_calls_apples_compiler(bench: Bench, wrapper: str, program: str) -> None:
    """For the target and its oldest system, with the SDK of the plan; all arguments arrive as they were given."""
    words = bench.given(wrapper, *COMPILATION)
    target = ["-target", "arm64-apple-ios15.1-simulator", "-isysroot", "/a b/iPhoneSimulator.sdk"]
    assert words[:5] == [str(bench.programs / program), *target]
    assert "-ffile-prefix-map=/a b/sources=." in words
    assert words[-len(COMPILATION) :] == list(COMPILATION)


@pytest.mark.parametrize("name", ["ar", "ranlib", "strip", "libtool", "dsymutil", "install_name_tool", "codesign"])
def test_other_tools_take_their_arguments_as_they_are(bench: Bench, name: str) -> None:
    """Each by its own name."""
    assert bench.given(name, *COMPILATION) == [str(bench.programs / name), *COMPILATION]


def test_joining_takes_every_static_library_of_the_build(bench: Bench) -> None:
    """In the same order on every machine, with blanks in their names, and linked into an object."""
    (bench.build / "below here").mkdir()
    for name in ("below here/libb.a", "liba.a", "Libc.a", "no.o"):
        (bench.build / name).touch()
    words = bench.given("join", "-o", "a file.o")
    found = sorted(str(bench.build / name) for name in ("Libc.a", "below here/libb.a", "liba.a"))
    assert words[0] == str(bench.programs / "clang++")
    assert words[5:] == ["-r", "-nostdlib", "-o", "a file.o", *found]


@pytest.mark.parametrize(
    ("target", "minimum", "triple"),
    [
        ("ios-arm64", "15.1", "arm64-apple-ios15.1"),
        ("ios-simulator-arm64", "16.0", "arm64-apple-ios16.0-simulator"),
        ("ios-simulator-x86_64", "15.1", "x86_64-apple-ios15.1-simulator"),
        ("macos-arm64", "13.3", "arm64-apple-macosx13.3"),
        ("macos-x86_64", "13.3", "x86_64-apple-macosx13.3"),
        ("maccatalyst-arm64", "14.0", "arm64-apple-ios14.0-macabi"),
    ],
)
def test_the_triple_is_clangs(target: str, minimum: str, triple: str) -> None:
    """Simulators and Mac Catalyst are environments of iOS."""
    assert apple_triple(TARGETS[target], minimum) == triple
    assert xcode_toolchain(TARGETS[target], minimum, "16.4").triple == triple


def test_another_version_or_floor_is_another_toolchain() -> None:
    """What is compiled with one is never taken for what another would make."""
    made = [
        xcode_toolchain(TARGETS["ios-arm64"], *words)
        for words in (("15.1", "16.4"), ("15.1", "16.3"), ("16.0", "16.4"))
    ]
    assert len({each.wrappers for each in made}) == 3
