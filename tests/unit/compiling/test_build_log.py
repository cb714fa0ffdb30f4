"""What a build prints: recorded output of real builds that failed, of each kind."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.files import FULL_DISK
from ortrim.compiling.upstream import CONTEXT_LINES, UNDEFINED, first_error, ninja_step, remedy

DATA = Path(__file__).parent / "data"

FIRST_ERRORS = {
    "compiler-error": "project/allocator.cc:4:35: error: use of undeclared identifier 'siz'",
    "missing-header": "project/session.cc:1:10: fatal error: 'core/session/inference_session.h' file not found",
    "cmake-error": "CMake Error at tools/cmake/Modules/CMakeDetermineCCompiler.cmake:49 (message):",
    "undefined-symbol": "ld.lld: error: undefined symbol: onnxruntime::create_session(char const*)",
    "killed": "FAILED: [code=137] CMakeFiles/onnxruntime_mlas.dir/sgemm.cc.o",
    "disk-full": "fatal error: error in backend: IO failure on output stream: No space left on device",
    "python-error": "ValueError: Configuration file absent.config does not exist",
    "wrong-arguments": "build.py: error: unrecognized arguments: --frob",
}


@pytest.mark.parametrize(("recording", "first"), FIRST_ERRORS.items())
def test_the_first_error_of_a_recorded_build_is_found(recording: str, first: str) -> None:
    """Not a warning before it, not the command line, not what follows from it."""
    error = first_error((DATA / f"{recording}.log").read_text().splitlines())
    assert error.splitlines()[0] == first
    assert len(error.splitlines()) <= CONTEXT_LINES + 1


def test_every_recording_is_used() -> None:
    """A recording that no test reads proves nothing."""
    assert {path.stem for path in DATA.glob("*.log")} == set(FIRST_ERRORS)


def test_the_lines_that_explain_an_error_come_with_it() -> None:
    """The source line and the mark below it are what a reader looks for."""
    error = first_error((DATA / "compiler-error.log").read_text().splitlines())
    assert "for (int size : sizes) total += siz;" in error
    assert "referenced by api.cc:2" in first_error((DATA / "undefined-symbol.log").read_text().splitlines())
    assert "absent/cc." in first_error((DATA / "cmake-error.log").read_text().splitlines())


def test_a_killed_compiler_gets_advice_about_memory() -> None:
    """It cannot say why it ended; the object that it was at, and what helps, are said for it."""
    error = first_error((DATA / "killed.log").read_text().splitlines())
    assert error.splitlines()[1] == "Killed"
    assert "--jobs 1" in remedy(error)


def test_a_full_disk_can_be_told() -> None:
    """The executor words it as what it is."""
    assert FULL_DISK[0] in first_error((DATA / "disk-full.log").read_text().splitlines())


def test_an_error_of_zig_itself_is_recognised() -> None:
    """Its driver prints no file before the word."""
    line = 'error: unable to find dynamic system library "foo" using strategy paths_first. searched paths: none'
    assert first_error(["[1/2] Building", line, "note"]) == f"{line}\nnote"


def test_a_traceback_ends_with_its_error() -> None:
    """An exception of a module is recognised by its whole name."""
    lines = ["Traceback (most recent call last):", '  File "x.py", line 1', "subprocess.CalledProcessError: Command"]
    assert first_error(lines) == "subprocess.CalledProcessError: Command"


def test_without_an_error_the_end_of_the_log_is_shown() -> None:
    """Something is better than nothing: the last lines are nearest to what happened."""
    lines = [f"[{n}/20] Building CXX object error_code.{n}.cc.o" for n in range(1, 21)]
    assert first_error(lines).splitlines() == lines[-CONTEXT_LINES:]
    assert first_error([]) == ""
    assert first_error(["only"]) == "only"


def test_a_failure_without_words_names_the_object() -> None:
    """Ninja's own line is all there is when a compiler says nothing."""
    lines = ["[1/2] Building", "FAILED: [code=1] a.o ", "c++ -c a.cc", "ninja: build stopped: subcommand failed."]
    assert first_error(lines).startswith("FAILED: [code=1] a.o\n")


@pytest.mark.parametrize(
    "line",
    [
        "-- Performing Test HAS_CATCH_VALUE - Failed",
        "[145/713] Building CXX object absl/base/CMakeFiles/absl_strerror.dir/internal/strerror.cc.o",
        "Namespace(compile_no_warning_as_error=True, error=None)",
        "NVCC_ERROR = ",
        "Ignoring COMPILE_WARNING_AS_ERROR target property and CMAKE_COMPILE_WARNING_AS_ERROR variable.",
        "CMake Warning at CMakeLists.txt:9 (message):",
        "a.cc:1:1: warning: an error of others [-Wfoo]",
        "Test that Killed tasks are counted",
    ],
)
def test_lines_of_every_build_are_no_errors(line: str) -> None:
    """Words such as "error" in names of files and switches mean nothing."""
    real = "x.cc:1:1: error: real"
    assert first_error([line, *["."] * CONTEXT_LINES, real]) == real


def test_long_lines_are_cut() -> None:
    """A linker's command line has thousands of characters."""
    assert len(first_error([f"error: {'x' * 9000}"])) == 300


@given(st.lists(st.text()))
def test_no_log_is_an_error(lines: list[str]) -> None:
    """Whatever was printed, something comes back that fits a screen."""
    assert len(first_error(lines)) <= 301 * (CONTEXT_LINES + 1)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("[1/676] Building CXX object CMakeFiles/a.dir/path/allocator.cc.o", (1, 676, "allocator.cc")),
        ("[6/6] Linking CXX static library _deps/re2-build/libre2.a", (6, 6, "libre2.a")),
        ("[5/6] Linking CXX static library libmlas.a", (5, 6, "Linking CXX static library libmlas.a")),
        ("[0/2] Re-running CMake...", (0, 2, "Re-running CMake...")),
        (
            "[1/4] Building C object 'CMakeFiles/session.dir/tmp/a_folder_of_mine=yours/core/a.cc.o'",
            (1, 4, "a.cc"),
        ),
        (
            r"[1/2] Building C object 'CMakeFiles/session.dir/tmp/it'\''s_(mine)_$x/core/a.cc.o'",
            (1, 2, "a.cc"),
        ),
        ('[2/2] Linking C static library "out dir/libsession.a"', (2, 2, "libsession.a")),
    ],
)  # fmt: skip
def test_progress_is_read_from_ninjas_lines(line: str, step: tuple[int, int, str]) -> None:
    """How many steps are done, of how many, and what was just made."""
    assert ninja_step(line) == step


@pytest.mark.parametrize("line", ["", "[1/2]", "[1/2]x", " [1/2] x", "[a/b] x", "-- [1/2] x", "[-1/2] x"])
def test_other_lines_are_no_progress(line: str) -> None:
    """Only ninja's own status counts."""
    assert ninja_step(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "ld.lld: error: undefined symbol: onnxruntime::create_session(char const*)",
        "ld.lld: error: version script assignment of 'VERS_1.0' to symbol 'OrtGetApiBase' failed: symbol not defined",
        "/usr/bin/ld: session.cc:(.text+0x5): undefined reference to `onnxruntime::create_session(char const*)'",
        "Undefined symbols for architecture arm64:",
    ],
)
def test_a_missing_definition_is_recognised_in_every_linkers_words(line: str) -> None:
    """It is what more sources may help against."""
    assert UNDEFINED.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "a.cc:4:35: error: use of undeclared identifier 'siz'",
        "error: macro 'X' is not defined",
        "warning: inline function 'f' is not defined [-Wundefined-inline]",
        "ld.lld: error: duplicate symbol: f()",
        "[3/9] Building CXX object undefined.cc.o",
    ],
)
def test_other_errors_are_no_missing_definitions(line: str) -> None:
    """Compiling more would not help."""
    assert not UNDEFINED.search(line)


@pytest.mark.parametrize("recording", sorted(set(FIRST_ERRORS) - {"undefined-symbol"}))
def test_no_other_recorded_build_missed_a_definition(recording: str) -> None:
    """All kinds of failures but one."""
    assert not UNDEFINED.search((DATA / f"{recording}.log").read_text())
