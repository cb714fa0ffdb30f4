"""The precompiled header, by the wrappers that a real shell runs in front of a compiler that records its arguments."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.toolchains import PRECOMPILED_MARK, compiler_wrapper, zig_toolchain
from wrapper_bench import WrapperBench

COMPILER = """
import time
making = "c++-header" in words
exit_code = int(os.environ.get("FAILING_HEADER", "0")) if making else int(os.environ.get("FAILING_SOURCE", "0"))
if "-include-pch" in words:
    with open(words[words.index("-include-pch") + 1]) as header:
        assert header.read() == "whole header"
if "-o" in words and not exit_code:
    with open(words[words.index("-o") + 1], "w") as output:
        output.write("whole ")
        output.flush()
        time.sleep(float(os.environ.get("SLOWNESS", "0")))
        output.write("header" if making else "object")
sys.exit(exit_code)
"""
FLAGS = ('-DNAME="a b"', "-I/a folder/include", "-isystem", "/a folder/system", "-UNAME", "-Os",
         "-std=gnu++20", "-fno-rtti", "-Wall", "-m64", "-g0",
         "--target=x86_64-none-linux-android24", "--sysroot=/a folder/sysroot")  # fmt: skip
OTHERS = ("-MD", "-MT", "a b.o", "-MF", "a b.o.d")
SOURCE = ("-o", "a b.o", "-c", "/a folder/a b.cc")
COLD = f"{PRECOMPILED_MARK}common-cold"
MARKED = (COLD, *FLAGS, *OTHERS, *SOURCE)


class Bench(WrapperBench):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, COMPILER, [("wrapper", CXX)])
        self.header = self.build / "precompiled-common-cold.pch"
        self.environment["ORTRIM_PRECOMPILED_HEADERS"] = str(folder / "the hooks" / "precompiled")

    def start(self, *words: str) -> list[str]:
        return [*words, *self.maps]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def text_of(name: str, target: str = "linux-x64") -> str:
    return dict(zig_toolchain(TARGETS[target], "2.28", "0.17.0").wrappers)[name]


CXX = text_of("c++")
ZIG = ("c++", "-target", "x86_64-linux-gnu.2.28")


def test_the_first_marked_source_makes_the_header(bench: Bench) -> None:
    """Only flags that change what a header means go into it; the source is compiled with it, all words kept."""
    making, compiling = bench.given(CXX, *MARKED)
    own = [*bench.start(*ZIG), COLD, *FLAGS]
    header = ["-x", "c++-header", str(bench.folder / "the hooks" / "precompiled" / "common.h"), "-o"]
    assert making[: len(own)] == own
    assert making[-len(header) - 1 : -1] == header
    assert making[len(own) : -len(header) - 1] == ["-Xclang", "-fno-pch-timestamp", "-fpch-instantiate-templates"]
    assert compiling == [*bench.start(*ZIG), "-include-pch", str(bench.header), *MARKED]
    assert bench.header.read_text() == "whole header"
    assert sorted(path.name for path in bench.build.iterdir()) == ["a b.o", "precompiled-common-cold.pch"]


def test_the_header_is_made_once(bench: Bench) -> None:
    bench.given(CXX, *MARKED)
    bench.header.write_text("whole header")
    (compiling,) = bench.given(CXX, *MARKED)
    assert compiling[len(bench.start(*ZIG)) :][:2] == ["-include-pch", str(bench.header)]


@pytest.mark.parametrize(
    "words",
    [
        (*FLAGS, *OTHERS, *SOURCE),
        ("-DORTRIM_PRECOMPILED_HEADERS", *SOURCE),
        ("-DNAME=-DORTRIM_PRECOMPILED=mlas-1", *SOURCE),
        ("-UORTRIM_PRECOMPILED", *SOURCE),
        ("-shared", "-o", "lib.so", "a.o"),
        (),
    ],
)
def test_unmarked_sources_go_without(bench: Bench, words: tuple[str, ...]) -> None:
    """Other libraries, links, and words that only look like the mark: the compiler is called as it was."""
    assert bench.given(CXX, *words) == [[*bench.start(*ZIG), *words]]
    assert not bench.header.exists()


def test_each_kind_has_a_header_of_its_own(bench: Bench) -> None:
    bench.given(CXX, *MARKED)
    hot = (f"{PRECOMPILED_MARK}mlas-7f", *FLAGS, "-O2", *OTHERS, *SOURCE)
    making, compiling = bench.given(CXX, *hot)
    assert "-O2" in making
    assert str(bench.folder / "the hooks" / "precompiled" / "mlas.h") in making
    assert compiling == [*bench.start(*ZIG), "-include-pch", str(bench.build / "precompiled-mlas-7f.pch"), *hot]


def test_sources_with_threads_have_a_header_of_their_own(bench: Bench) -> None:
    """Clang refuses one that was made without: of sources for bionic, some say that they have threads."""
    bench.given(CXX, *MARKED)
    making, compiling = bench.given(CXX, "-pthread", *MARKED)
    assert "-pthread" in making
    assert str(bench.folder / "the hooks" / "precompiled" / "common.h") in making
    own = str(bench.build / "precompiled-common-cold-pthread.pch")
    assert compiling == [*bench.start(*ZIG), "-include-pch", own, "-pthread", *MARKED]


@pytest.mark.parametrize("words", [("-E", *MARKED), (*MARKED, "-E"), (*FLAGS, "-E", COLD, *SOURCE)])
def test_preprocessing_goes_without(bench: Bench, words: tuple[str, ...]) -> None:
    """The compiler cache keys on the whole text; it sees no header that is hidden in a binary file, or makes one."""
    assert bench.given(CXX, *words) == [[*bench.start(*ZIG), *words]]
    assert not bench.header.exists()
    bench.header.write_text("whole header")
    assert bench.given(CXX, *words) == [[*bench.start(*ZIG), *words]]


def test_c_sources_go_without(bench: Bench) -> None:
    assert bench.given(text_of("cc"), *MARKED) == [[*bench.start("cc", *ZIG[1:]), *MARKED]]
    assert not bench.header.exists()


def test_a_header_that_does_not_compile_fails_the_compilation(bench: Bench) -> None:
    """The exit code is passed on, the source is not compiled without it, nothing is left that a later call believes."""
    for _ in range(2):
        assert bench.call("wrapper", *MARKED, FAILING_HEADER="3").returncode == 3
        (making,) = bench.calls()
        assert "c++-header" in making
        assert list(bench.build.iterdir()) == []
    assert len(bench.given(CXX, *MARKED)) == 2


def test_a_source_that_does_not_compile_keeps_the_header(bench: Bench) -> None:
    assert bench.call("wrapper", *MARKED, FAILING_SOURCE="4").returncode == 4
    assert bench.header.read_text() == "whole header"
    bench.calls()
    assert len(bench.given(CXX, *MARKED)) == 1


def test_sources_that_come_at_once_never_see_half_a_header(bench: Bench) -> None:
    """Each may make it; whoever reads it reads all of it, and no temporary file stays."""
    bench.call("wrapper")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: bench.call("wrapper", *MARKED[:-3], f"{n}.o", SLOWNESS="0.2"), range(4)))
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 4
    assert bench.header.read_text() == "whole header"
    assert not [path for path in bench.build.iterdir() if path.suffix not in {".pch", ".o"}]


def test_arm64_features_are_spelt_for_the_header_too(bench: Bench) -> None:
    """The header is made for the processor that its sources are compiled for."""
    text = text_of("c++", "linux-arm64")
    making, compiling = bench.given(text, "-march=armv8.2-a+fp16", COLD, *SOURCE)
    assert "-mcpu=generic+v8_2a+fullfp16" in making
    assert "-mcpu=generic+v8_2a+fullfp16" in compiling
    assert not [word for word in (*making, *compiling) if word.startswith("-march")]


def test_a_compiler_that_cannot_precompile_ignores_the_mark(bench: Bench) -> None:
    text = compiler_wrapper("gcc 12", '"$ORTRIM_COMPILER_CXX"')
    assert bench.given(text, *MARKED) == [[*bench.start(), *MARKED]]


WITH_MEANING = ("-E", "-o", "-O", "-march", "-mcpu")  # what the wrapper looks for or spells anew


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)),
    marked=st.booleans(),
)
def test_any_words_reach_the_compiler_behind_the_header(
    bench: Bench, words: list[str], marked: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    bench.header.write_text("whole header")
    bench.calls()
    assume(not any(word.startswith(WITH_MEANING) for word in words))
    wanted = [*([COLD] if marked else []), *words]
    (given_words,) = bench.given(CXX, *wanted)
    assert given_words == [*bench.start(*ZIG), *(["-include-pch", str(bench.header)] if marked else []), *wanted]
