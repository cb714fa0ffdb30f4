"""Xcode's wrappers, run by a real shell in front of programs that show what they were given."""

from pathlib import Path

import pytest

from ortrim.buildspec.targets import TARGETS
from ortrim.platforms.apple.xcode import ENVIRONMENT, xcode_toolchain
from wrapper_bench import WrapperBench

COMPILATION = ("-c", "a file.c", "-o", "a.o", '-DNAME="a b"', "", "$HOME", "*")


@pytest.fixture
def bench(tmp_path: Path) -> WrapperBench:
    made = WrapperBench(tmp_path, wrappers=xcode_toolchain(TARGETS["ios-simulator-arm64"], "15.1", "16.4").wrappers)
    for variable, name in {**ENVIRONMENT, "ORTRIM_CODESIGN": "codesign"}.items():
        program = made.program(f"a {name}", f"#!/bin/sh\nexec '{tmp_path}/a compiler' {name} \"$@\"\n")
        made.environment[variable] = str(program)
    made.environment["ORTRIM_SDK"] = "/a b/iPhoneSimulator.sdk"
    return made


def words_of(bench: WrapperBench, wrapper: str, *words: str) -> list[str]:
    done = bench.call(wrapper, *words)
    assert (done.returncode, done.stderr) == (0, "")
    (called,) = bench.calls()
    return called


@pytest.mark.parametrize(("wrapper", "program"), [("cc", "clang"), ("c++", "clang++")])
def test_a_wrapper_calls_apples_compiler(bench: WrapperBench, wrapper: str, program: str) -> None:
    """For the target and its oldest system, with the SDK of the plan; all arguments arrive as they were given."""
    words = words_of(bench, wrapper, *COMPILATION)
    target = ["-target", "arm64-apple-ios15.1-simulator", "-isysroot", "/a b/iPhoneSimulator.sdk"]
    assert words[:5] == [program, *target]
    assert bench.maps[0] in words
    assert words[-len(COMPILATION) :] == list(COMPILATION)


@pytest.mark.parametrize("name", ["ar", "ranlib", "strip", "libtool", "dsymutil", "install_name_tool", "codesign"])
def test_other_tools_take_their_arguments_as_they_are(bench: WrapperBench, name: str) -> None:
    """Each by its own name."""
    assert words_of(bench, name, *COMPILATION) == [name, *COMPILATION]


def test_joining_takes_every_static_library_of_the_build(bench: WrapperBench) -> None:
    """In the same order on every machine, with blanks in their names, and linked into an object."""
    (bench.build / "below here").mkdir()
    for name in ("below here/libb.a", "liba.a", "Libc.a", "no.o"):
        (bench.build / name).touch()
    words = words_of(bench, "join", "-o", "a file.o")
    found = sorted(str(bench.build / name) for name in ("Libc.a", "below here/libb.a", "liba.a"))
    assert words[0] == "clang++"
    assert words[5:] == ["-r", "-nostdlib", "-o", "a file.o", *found]


def test_another_version_or_floor_is_another_toolchain() -> None:
    """What is compiled with one is never taken for what another would make."""
    made = [
        xcode_toolchain(TARGETS["ios-arm64"], *words)
        for words in (("15.1", "16.4"), ("15.1", "16.3"), ("16.0", "16.4"))
    ]
    assert len({each.wrappers for each in made}) == 3
