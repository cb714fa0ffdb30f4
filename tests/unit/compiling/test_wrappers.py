"""The wrappers, run by a real shell in front of a compiler that shows what it was given."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortrim.base.command import Completed, run
from ortrim.buildspec.targets import CPUS, TARGETS, Architecture, minimum_glibc
from ortrim.compiling.toolchains import ARM64_FEATURES, RUNTIME_LICENCES, compiler_wrapper, tool_wrapper, zig_toolchain

ORDINARY = ("-c", "a.cc", "-o", "a.o")
AWKWARD = (
    '-DNAME="a b"', "it's", "", "a  b", "$HOME", "`date`", "*", "-Wl,--print-map-not", "\\", "a\nb", "--", "ü", "-e",
)  # fmt: skip


class Bench:
    """A folder with a fake compiler that prints its arguments as JSON, and wrappers in front of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        compiler = folder / "a compiler"
        compiler.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
        compiler.chmod(0o755)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "ORTRIM_COMPILER_C": str(compiler),
            "ORTRIM_COMPILER_CXX": str(compiler),
            "ORTRIM_AR": str(compiler),
            "ORTRIM_RANLIB": str(compiler),
            "ORTRIM_SOURCES": "/a folder/sources",
            "ORTRIM_BUILD": "/a folder/build",
            "ORTRIM_LINK_MAP": str(folder / "link map"),
        }

    def call(self, text: str, *arguments: str) -> Completed:
        """Run a wrapper of this text."""
        wrapper = self.folder / "wrapper"
        wrapper.write_text(text, encoding="utf-8")
        wrapper.chmod(0o755)
        return run((wrapper, *arguments), environment=self.environment)

    def given(self, text: str, *arguments: str) -> list[str]:
        """Return what the compiler behind a wrapper was given."""
        done = self.call(text, *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        words: list[str] = json.loads(done.stdout)
        return words


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Make the folder."""
    return Bench(tmp_path)


PREFIXES = ["-ffile-prefix-map=/a folder/sources=.", "-ffile-prefix-map=/a folder/build=."]


def text_of(target: str, name: str, cpu: str | None = None) -> str:
    """Return a wrapper of the zig toolchain."""
    glibc = minimum_glibc(TARGETS[target], "2.28")
    return dict(zig_toolchain(TARGETS[target], glibc, "0.17.0", cpu).wrappers)[name]


@pytest.mark.parametrize("arguments", [ORDINARY, AWKWARD, ()])
def test_arguments_arrive_as_they_were_given(bench: Bench, arguments: tuple[str, ...]) -> None:
    """Spaces, quotes, empty words and what a shell would expand pass through, behind the folders' names."""
    start = ["cc", "-target", "x86_64-linux-gnu.2.28", *PREFIXES]
    assert bench.given(text_of("linux-x64", "cc"), *arguments) == [*start, *arguments]
    assert bench.given(text_of("linux-x64", "c++"), *arguments)[0] == "c++"


def test_arm64_features_are_spelt_as_zig_wants_them(bench: Bench) -> None:
    """Each refused `-march` becomes its `-mcpu`, in its place; all other words stay, awkward ones too."""
    for old, features in ARM64_FEATURES:
        words = bench.given(text_of("linux-arm64", "c++"), "a b", old, *AWKWARD)
        assert words[5:] == ["a b", f"-mcpu=generic{features}", *AWKWARD]
    assert bench.given(text_of("linux-arm64", "cc"), "-march=armv8-a")[-1] == "-march=armv8-a"
    assert bench.given(text_of("linux-x64", "cc"), ARM64_FEATURES[0][0])[-1] == ARM64_FEATURES[0][0]


def test_a_baseline_holds_for_every_file_and_single_files_add_to_it(bench: Bench) -> None:
    """The baseline comes first; what upstream adds for one file comes on top of it, so that it takes nothing away."""
    text = text_of("linux-arm64", "c++", "cortex-a76")
    assert bench.given(text, *ORDINARY)[:4] == ["c++", "-target", "aarch64-linux-gnu.2.28", "-mcpu=cortex_a76-aes-sha2"]
    assert bench.given(text, ARM64_FEATURES[0][0])[-1] == "-mcpu=cortex_a76-aes-sha2+v8_2a+fullfp16"


def test_every_baseline_for_arm_has_neon_and_none_has_optional_cryptography(bench: Bench) -> None:
    """NEON is part of the target, whichever processor; boards such as the Raspberry Pi lack the cryptography."""
    for cpu in (None, *CPUS[Architecture.ARM]):
        baseline = bench.given(text_of("linux-armhf", "cc", cpu), *ORDINARY)[3]
        assert baseline.endswith(("+neon", "-aes-sha2"))
    for cpu in CPUS[Architecture.ARM64]:
        assert bench.given(text_of("linux-arm64", "cc", cpu), *ORDINARY)[3].endswith("-aes-sha2")


def test_armv7_gets_its_neon_from_the_floor(bench: Bench) -> None:
    """The flag `-mfpu` that upstream adds for ARMv7 is left out, and nothing else with it."""
    words = bench.given(text_of("linux-armhf", "c++"), "-mfpu=neon", *AWKWARD, "-mfpu=neon")
    assert words[-len(AWKWARD) :] == list(AWKWARD)
    assert "-mfpu=neon" not in words


@pytest.mark.parametrize(
    ("target", "triple"),
    [
        ("linux-x64", "x86_64-linux-gnu.2.28"),
        ("linux-arm64", "aarch64-linux-gnu.2.28"),
        ("linux-armhf", "arm-linux-gnueabihf.2.28"),
        ("linux-riscv64", "riscv64-linux-gnu.2.28"),
        ("linux-arm64-musl", "aarch64-linux-musl"),
    ],
)
def test_the_triple_is_zigs_word_for_the_target(bench: Bench, target: str, triple: str) -> None:
    """Machine, C library with its version, and for ARMv7 the hard-float calling convention."""
    assert bench.given(text_of(target, "cc"), *ORDINARY)[1:3] == ["-target", triple]


def test_an_unknown_baseline_is_no_toolchain() -> None:
    """Buildspecs are checked before; whoever comes another way is stopped all the same."""
    with pytest.raises(KeyError, match="z80"):
        text_of("linux-x64", "cc", "z80")


def test_a_map_goes_to_its_own_file(bench: Bench) -> None:
    """A linker that is asked for a map prints it; build.py's log must not be full of it."""
    done = bench.call(text_of("linux-x64", "c++"), "-shared", "-Wl,--print-map", "a.o")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((bench.folder / "link map").read_text())[-2:] == ["-Wl,--print-map", "a.o"]


@pytest.mark.parametrize("arguments", [("-Wl,--print-map",), ("a", "-Wl,--print-map")])
def test_the_map_is_asked_for_anywhere_in_the_line(bench: Bench, arguments: tuple[str, ...]) -> None:
    """First and last word count as well."""
    assert bench.call(text_of("linux-arm64", "c++"), *arguments).stdout == ""


def test_without_a_map_no_file_is_made(bench: Bench) -> None:
    """A compilation leaves the map of the linking alone, even with a word that only looks like the option."""
    bench.given(text_of("linux-x64", "c++"), *AWKWARD)
    assert not (bench.folder / "link map").exists()


def test_the_compilers_exit_code_is_the_wrappers(bench: Bench) -> None:
    """A failed compilation is not a success."""
    (bench.folder / "a compiler").write_text("#!/bin/sh\nexit 3\n")
    assert bench.call(text_of("linux-x64", "cc"), *ORDINARY).returncode == 3


@pytest.mark.parametrize("name", ["ar", "ranlib"])
def test_archivers_take_arguments_as_they_are(bench: Bench, name: str) -> None:
    """No prefix maps: they are the compiler's."""
    assert bench.given(text_of("linux-arm64", name), "qc", "a b.a", *AWKWARD) == [name, "qc", "a b.a", *AWKWARD]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)))
def test_any_words_pass_the_rewriting(bench: Bench, arguments: list[str]) -> None:
    """Whatever a build system comes up with arrives, word for word."""
    text = compiler_wrapper("any", '"$ORTRIM_COMPILER_C"', (("-march=old", "-mcpu=new"),))
    assert bench.given(text, *arguments) == [*PREFIXES, *arguments]


def test_wrappers_name_their_compiler(bench: Bench) -> None:
    """The compiler cache keys on the wrapper's text, so that another compiler or glibc must have another."""
    texts = {compiler_wrapper("zig 1", "x"), compiler_wrapper("zig 2", "x"), tool_wrapper("zig 1", "x")}
    assert len(texts) == 3
    assert text_of("linux-x64", "cc") != text_of("linux-arm64", "cc")
    older = dict(zig_toolchain(TARGETS["linux-x64"], "2.17", "0.17.0").wrappers)["cc"]
    assert older != text_of("linux-x64", "cc")


@pytest.mark.parametrize("kind", RUNTIME_LICENCES)
def test_what_a_compiler_links_in_has_a_licence(kind: str) -> None:
    """Each text is named by its place among the tool packages, never outside."""
    for component, licence, text in RUNTIME_LICENCES[kind]:
        assert component
        assert licence
        assert text.startswith("ziglang/")
        assert ".." not in text
