"""What compilers leave in a tree: gone when a build begins and when it ends, however it ends."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refusing
from fake_kernels import AFTER, BEFORE, CONTRIB, CPU, TYPED, allowed, make_kernels, write_overrides
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling import upstream
from ortrim.compiling.dead_kernels import KINDS
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.upstream_arguments import versioned_options
from ortrim.compiling.workspace import JobPaths
from ortrim.errors import BuildError
from ortrim.planning.planner import with_arguments
from sample_plans import MODELS, SOURCES, sample_plan
from workshop import GOOD, Workshop

SCRATCH = """
scratch = pathlib.Path(os.environ["ZIG_LOCAL_CACHE_DIR"])
(scratch / "tmp" / "0123").mkdir(parents=True)
(scratch / "o").mkdir()
(scratch / "o" / "precompiled.o").write_bytes(bytes(1000))
(configured / "precompiled-mlas-1.pch").write_text("whole")
(configured / "precompiled-mlas-2.pch.4711").write_text("half")
"""


def left(workshop: Workshop) -> list[Path]:
    out = workshop.tree / "out"
    return sorted([*out.glob("zig"), *out.glob("MinSizeRel/precompiled-*.pch.*")])


def test_a_build_leaves_no_scratch(workshop: Workshop) -> None:
    """The precompiled header itself stays, for the next model."""
    workshop.write(SCRATCH + GOOD)
    workshop.executor().run(workshop.job)
    assert left(workshop) == []
    assert (workshop.tree / "out" / "MinSizeRel" / "precompiled-mlas-1.pch").read_text() == "whole"


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_nor_does_a_build_that_fails(workshop: Workshop, end: str) -> None:
    """A compiler that was killed half-way through the header leaves it under the name of its process."""
    workshop.write(SCRATCH + end)
    with pytest.raises(BuildError):
        workshop.executor().run(workshop.job)
    assert left(workshop) == []


def test_a_killed_ortrims_leftovers_go_before_the_next_build_compiles(workshop: Workshop) -> None:
    configured = workshop.tree / "out" / "MinSizeRel"
    configured.mkdir(parents=True)
    (configured / "precompiled-mlas-2.pch.4711").write_text("half")
    (workshop.tree / "out" / "zig" / "o").mkdir(parents=True)
    seen = "(build / 'seen').write_text(repr([*configured.glob('*.pch.*'), (build / 'zig').exists()]))"
    workshop.write(GOOD, update=seen)
    workshop.executor().run(workshop.job)
    assert (workshop.tree / "out" / "seen").read_text() == "[False]"
    assert left(workshop) == []


def test_what_cannot_be_removed_does_not_spoil_the_build(workshop: Workshop) -> None:
    workshop.write(SCRATCH + GOOD)
    (workshop.tree / "out" / "MinSizeRel" / "precompiled-mlas-1.pch.1").mkdir(parents=True)
    assert workshop.executor().run(workshop.job).library.is_file()


OLD = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "generated", {"types.inc": "float\n", "deep/provider.cc": "Add\n"})
    for file in (tmp_path / "generated").rglob("*"):
        os.utime(file, (OLD, OLD))
    return tmp_path / "generated"


def write(folder: Path, files: dict[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def times(folder: Path) -> dict[str, float]:
    return {file.relative_to(folder).as_posix(): file.stat().st_mtime for file in folder.rglob("*") if file.is_file()}


def test_what_is_written_again_with_the_same_bytes_keeps_its_time(folder: Path) -> None:
    with upstream.unchanged_files_keep_their_time(folder):
        write(folder, {"types.inc": "float\n", "deep/provider.cc": "Add\n"})
    assert times(folder) == {"types.inc": OLD, "deep/provider.cc": OLD}


def test_what_has_changed_is_new(folder: Path) -> None:
    with upstream.unchanged_files_keep_their_time(folder):
        write(folder, {"types.inc": "int64\n", "deep/provider.cc": "Add\n"})
    assert times(folder)["types.inc"] > OLD
    assert times(folder)["deep/provider.cc"] == OLD


def test_new_files_are_new_and_missing_ones_stay_away(folder: Path) -> None:
    with upstream.unchanged_files_keep_their_time(folder):
        write(folder, {"deep/types.inc": "float\n", "empty": ""})
    found = times(folder)
    assert set(found) == {"deep/types.inc", "empty"}
    assert min(found.values()) > OLD


def test_a_first_configuration_has_nothing_to_keep(tmp_path: Path) -> None:
    with upstream.unchanged_files_keep_their_time(tmp_path / "generated"):
        write(tmp_path / "generated", {"types.inc": "float\n"})
    assert times(tmp_path / "generated")["types.inc"] > OLD
    with upstream.unchanged_files_keep_their_time(tmp_path / "generated"):
        shutil.rmtree(tmp_path / "generated")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_is_passed_on(folder: Path, error: type[BaseException]) -> None:
    def stopped() -> None:
        write(folder, {"types.inc": "flo"})
        raise error

    with pytest.raises(error), upstream.unchanged_files_keep_their_time(folder):
        stopped()
    assert times(folder)["types.inc"] > OLD


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
    error = upstream.first_error((DATA / f"{recording}.log").read_text().splitlines())
    assert error.splitlines()[0] == first
    assert len(error.splitlines()) <= upstream.CONTEXT_LINES + 1


def test_every_recording_is_used() -> None:
    assert {path.stem for path in DATA.glob("*.log")} == set(FIRST_ERRORS)


def test_the_lines_that_explain_an_error_come_with_it() -> None:
    error = upstream.first_error((DATA / "compiler-error.log").read_text().splitlines())
    assert "for (int size : sizes) total += siz;" in error
    assert "referenced by api.cc:2" in upstream.first_error((DATA / "undefined-symbol.log").read_text().splitlines())
    assert "absent/cc." in upstream.first_error((DATA / "cmake-error.log").read_text().splitlines())


def test_a_killed_compiler_gets_advice_about_memory() -> None:
    """It cannot say why it ended; the object that it was at, and what helps, are said for it."""
    error = upstream.first_error((DATA / "killed.log").read_text().splitlines())
    assert error.splitlines()[1] == "Killed"
    assert "--jobs 1" in upstream.remedy(error)


def test_an_error_of_zig_itself_is_recognised() -> None:
    line = 'error: unable to find dynamic system library "foo" using strategy paths_first. searched paths: none'
    assert upstream.first_error(["[1/2] Building", line, "note"]) == f"{line}\nnote"


def test_a_traceback_ends_with_its_error() -> None:
    lines = ["Traceback (most recent call last):", '  File "x.py", line 1', "subprocess.CalledProcessError: Command"]
    assert upstream.first_error(lines) == "subprocess.CalledProcessError: Command"


def test_without_an_error_the_end_of_the_log_is_shown() -> None:
    lines = [f"[{n}/20] Building CXX object error_code.{n}.cc.o" for n in range(1, 21)]
    assert upstream.first_error(lines).splitlines() == lines[-upstream.CONTEXT_LINES :]
    assert upstream.first_error([]) == ""
    assert upstream.first_error(["only"]) == "only"


def test_a_failure_without_words_names_the_object() -> None:
    lines = ["[1/2] Building", "FAILED: [code=1] a.o ", "c++ -c a.cc", "ninja: build stopped: subcommand failed."]
    assert upstream.first_error(lines).startswith("FAILED: [code=1] a.o\n")


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
    real = "x.cc:1:1: error: real"
    assert upstream.first_error([line, *["."] * upstream.CONTEXT_LINES, real]) == real


def test_long_lines_are_cut() -> None:
    assert len(upstream.first_error([f"error: {'x' * 9000}"])) == 300


@given(st.lists(st.text()))
def test_no_log_is_an_error(lines: list[str]) -> None:
    assert len(upstream.first_error(lines)) <= 301 * (upstream.CONTEXT_LINES + 1)


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
    assert upstream.ninja_step(line) == step


@pytest.mark.parametrize("line", ["", "[1/2]", "[1/2]x", " [1/2] x", "[a/b] x", "-- [1/2] x", "[-1/2] x"])
def test_other_lines_are_no_progress(line: str) -> None:
    assert upstream.ninja_step(line) is None


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
    assert upstream.UNDEFINED.search(line)


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
    assert not upstream.UNDEFINED.search(line)


@pytest.mark.parametrize("recording", sorted(set(FIRST_ERRORS) - {"undefined-symbol"}))
def test_no_other_recorded_build_missed_a_definition(recording: str) -> None:
    assert not upstream.UNDEFINED.search((DATA / f"{recording}.log").read_text())


OPERATORS = ("Cast", "CastLike", "Crop", "Gather", "Gemm", "Max", "Min", "Pow")
GLOBAL = "ORT_SPECIFY_OP_KERNEL_GLOBAL_ALLOWED_TYPES(float, int64_t);\n"
ARITHMETIC, CAST, CROP = f"{CPU}/math/element_wise_ops.cc", f"{CPU}/tensor/cast_op.cc", f"{CONTRIB}/crop.cc"


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    return make_kernels(tmp_path)


def header(paths: JobPaths, name: str) -> Path:
    return upstream.type_folder(paths, paths.sources / name) / upstream.HEADER


def lines_of(paths: JobPaths, name: str) -> list[str]:
    """Return what a unit's own type control says between upstream's marks; all else must be upstream's."""
    text = header(paths, name).read_text()
    assert text.startswith(BEFORE)
    assert text.endswith(AFTER)
    return text[len(BEFORE) : -len(AFTER)].splitlines(keepends=True)


def test_sources_with_type_control_are_found(paths: JobPaths) -> None:
    assert upstream.typed_units(paths) == tuple(paths.sources / name for name in TYPED)


def test_sources_in_any_encoding_are_read(paths: JobPaths) -> None:
    (paths.sources / CAST).write_bytes(b"// Beno\xeet\n" + TYPED[CAST].encode())
    write_overrides(paths, [allowed("Cast"), allowed("Pow")])
    upstream.write_type_control(paths, upstream.typed_units(paths))
    assert lines_of(paths, CAST) == [allowed("Cast")]


def test_a_tree_without_kernels_has_none(tmp_path: Path) -> None:
    paths = JobPaths(**dict.fromkeys(("sources", "build", "tools", "wrappers", "config", "runner", "hooks"), tmp_path))
    assert upstream.typed_units(paths) == ()
    upstream.write_type_control(paths, ())
    assert list(tmp_path.iterdir()) == []


def test_each_unit_has_the_lines_of_its_own_operators(paths: JobPaths) -> None:
    """An operator whose name begins like another's is another, and so is one of a comment in upstream's header."""
    write_overrides(paths, [allowed("Cast"), allowed("CastLike"), allowed("Gather"), allowed("Max"), allowed("Pow")])
    upstream.write_type_control(paths, upstream.typed_units(paths))
    assert lines_of(paths, ARITHMETIC) == [allowed("Max"), allowed("Pow")]
    assert lines_of(paths, CAST) == [allowed("Cast"), allowed("CastLike")]
    assert lines_of(paths, CROP) == []


def test_an_operator_of_any_domain_is_recognised_by_its_name(paths: JobPaths) -> None:
    write_overrides(paths, [allowed("Pow", domain="kMSDomain"), allowed("Gelu", domain="kMSDomain")])
    upstream.write_type_control(paths, upstream.typed_units(paths))
    assert lines_of(paths, ARITHMETIC) == [allowed("Pow", domain="kMSDomain")]


def test_no_two_units_share_a_folder(paths: JobPaths) -> None:
    twin = paths.sources / CPU / "nn" / "cast_op.cc"
    folders = {upstream.type_folder(paths, unit) for unit in (*upstream.typed_units(paths), twin)}
    assert len(folders) == len(TYPED) + 1
    assert {folder.parent for folder in folders} == {paths.build / "types"}


def old(paths: JobPaths) -> None:
    for name in TYPED:
        os.utime(header(paths, name), (1, 1))


def young(paths: JobPaths) -> set[str]:
    return {name for name in TYPED if header(paths, name).stat().st_mtime > 1}


def test_types_of_one_operator_touch_the_units_that_name_it(paths: JobPaths) -> None:
    """Another type of Cast's compiles one file; an operator that no unit names compiles none."""
    write_overrides(paths, [allowed("Cast"), allowed("Pow")])
    upstream.write_type_control(paths, upstream.typed_units(paths))
    old(paths)
    write_overrides(paths, [allowed("Cast", types="float, int64_t"), allowed("Gather"), allowed("Pow")])
    upstream.write_type_control(paths, upstream.typed_units(paths))
    assert young(paths) == {CAST}
    old(paths)
    write_overrides(paths, [allowed("Cast", types="float, int64_t"), allowed("Pow")])
    upstream.write_type_control(paths, upstream.typed_units(paths))
    assert young(paths) == set()


def test_without_upstreams_header_nothing_is_written(paths: JobPaths) -> None:
    """A build with all types has none; what an earlier one left stays as it is."""
    upstream.write_type_control(paths, upstream.typed_units(paths))
    assert not (paths.build / "types").exists()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(required=st.lists(st.sampled_from(OPERATORS), unique=True), everywhere=st.booleans())
def test_a_unit_has_exactly_the_lines_of_operators_that_it_names(
    paths: JobPaths, required: list[str], everywhere: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    """For any set of operators, in any order, with types that are allowed globally or without."""
    lines = [*([GLOBAL] if everywhere else []), *map(allowed, required)]
    write_overrides(paths, lines)
    upstream.write_type_control(paths, upstream.typed_units(paths))
    for name, text in TYPED.items():
        named = [operator for operator in required if re.search(rf"\b{operator}\b", text)]
        assert lines_of(paths, name) == [*([GLOBAL] if everywhere else []), *map(allowed, named)]


RECORDED: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "upstream-options.json").read_text())
SOURCES_OF_PROVIDERS: Final = ("cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "kleidiai", "coremltools", "fp16", "psimd")
BUILD_PY: Final = """
import argparse
parser = argparse.ArgumentParser()
for name in {names}:
    parser.add_argument(name, help="replaces --older, which is gone; see also --other")
parser.parse_args()
"""


def known(kind: str, version: str) -> set[str]:
    """Return the recorded names of options or definitions that a version has; 1.28-dev for 1.28.0."""
    names: dict[str, Any] = RECORDED[kind]
    return {*names["everywhere"], *(name for name, versions in names["somewhere"].items() if version in versions)}


def jobs() -> Iterator[BuildJob]:
    sources = (*SOURCES, *(replace(SOURCES[0], name=name) for name in SOURCES_OF_PROVIDERS))
    runtime = (replace(MODELS[0], style="runtime"),)
    android = AndroidSpec(stl="c++_shared")
    plans = (
        *map(sample_plan, TARGETS),
        sample_plan(exceptions=True, profile="upstream"),
        sample_plan(unused_types=KINDS),
        sample_plan("android-x86_64", android=android, providers=("xnnpack",), models=runtime, sources=sources),
        sample_plan("ios-arm64", providers=("coreml",), models=runtime, sources=sources),
    )
    yield from (plan.targets[0].job for plan in plans)


@pytest.mark.parametrize("version", RECORDED["versions"])
def test_every_version_knows_what_plans_pass_to_it(version: str) -> None:
    """Options that were renamed, came later or went would end the build, or change nothing and say nothing."""
    number = version.replace("-dev", ".0")
    for job in jobs():
        arguments = with_arguments(replace(job, ort_version=number)).arguments
        assert {word for word in arguments if word.startswith("--")} <= known("options", version)
        assert set(upstream.definitions(arguments)) <= known("definitions", version)
        assert "onnxruntime_USE_TELEMETRY=OFF" in arguments


@pytest.mark.parametrize("version", RECORDED["versions"])
def test_a_version_is_passed_every_option_that_it_has_and_no_other(version: str) -> None:
    """KleidiAI's kernels and SVE's are left out wherever they would be compiled."""
    expected = {"--no_kleidiai", "--no_sve"} & known("options", version)
    assert set(versioned_options(version.replace("-dev", ".0"))) == expected


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("1.21.1", ()),
        ("1.22", ("--no_kleidiai",)),
        ("1.23.2", ("--no_kleidiai",)),
        ("1.32.0", ("--no_kleidiai", "--no_sve")),
    ],
)
def test_versions_between_the_recorded_ones_follow_those_before_them(version: str, options: tuple[str, ...]) -> None:
    assert versioned_options(version) == options


def test_an_option_is_what_a_line_of_help_introduces() -> None:
    """Not what a description mentions, on the same line or wrapped, nor what the usage repeats."""
    text = (
        "usage: build.py [-h] [--one] [--two {a,b}]\n\noptions:\n"
        "  -h, --help            show this help\n"
        "  --one                 instead of --old\n"
        "  --two {a,b} [{a,b} ...]\n"
        "                        --three was its name\n"
        "  --compile-no-four, --compile_no_four\n\nGroup:\n  --five N  as --six\n"
    )
    assert upstream.listed_options(text) == {
        "--help",
        "--one",
        "--two",
        "--compile-no-four",
        "--compile_no_four",
        "--five",
    }


@pytest.fixture
def job() -> BuildJob:
    words = ("--one", "value", "--two", "", "--cmake_extra_defines", "onnxruntime_A=ON", "CMAKE_AR=x", "ORTRIM_B=ON")
    return replace(sample_plan().targets[0].job, arguments=words)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tools" / "ci_build").mkdir(parents=True)
    (tmp_path / "cmake" / "external").mkdir(parents=True)
    (tmp_path / "cmake" / "CMakeLists.txt").write_text('option(onnxruntime_OTHER "other" OFF)\n')
    (tmp_path / "cmake" / "external" / "a.cmake").write_text("if(onnxruntime_A AND NOT onnxruntime_B_C)\n")
    list_options(tmp_path, "--one", "--two", "--cmake_extra_defines")
    return tmp_path


def list_options(tree: Path, *names: str) -> None:
    (tree / "tools" / "ci_build" / "build.py").write_text(BUILD_PY.format(names=names))


def refused(job: BuildJob, tree: Path) -> BuildError:
    caught = refusing.refused(BuildError, upstream.require_known, job, tree, tree)
    assert caught.code == "unknown-upstream-option"
    assert caught.where == "linux-x64"
    assert caught.hint
    return caught


def test_a_tree_that_knows_all_is_built(job: BuildJob, tree: Path) -> None:
    upstream.require_known(job, tree, tree)


def test_an_option_that_the_tree_does_not_list_is_refused(job: BuildJob, tree: Path) -> None:
    """One that merely begins like a listed one too, and one that only a description mentions."""
    list_options(tree, "--one", "--two_more", "--cmake_extra_defines")
    assert refused(job, tree).what == "ONNX Runtime 1.21.0 does not know --two"
    error = refused(replace(job, arguments=("--older", "--one", "--other")), tree)
    assert error.what == "ONNX Runtime 1.21.0 does not know --older, --other"
    assert "--help" in error.why


@pytest.mark.parametrize("name", ["onnxruntime_GONE", "onnxruntime_B", "onnxruntime_a"])
def test_a_definition_that_no_cmake_file_names_is_refused(job: BuildJob, tree: Path, name: str) -> None:
    """CMake would only warn of it, at the end; the name counts as a whole."""
    error = refused(replace(job, arguments=(*job.arguments, f"{name}=OFF")), tree)
    assert error.what == f"ONNX Runtime 1.21.0 does not know {name}"
    assert "CMake" in error.why


@pytest.mark.parametrize("script", ["", "import nothing_of_that_name\n", "print('--one')\n"])
def test_a_build_py_that_lists_nothing_speaks_for_itself(job: BuildJob, tree: Path, script: str) -> None:
    """Its own error, when it is called to configure, says more."""
    (tree / "tools" / "ci_build" / "build.py").write_text(script)
    upstream.require_known(job, tree, tree)


def test_a_build_is_refused_before_anything_is_configured(workshop: Workshop) -> None:
    script = workshop.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
    list_options(workshop.sources / "onnxruntime", "--build_dir")
    with pytest.raises(BuildError) as caught:
        workshop.executor().run(workshop.job)
    assert caught.value.code == "unknown-upstream-option"
    assert "--include_ops_by_config" in caught.value.what
    assert not (workshop.tree / "out" / "MinSizeRel").exists()
    asked = "import sys\nif sys.argv[1] == '--help':\n    open(sys.argv[0] + '.asked', 'w').close()\n"
    workshop.write(GOOD, update="(configured / 'CMakeCache.txt').touch()")
    script.write_text(asked + script.read_text())
    workshop.executor(cached=False).run(workshop.job)
    mark = script.with_name("build.py.asked")
    mark.unlink()
    with workshop.executor(cached=False).on_tree(workshop.job):
        assert not mark.exists()


@pytest.mark.parametrize(
    "error",
    [
        "error: undefined symbol: _preadv\n    note: referenced by /tree/storage.o:__ZN4core4readEv",
        "ld.lld: error: undefined symbol: getrandom\n>>> referenced by random.cc",
    ],
)
def test_a_name_that_the_system_lacks_is_in_the_hint(error: str) -> None:
    """Another try would end the same way."""
    hint = upstream.remedy(error)
    assert "oldest system" in hint
    assert ("_preadv" in hint) or ("getrandom" in hint)
    assert "continues" in upstream.remedy("ld.lld: error: undefined symbol: core::Session::run(int)")
