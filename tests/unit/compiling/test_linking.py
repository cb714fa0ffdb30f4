"""Linking past zig's driver, by the wrapper that a real shell runs before a program that plays zig's part."""

import json
import sys
from pathlib import Path

import pytest

from ortrim.base.command import Completed, run
from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.toolchains import ARITHMETIC, zig_toolchain

ZIG = """
import json, os, sys
words = sys.argv[1:]
with open(os.environ["RECORD"], "a") as record:
    record.write(json.dumps(words) + "\\n")
if "-v" in words and not os.environ.get("SILENT"):
    folder = os.environ["LIBRARIES"]
    print("ld.lld -O2 -o " + folder + "/libc.so.6 -soname libc.so.6 " + folder + "/c.o --as-needed", file=sys.stderr)
    print("ld.lld -O2 -s -znow -shared -o ortrim-probe.so --no-undefined-version ortrim-probe.o --as-needed -L/ "
          + folder + "/libc++.a " + folder + "/libcompiler_rt.a " + folder + "/libc.so.6", file=sys.stderr)
elif "-o" in words and words[0] != "ld.lld":
    open(words[words.index("-o") + 1], "w").close()
sys.exit(int(os.environ.get("EXIT", "0")) if words[0] == "ld.lld" else 0)
"""
OBJECTS = ("-fPIC", "-Os", "-DNDEBUG", "-shared", "-Wl,-soname,lib.so.1", "-o", "a lib.so", "a.o", "b c.o", "-ldl")


class Bench:
    """The wrapper in front of a zig that records what it is asked and answers a probe."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "the work"
        self.work.mkdir()
        zig = folder / "a zig"
        zig.write_text(f"#!{sys.executable} -S\n{ZIG}")
        zig.chmod(0o755)
        self.libraries = folder / "its cache"
        self.wrapper = folder / "c++"
        self.wrapper.write_text(dict(zig_toolchain(TARGETS["linux-x64"], "2.28", "0.17.0").wrappers)["c++"])
        self.wrapper.chmod(0o755)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "ORTRIM_COMPILER_CXX": str(zig),
            "ORTRIM_SOURCES": "/sources",
            "ORTRIM_BUILD": str(self.work),
            "LIBRARIES": str(self.libraries),
            "RECORD": str(folder / "record"),
        }

    def call(self, *arguments: str, **environment: str) -> Completed:
        """Link."""
        command = (str(self.wrapper), *arguments)
        return run(command, cwd=self.work, environment=self.environment | environment)

    def calls(self) -> list[list[str]]:
        """Return what zig was asked, in order."""
        return [json.loads(line) for line in Path(self.environment["RECORD"]).read_text().splitlines()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Make the folders."""
    return Bench(tmp_path)


def test_folding_reaches_the_linker(bench: Bench) -> None:
    """Between zig's own head and tail stand the linker's words, one by one, and the objects in their order."""
    assert bench.call(PAST_DRIVER, "-Wl,--icf=all", *OBJECTS).returncode == 0
    assert bench.calls()[-1] == [
        *("ld.lld", "-O2", "-znow", "-shared", "--no-undefined-version", "--icf=all", "-shared"),
        *("-soname", "lib.so.1", "-o", "a lib.so"),
        *("a.o", "b c.o", "--as-needed", "-L/", f"{bench.libraries}/libc++.a"),
        *("compiler_rt.o", f"{bench.libraries}/libcompiler_rt.a", f"{bench.libraries}/libc.so.6"),
    ]
    assert list(bench.work.iterdir()) == []


def test_the_runtimes_arithmetic_comes_first(bench: Bench) -> None:
    """By itself, from the very archive of the link; of its copies of the C library's functions none is asked for."""
    bench.call(PAST_DRIVER, "-Wl,--icf=all", *OBJECTS)
    *_, words, _ = bench.calls()
    assert words[:4] == ["ld.lld", "-r", "--gc-sections", "--strip-debug"]
    assert words[-3:] == [f"{bench.libraries}/libcompiler_rt.a", "-o", "compiler_rt.o"]
    assert [words[place + 1] for place, word in enumerate(words) if word == "-u"] == list(ARITHMETIC)


def test_other_links_are_the_drivers(bench: Bench) -> None:
    """Nothing is probed for them."""
    assert bench.call(*OBJECTS).returncode == 0
    (words,) = bench.calls()
    assert words[0] == "c++"
    assert tuple(words[-len(OBJECTS) :]) == OBJECTS


@pytest.mark.parametrize("asked", [True, False])
def test_the_probe_goes_without_the_cpp_library_when_the_link_does(bench: Bench, asked: bool) -> None:  # noqa: FBT001
    """Then zig does not compile one that nothing takes."""
    bench.call(PAST_DRIVER, "-Wl,--icf=all", *OBJECTS, *(("-nostdlib++",) if asked else ()))
    *_, probe, _, link = bench.calls()
    assert ("-nostdlib++" in probe) == asked
    assert "-nostdlib++" not in link


def test_a_zig_that_does_not_say_how_it_links_fails_the_link(bench: Bench) -> None:
    """In words, and without calling the linker on half a line."""
    done = bench.call(PAST_DRIVER, "-Wl,--icf=all", *OBJECTS, SILENT="1")
    assert done.returncode == 1
    assert "zig does not say how it links" in done.stderr
    assert not [words for words in bench.calls() if words[0] == "ld.lld"]
    assert list(bench.work.iterdir()) == []


def test_the_linkers_exit_code_is_passed_on(bench: Bench) -> None:
    """The build stops where it should."""
    assert bench.call(PAST_DRIVER, "-Wl,--icf=all", *OBJECTS, EXIT="3").returncode == 3
