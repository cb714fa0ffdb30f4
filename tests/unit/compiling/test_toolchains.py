"""The wrappers, run by a real shell in front of a compiler that shows what it was given."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortrim.base.command import Completed, run
from ortrim.buildspec.build_options import PAST_DRIVER, PROFILES
from ortrim.buildspec.targets import CPUS, TARGETS, Architecture, minimum_glibc
from ortrim.compiling.toolchains import (
    ARM64_FEATURES,
    RUNTIME_LICENCES,
    compiler_wrapper,
    system_toolchain,
    tool_wrapper,
    zig_toolchain,
)
from ortrim.errors import ToolError
from program_files import write_program
from refusing import refused
from wrapper_bench import WrapperBench

ORDINARY = ("-c", "a.cc", "-o", "a.o")
AWKWARD = (
    '-DNAME="a b"', "it's", "", "a  b", "$HOME", "`date`", "*", "-Wl,--print-map-not", "\\", "a\nb", "--", "ü", "-e",
)  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> WrapperBench:
    return WrapperBench(tmp_path, "print(json.dumps(words))")


def words_of(bench: WrapperBench, text: str, *arguments: str) -> list[str]:
    (words,) = bench.given(text, *arguments)
    return words


def text_of(target: str, name: str, cpu: str | None = None) -> str:
    glibc = minimum_glibc(TARGETS[target], "2.28")
    return dict(zig_toolchain(TARGETS[target], glibc, "0.17.0", cpu).wrappers)[name]


@pytest.mark.parametrize("arguments", [ORDINARY, AWKWARD, ()])
def test_arguments_arrive_as_they_were_given(bench: WrapperBench, arguments: tuple[str, ...]) -> None:
    start = ["cc", "-target", "x86_64-linux-gnu.2.28", *bench.maps]
    assert words_of(bench, text_of("linux-x64", "cc"), *arguments) == [*start, *arguments]
    assert words_of(bench, text_of("linux-x64", "c++"), *arguments)[0] == "c++"


def test_arm64_features_are_spelt_as_zig_wants_them(bench: WrapperBench) -> None:
    """Each refused `-march` becomes its `-mcpu`, in its place; all other words stay, awkward ones too."""
    for old, features in ARM64_FEATURES:
        words = words_of(bench, text_of("linux-arm64", "c++"), "a b", old, *AWKWARD)
        assert words[5:] == ["a b", f"-mcpu=generic{features}", *AWKWARD]
    assert words_of(bench, text_of("linux-arm64", "cc"), "-march=armv8-a")[-1] == "-march=armv8-a"
    assert words_of(bench, text_of("linux-x64", "cc"), ARM64_FEATURES[0][0])[-1] == ARM64_FEATURES[0][0]


def test_a_baseline_holds_for_every_file_and_single_files_add_to_it(bench: WrapperBench) -> None:
    text = text_of("linux-arm64", "c++", "cortex-a76")
    assert words_of(bench, text, *ORDINARY)[:4] == [
        "c++",
        "-target",
        "aarch64-linux-gnu.2.28",
        "-mcpu=cortex_a76-aes-sha2",
    ]
    assert words_of(bench, text, ARM64_FEATURES[0][0])[-1] == "-mcpu=cortex_a76-aes-sha2+v8_2a+fullfp16"


def test_every_baseline_for_arm_has_neon_and_none_has_optional_cryptography(bench: WrapperBench) -> None:
    for cpu in (None, *CPUS[Architecture.ARM]):
        baseline = words_of(bench, text_of("linux-armhf", "cc", cpu), *ORDINARY)[3]
        assert baseline.endswith(("+neon", "-aes-sha2"))
    for cpu in CPUS[Architecture.ARM64]:
        assert words_of(bench, text_of("linux-arm64", "cc", cpu), *ORDINARY)[3].endswith("-aes-sha2")


def test_armv7_gets_its_neon_from_the_floor(bench: WrapperBench) -> None:
    words = words_of(bench, text_of("linux-armhf", "c++"), "-mfpu=neon", *AWKWARD, "-mfpu=neon")
    assert words[-len(AWKWARD) :] == list(AWKWARD)
    assert "-mfpu=neon" not in words


def test_a_map_goes_to_its_own_file(bench: WrapperBench) -> None:
    """A linker that is asked for a map prints it; build.py's log must not be full of it."""
    bench.program("wrapper", text_of("linux-x64", "c++"))
    done = bench.call("wrapper", "-shared", "-Wl,--print-map", "a.o")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((bench.folder / "link map").read_text())[-2:] == ["-Wl,--print-map", "a.o"]


@pytest.mark.parametrize("arguments", [("-Wl,--print-map",), ("a", "-Wl,--print-map")])
def test_the_map_is_asked_for_anywhere_in_the_line(bench: WrapperBench, arguments: tuple[str, ...]) -> None:
    bench.program("wrapper", text_of("linux-arm64", "c++"))
    assert bench.call("wrapper", *arguments).stdout == ""


def test_without_a_map_no_file_is_made(bench: WrapperBench) -> None:
    """A compilation leaves the map of the linking alone, even with a word that only looks like the option."""
    words_of(bench, text_of("linux-x64", "c++"), *AWKWARD)
    assert not (bench.folder / "link map").exists()


def test_the_compilers_exit_code_is_the_wrappers(bench: WrapperBench) -> None:
    (bench.folder / "a compiler").write_text("#!/bin/sh\nexit 3\n")
    bench.program("wrapper", text_of("linux-x64", "cc"))
    assert bench.call("wrapper", *ORDINARY).returncode == 3


@pytest.mark.parametrize("name", ["ar", "ranlib"])
def test_archivers_take_arguments_as_they_are(bench: WrapperBench, name: str) -> None:
    assert words_of(bench, text_of("linux-arm64", name), "qc", "a b.a", *AWKWARD) == [name, "qc", "a b.a", *AWKWARD]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)))
def test_any_words_pass_the_rewriting(bench: WrapperBench, arguments: list[str]) -> None:
    text = compiler_wrapper("any", '"$ORTRIM_COMPILER_C"', (("-march=old", "-mcpu=new"),))
    assert words_of(bench, text, *arguments) == [*bench.maps, *arguments]


def test_wrappers_name_their_compiler(bench: WrapperBench) -> None:
    texts = {compiler_wrapper("zig 1", "x"), compiler_wrapper("zig 2", "x"), tool_wrapper("zig 1", "x")}
    assert len(texts) == 3
    assert text_of("linux-x64", "cc") != text_of("linux-arm64", "cc")
    older = dict(zig_toolchain(TARGETS["linux-x64"], "2.17", "0.17.0").wrappers)["cc"]
    assert older != text_of("linux-x64", "cc")


@pytest.mark.parametrize("kind", RUNTIME_LICENCES)
def test_what_a_compiler_links_in_has_a_licence(kind: str) -> None:
    for component, licence, text in RUNTIME_LICENCES[kind]:
        assert component
        assert licence
        assert text.startswith("ziglang/")
        assert ".." not in text


ZIG = """
print("to stdout")
print("a warning", file=sys.stderr)
sys.exit(1 if "needs-c++" in words and "-nostdlib++" in words else int(os.environ.get("EXIT", "0")))
"""
TRIAL = "the build/CMakeFiles/CMakeScratch/trial"
TRIAL_WORDS = ("-fno-sanitize=undefined", "-Os", "-s", "-fasynchronous-unwind-tables")
LINUX = zig_toolchain(TARGETS["linux-x64"], "2.28", "0.17.0")


class TrialBench(WrapperBench):
    """The wrappers in front of a zig that cannot link one program without libc++."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ZIG, LINUX.wrappers)

    def trial(self, wrapper: str, *arguments: str, where: str = TRIAL, code: str = "0") -> Completed:
        return self.call(wrapper, *arguments, where=where, EXIT=code)

    def trials(self) -> list[list[str]]:
        start, calls = ["-target", LINUX.triple, *self.maps], self.calls()
        assert all(call[1 : 1 + len(start)] == start for call in calls)
        return [[call[0], *call[1 + len(start) :]] for call in calls]


@pytest.fixture
def trials(tmp_path: Path) -> TrialBench:
    return TrialBench(tmp_path)


@pytest.mark.parametrize(("wrapper", "language"), [("cc", "cc"), ("c++", "c++")])
def test_a_trial_is_first_linked_without_the_library(trials: TrialBench, wrapper: str, language: str) -> None:
    """Nor with the sanitizer, and with the library's runtime; what zig says arrives where it was said."""
    done = trials.trial(wrapper, "a.o", "-o", "trial")
    assert (done.returncode, done.stdout, done.stderr) == (0, "to stdout\n", "a warning\n")
    assert trials.trials() == [[language, "a.o", "-o", "trial", *TRIAL_WORDS, "-nostdlib++"]]


def test_a_trial_that_needs_the_library_is_linked_as_asked(trials: TrialBench) -> None:
    assert trials.trial("c++", "needs-c++", "-o", "trial").returncode == 0
    assert trials.trials() == [
        ["c++", "needs-c++", "-o", "trial", *TRIAL_WORDS, "-nostdlib++"],
        ["c++", "needs-c++", "-o", "trial", *TRIAL_WORDS],
    ]


def test_a_trial_that_fails_fails(trials: TrialBench) -> None:
    assert trials.trial("c++", "a.o", "-o", "trial", code="3").returncode == 3
    assert len(trials.trials()) == 2


@pytest.mark.parametrize("kind", ["-c", "-E", "-S"])
def test_a_trial_that_is_not_linked_is_done_once(trials: TrialBench, kind: str) -> None:
    assert trials.trial("c++", kind, "a.cc", code="1").returncode == 1
    assert trials.trials() == [["c++", kind, "a.cc", "-fno-sanitize=undefined"]]


@pytest.mark.parametrize("where", ["the build", "the build/CMakeFilesOfMine", "CMakeFiles/mine", "."])
def test_what_is_no_trial_is_as_asked(trials: TrialBench, where: str) -> None:
    """Compiled and linked is in the build folder itself, which may lie anywhere."""
    trials.trial("c++", "a.o", "-o", "library.so", where=where)
    assert trials.trials() == [["c++", "a.o", "-o", "library.so"]]


LINKING_ZIG = """
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


@pytest.fixture
def links(tmp_path: Path) -> WrapperBench:
    made = WrapperBench(tmp_path, LINKING_ZIG, LINUX.wrappers)
    made.environment["LIBRARIES"] = str(tmp_path / "its cache")
    return made


def test_folding_reaches_the_linker(links: WrapperBench) -> None:
    """Between zig's own head and tail stand the linker's words, one by one, and the objects in their order."""
    assert links.call("c++", PAST_DRIVER, "-Wl,--icf=all", *OBJECTS).returncode == 0
    cache = links.folder / "its cache"
    assert links.calls()[-1] == [
        *("ld.lld", "-O2", "-znow", "-shared", "--no-undefined-version", "--icf=all", "-shared"),
        *("-soname", "lib.so.1", "-o", "a lib.so"),
        *("a.o", "b c.o", "--as-needed", "-L/", f"{cache}/libc++.a"),
        *("compiler_rt.o", f"{cache}/libcompiler_rt.a", f"{cache}/libc.so.6"),
    ]
    assert list(links.build.iterdir()) == []


def test_other_links_are_the_drivers(links: WrapperBench) -> None:
    assert links.call("c++", *OBJECTS).returncode == 0
    (words,) = links.calls()
    assert words[0] == "c++"
    assert tuple(words[-len(OBJECTS) :]) == OBJECTS


@pytest.mark.parametrize("asked", [True, False])
def test_the_probe_goes_without_the_cpp_library_when_the_link_does(links: WrapperBench, asked: bool) -> None:  # noqa: FBT001
    links.call("c++", PAST_DRIVER, "-Wl,--icf=all", *OBJECTS, *(("-nostdlib++",) if asked else ()))
    *_, probe, _, link = links.calls()
    assert ("-nostdlib++" in probe) == asked
    assert "-nostdlib++" not in link


def test_a_zig_that_does_not_say_how_it_links_fails_the_link(links: WrapperBench) -> None:
    """In words, and without calling the linker on half a line."""
    done = links.call("c++", PAST_DRIVER, "-Wl,--icf=all", *OBJECTS, SILENT="1")
    assert done.returncode == 1
    assert "zig does not say how it links" in done.stderr
    assert not [words for words in links.calls() if words[0] == "ld.lld"]
    assert list(links.build.iterdir()) == []


def test_the_linkers_exit_code_is_passed_on(links: WrapperBench) -> None:
    assert links.call("c++", PAST_DRIVER, "-Wl,--icf=all", *OBJECTS, EXIT="3").returncode == 3


Install = Callable[..., None]


def run_wrapper(text: str, compiler: str, folder: Path, *arguments: str) -> Completed:
    wrapper = write_program(folder / "wrapper", text)
    names = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX")
    places = {"PATH": "/usr/local/bin:/usr/bin:/bin", "ORTRIM_SOURCES": "/sources", "ORTRIM_BUILD": str(folder)}
    return run((wrapper, *arguments), cwd=folder, environment=places | dict.fromkeys(names, compiler))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(*names: str, printed: str = "") -> None:
        for name in names:
            write_program(tmp_path / name, f"printf '%s\\n' '{printed}'")

    return put


FIRST_LINES = [
    ("gcc", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
    ("gcc", "gcc (GCC) 13.2.1 20230801 (Red Hat 13.2.1-1)", "13.2.1"),
    ("gcc", "gcc (crosstool-NG 1.25.0) 12.1.0", "12.1.0"),
    ("gcc", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "11.4.0"),
    ("clang", "Debian clang version 14.0.6", "14.0.6"),
    ("clang", "clang version 18.1.3 (https://example.org/llvm-project.git 2f0d1d1.2)", "18.1.3"),
]


@pytest.mark.parametrize(("kind", "printed", "version"), FIRST_LINES)
def test_the_version_is_read_from_what_the_compiler_prints(
    install: Install, kind: str, printed: str, version: str
) -> None:
    """What stands in brackets is the distribution's own version."""
    install("gcc", "g++", "clang", "clang++", "ar", "ranlib", printed=printed)
    toolchain = system_toolchain("gcc" if kind == "gcc" else "clang")
    assert (toolchain.kind, toolchain.version, toolchain.triple) == (kind, version, "")


def test_a_plan_names_programs_not_places(install: Install, tmp_path: Path) -> None:
    install("gcc", "g++", "ar", "ranlib", printed="gcc (GCC) 12.2.0")
    toolchain = system_toolchain("gcc")
    assert dict(toolchain.environment) == {
        "ORTRIM_COMPILER_C": "gcc", "ORTRIM_COMPILER_CXX": "g++", "ORTRIM_AR": "ar", "ORTRIM_RANLIB": "ranlib",
    }  # fmt: skip
    assert str(tmp_path) not in repr(toolchain)
    assert all("# gcc 12.2.0\n" in text for _, text in toolchain.wrappers)


@pytest.mark.parametrize("absent", ["gcc", "g++", "ar", "ranlib"])
def test_an_absent_program_is_named(install: Install, absent: str) -> None:
    install(*({"gcc", "g++", "ar", "ranlib"} - {absent}), printed="gcc 12.2.0")
    caught = refused(ToolError, system_toolchain, "gcc")
    assert caught.code == "compiler-missing"
    assert caught.why == f"not there: {absent}"
    assert "apt-get install g++" in caught.hint


@pytest.mark.parametrize("printed", ["gcc (GCC) 10.5.0", "", "no number", "gcc version twelve", "12"])
def test_what_is_too_old_or_names_no_version_is_refused(install: Install, printed: str) -> None:
    install("gcc", "g++", "ar", "ranlib", printed=printed)
    with pytest.raises(ToolError, match="version 11 or newer is needed") as caught:
        system_toolchain("gcc")
    assert caught.value.code == "compiler-too-old"


@pytest.mark.parametrize(("kind", "printed", "level"), [
    ("gcc", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "-Os"),
    ("gcc", "gcc (GCC) 12.1.0", "-Oz"),
    ("clang", "Debian clang version 14.0.6", "-Oz"),
])  # fmt: skip
def test_a_gcc_without_the_smallest_level_is_given_the_next(
    install: Install, kind: Literal["gcc", "clang"], printed: str, level: str, tmp_path: Path
) -> None:
    install("gcc", "g++", "clang", "clang++", "ar", "ranlib", printed=printed)
    wrappers = dict(system_toolchain(kind).wrappers)
    for name in ("cc", "c++"):
        given = run_wrapper(wrappers[name], "echo", tmp_path, "-c", "-Oz", "-O3", "a.cc")
        assert given.stdout.split()[-4:] == ["-c", level, "-O3", "a.cc"]


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("level", sorted({PROFILES["balanced"].cold, PROFILES["balanced"].hot}))
def test_the_machines_own_gcc_compiles_with_the_flags_of_the_default_profile(level: str, tmp_path: Path) -> None:
    text = dict(system_toolchain("gcc").wrappers)["cc"]
    (tmp_path / "a.c").write_text("int one(void) { return 1; }\n")
    done = run_wrapper(text, "gcc", tmp_path, level, "-fomit-frame-pointer", "-g0", "-c", "a.c", "-o", "a.o")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.o").is_file()


@pytest.mark.needs("gcc")
def test_the_real_gcc_is_read_like_it_says_itself() -> None:
    assert system_toolchain("gcc").version == run(("gcc", "-dumpfullversion")).stdout.strip()
