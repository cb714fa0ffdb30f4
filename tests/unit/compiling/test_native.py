"""The native executor with a source tree whose build.py is a few lines of the test's own."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elf_frames import frames_of
from ndk_layout import LINUX, lay_out_ndk
from ortrim.base.cache import locked
from ortrim.base.command import run
from ortrim.binaries.elf import read_library
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.compiling import workspace
from ortrim.compiling import workspace as execution
from ortrim.compiling.executor import Executor, linked_files, write_static_library
from ortrim.compiling.plan import BuildJob, CompilerCacheUse
from ortrim.errors import BinaryError, BuildError, Diagnostic, ExitCode, StorageError, ToolError
from ortrim.platforms.android.ndk import PROGRAMS
from program_files import write_program
from refusing import refused
from sample_plans import MODELS, sample_plan, system_gcc
from workshop import GOOD, LIBRARY, LINKED, Workshop

CCACHE_COUNTERS = {"direct_cache_hit": 3, "preprocessed_cache_hit": 4, "cache_miss": 2}


def test_a_library_that_is_made_of_another_compiles_nothing(workshop: Workshop) -> None:
    """It has all that the other left but the time, and the other is built if it was not."""

    def mark(library: Path) -> None:
        library.write_bytes(library.read_bytes() + b"changed")

    workshop.write(GOOD)
    executor, other = workshop.executor(), replace(workshop.job, profile="other")
    executor = replace(
        executor, inputs=replace(executor.inputs, made_of=lambda job: (workshop.job, mark) if job == other else None)
    )
    made = executor.run(other)
    assert workshop.calls() == "ub"
    built = executor.run(workshop.job)
    assert workshop.calls() == "ub"
    assert made.library.read_bytes() == built.library.read_bytes() + b"changed"
    assert (made.units, made.left_out, made.log.read_text()) == (built.units, built.left_out, built.log.read_text())
    assert workshop.log.read_text() == built.log.read_text()
    assert made.seconds < built.seconds


def test_a_build_leaves_its_results(workshop: Workshop) -> None:
    workshop.write(GOOD)
    result = workshop.executor().run(workshop.job)
    assert read_library(result.library).stripped
    assert result.symbols is not None
    assert result.symbols.read_bytes() == LINKED.read_bytes()
    assert result.link_map is not None
    assert result.link_map.read_text() == "link.map"
    names = ["onnxruntime_c_api.h", "onnxruntime_experimental_c_api.inc"]
    assert sorted(path.name for path in result.headers.iterdir()) == names
    assert result.log.read_text() == workshop.log.read_text()
    assert result.log.read_text().splitlines()[0] == "configuring"
    assert result.seconds >= 0
    assert result.units is not None
    assert 0 < result.units.compiled < result.units.total
    assert workshop.notes == [f"compiles {result.units.compiled} of {result.units.total} files", *result.left_out]
    assert workshop.progress == [(1, 2, "file1.cc"), (2, 2, "file2.cc")]
    assert workshop.tree.is_dir()
    assert result == workspace.result_of(workspace.finished_build(workshop.job))


def test_build_py_configures_and_then_compiles(workshop: Workshop) -> None:
    workshop.write(GOOD)
    workshop.executor().run(workshop.job)
    assert workshop.calls() == "ub"
    update, build = workshop.seen("update"), workshop.seen("build")
    assert isinstance(update["argv"], list)
    assert isinstance(build["argv"], list)
    assert [update["argv"][0], *build["argv"][1:]] == ["--update", *update["argv"][1:]]
    assert build["argv"][0] == "--build"
    assert update["environment"] == build["environment"]
    assert workshop.log.read_text().splitlines()[:2] == ["configuring", "compiling"]


def test_what_cannot_be_configured_is_not_compiled(workshop: Workshop) -> None:
    workshop.write(GOOD, update='print("CMake Error at CMakeLists.txt:1 (message):")\nsys.exit(1)')
    assert failed(workshop).why == "CMake Error at CMakeLists.txt:1 (message):"
    assert workshop.calls() == "u"
    assert workshop.nothing_finished()


def test_the_same_job_is_built_once(workshop: Workshop) -> None:
    workshop.write(GOOD)
    first = workshop.executor().run(workshop.job)
    workshop.write("sys.exit(1)")
    assert workshop.executor().run(workshop.job) == first


def test_another_model_goes_on_in_the_same_tree(workshop: Workshop) -> None:
    workshop.write(GOOD)
    first = workshop.executor().run(workshop.job)
    second = workshop.executor().run(replace(workshop.job, operator_config="ai.onnx;14;Relu\n"))
    assert first.folder != second.folder
    assert workshop.calls() == "ubub"
    assert (workshop.tree / "operators.config").read_text() == "ai.onnx;14;Relu\n"


def test_a_build_waits_for_another_in_its_tree_and_says_so(workshop: Workshop) -> None:
    workshop.write(GOOD)
    executor = workshop.executor()
    with ExitStack() as other:
        other.enter_context(locked(workshop.tree))

        def note(text: str) -> None:
            workshop.notes.append(text)
            other.close()

        assert replace(executor, on_note=note).run(workshop.job).library.is_file()
    assert workshop.notes[0] == "waits for another build that uses the same folder"


def test_a_measurement_compiles_every_file(workshop: Workshop) -> None:
    workshop.write(GOOD)
    result = workshop.executor(pruned=False).run(workshop.job)
    assert result.units is None
    assert workshop.notes == list(result.left_out)
    assert "set(ORTRIM_OMITTED\n)\n" in (workshop.tree / "hooks" / "selection.cmake").read_text()
    assert result.folder == workspace.finished_build(workshop.job)


def test_build_py_sees_only_what_the_plan_says(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-march=native")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    workshop.write("sys.exit(1)")
    refused(BuildError, workshop.executor().run, workshop.job)
    seen = workshop.seen("build")
    argv, environment = seen["argv"], seen["environment"]
    assert isinstance(argv, list)
    assert isinstance(environment, dict)
    assert not [word for word in argv if "$" in word]
    assert argv[argv.index("--parallel") + 1] == environment["CMAKE_BUILD_PARALLEL_LEVEL"] == "3"
    assert f"ORTRIM_SELECTION={workshop.tree / 'hooks' / 'selection.cmake'}" in argv
    assert (workshop.tree / "operators.config").read_text() == workshop.job.operator_config
    assert {"CFLAGS", "PYTHONSTARTUP"}.isdisjoint(environment)
    assert environment["HOME"] == seen["cwd"] == str(workshop.tree / "out")
    assert environment["CC"] == str(workshop.tree / "wrappers" / "cc")
    assert os.access(environment["CC"], os.X_OK)


def failed(workshop: Workshop) -> Diagnostic:
    with pytest.raises((BuildError, StorageError)) as caught:
        workshop.executor().run(workshop.job)
    return caught.value


def test_a_failure_shows_the_first_error_and_the_log(workshop: Workshop) -> None:
    workshop.write('print("[1/2] Building a.o")\nprint("FAILED: a.o")\nprint("a.cc:1:2: error: wrong")\nsys.exit(1)')
    error = failed(workshop)
    assert (error.code, error.exit_code) == ("build-failed", ExitCode.BUILD)
    assert error.where == "linux-x64"
    assert error.why == "a.cc:1:2: error: wrong"
    assert str(workshop.log) in error.hint
    assert workshop.log.read_text().splitlines()[-1] == "a.cc:1:2: error: wrong"
    assert workshop.nothing_finished()
    assert workshop.calls() == "ub"


def test_a_build_that_a_signal_ended_says_so(workshop: Workshop) -> None:
    workshop.write("os.kill(os.getpid(), signal.SIGKILL)")
    assert failed(workshop).what == "the build was stopped by signal 9"


def test_a_full_disk_is_reported_as_one(workshop: Workshop) -> None:
    """The exit code is storage's, so that a script need not read the compiler's words."""
    workshop.write('print("LLVM ERROR: IO failure on output stream: No space left on device")\nsys.exit(1)')
    error = failed(workshop)
    assert (error.code, error.exit_code) == ("disk-full", ExitCode.STORAGE)
    assert workshop.nothing_finished()
    assert workshop.calls() == "ub"


def test_a_build_for_which_there_is_no_room_is_not_begun(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.write(GOOD)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**9, free=10**7))
    assert failed(workshop).what == "building takes about 210 MB, and 10 MB are free"
    assert workshop.calls() == ""


def test_output_in_any_encoding_is_logged(workshop: Workshop) -> None:
    workshop.write('sys.stdout.buffer.write("größe 文.cc: error: x\\n".encode() + b"\\xff\\n")\nsys.exit(1)')
    assert failed(workshop).why.splitlines()[0] == "größe 文.cc: error: x"
    assert workshop.log.read_text(encoding="utf-8").splitlines()[1] == "größe 文.cc: error: x"


def test_a_build_that_leaves_too_little_is_no_build(workshop: Workshop) -> None:
    workshop.write(f"leave({LIBRARY!r})")
    error = failed(workshop)
    assert (error.code, error.exit_code) == ("output-missing", ExitCode.BUILD)
    assert "link.map" in error.what
    assert str(workshop.log) in error.hint
    assert workshop.nothing_finished()


def test_a_build_that_leaves_no_library_is_no_build(workshop: Workshop) -> None:
    """There is nothing to strip, and what an earlier build left is not taken."""
    workshop.write(GOOD)
    workshop.executor().run(workshop.job)
    workshop.write(f"(build / {LIBRARY!r}).unlink(missing_ok=True)")
    error = refused(BinaryError, workshop.executor().run, replace(workshop.job, operator_config="ai.onnx;14;Relu\n"))
    assert error.code == "library-missing"
    assert LIBRARY in error.where


def test_an_interruption_stops_the_build_and_keeps_what_was_done(workshop: Workshop) -> None:
    again = workshop.folder / "again"
    hang = f'print("[1/2] Building a.o", flush=True)\ntime.sleep(0 if pathlib.Path({str(again)!r}).exists() else 60)\n'
    workshop.write(hang + GOOD)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workshop.executor(interrupt).run(workshop.job)
    assert workshop.nothing_finished()
    assert workshop.log.read_text() == "configuring\n[1/2] Building a.o\n"
    again.touch()
    workshop.executor().run(workshop.job)
    assert workshop.calls() == "ubub"


def test_something_in_the_way_of_the_log_is_a_diagnostic(workshop: Workshop) -> None:
    workshop.log.parent.parent.write_text("in the way")
    error = failed(workshop)
    assert (error.code, error.exit_code) == ("path-in-the-way", ExitCode.STORAGE)


@pytest.mark.parametrize("content", [None, "", "{", '{"seconds": "x", "compiler_cache": null}'])
def test_a_damaged_finished_build_is_made_anew(workshop: Workshop, content: str | None) -> None:
    workshop.write(GOOD)
    whole = workshop.executor().run(workshop.job)
    facts = whole.folder / "facts.json"
    facts.unlink()
    if content is not None:
        facts.write_text(content)
    again = workshop.executor().run(workshop.job)
    assert (again.folder, workshop.calls()) == (whole.folder, "ubub")
    assert facts.read_text() not in {content, None}


def test_a_kept_tree_that_was_damaged_is_not_linked(workshop: Workshop) -> None:
    """An archive with another byte in it: the tree is begun anew, and the library is what it would have been."""
    workshop.write(GOOD)
    whole = workshop.executor().run(workshop.job).library.read_bytes()
    archive = workshop.tree / "out" / LIBRARY
    archive.write_text("damaged")
    other = replace(workshop.job, operator_config="ai.onnx;14;Relu\n")
    assert workshop.executor().run(other).library.read_bytes() == whole
    assert workshop.calls() == "ub"


COUNTING = f"""if [ "$1" = --print-log-stats ]; then echo '{json.dumps(CCACHE_COUNTERS)}'; fi"""


def launchers(workshop: Workshop) -> list[str]:
    argv = workshop.seen("build")["argv"]
    assert isinstance(argv, list)
    return [word.partition("=")[2] for word in argv if "_COMPILER_LAUNCHER=" in word]


def test_a_compiler_cache_is_used_and_counted(workshop: Workshop) -> None:
    workshop.tool("ccache", COUNTING)
    workshop.write(GOOD)
    result = workshop.executor().run(workshop.job)
    assert launchers(workshop) == [str(workshop.folder / "tools" / "bin" / "ccache")] * 2
    assert result.compiler_cache == CompilerCacheUse(hits=7, requests=9)


def test_a_measurement_leaves_the_cache_alone(workshop: Workshop) -> None:
    workshop.tool("ccache", COUNTING)
    workshop.write(GOOD)
    workshop.executor().run(workshop.job)
    workshop.tool("ccache", f"touch '{workshop.folder / 'asked'}'")
    other = replace(workshop.job, operator_config="ai.onnx;14;Relu\n")
    assert workshop.executor(cached=False).run(other).compiler_cache is None
    assert launchers(workshop) == ["", ""]
    assert not (workshop.folder / "asked").exists()


def test_programs_of_the_system_are_found_on_path(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan names gcc; the job gets the place where this machine's PATH has it."""
    program = write_program(workshop.folder / "bin" / "gcc")
    monkeypatch.setenv("PATH", str(program.parent))
    inputs = workshop.executor().inputs
    environment = workspace.job_environment(
        workspace.prepare_workspace(workshop.folder / "work", inputs, system_gcc()), system_gcc()
    )
    assert environment["ORTRIM_COMPILER_C"] == str(program)
    assert environment["ORTRIM_AR"] == "ar"
    assert environment["PATH"] == "/usr/bin:/bin"


Compile = Callable[[str], Path]


@pytest.fixture
def compile_runner(workshop: Workshop) -> Compile:
    def compiled(script: str) -> Path:
        write_program(workshop.folder / "tools" / "ziglang" / "zig", script)
        (target,) = sample_plan(workshop.job.target.identifier).targets
        return workshop.executor().run_runner(target.runner)

    return compiled


TO_OUTPUT = 'while [ "$1" != -o ]; do shift; done; '


def test_a_runner_is_compiled_once(compile_runner: Compile) -> None:
    runner = compile_runner(TO_OUTPUT + 'printf "#!/bin/sh\\necho ran\\n" > "$2"; chmod +x "$2"')
    assert run((runner,)).stdout == "ran\n"
    assert [path.name for path in runner.parent.iterdir()] == ["runner"]
    assert compile_runner("exit 1") == runner


def test_a_runner_that_does_not_compile_shows_the_error(compile_runner: Compile, workshop: Workshop) -> None:
    caught = refused(BuildError, compile_runner, 'echo "runner.c:3:1: error: no" >&2; exit 1')
    assert caught.where == "runner for linux-x64"
    assert caught.why == "runner.c:3:1: error: no"
    assert not [path for path in (workshop.folder / "cache" / "runners").iterdir() if path.is_dir()]


TARGET = "android-arm64-v8a"
GOOD_native_android = 'leave("MinSizeRel/libonnxruntime.so", "link.map")'
FRAMED = Path(__file__).parents[1] / "binaries" / "data" / "framed.so"
COPIES = f"""\
#!/bin/sh
while [ $# -gt 2 ]; do shift; done
echo "$@" >>copies
case "$1" in */libonnxruntime.so) set -- '{FRAMED}' "$2" ;; esac
cp -- "$1" "$2"
"""


def android_job(options: AndroidSpec | None = None) -> BuildJob:
    models = (replace(MODELS[0], style="runtime"),)
    return sample_plan(TARGET, android=options or AndroidSpec(), models=models).targets[0].job


@pytest.fixture
def ndk(tmp_path: Path) -> Path:
    """Lay out an NDK whose one working program copies what it should strip, and a real library for ONNX Runtime's."""
    folder = lay_out_ndk(tmp_path / "the ndk")
    write_program(folder / LINUX / PROGRAMS["llvm-objcopy"], COPIES)
    return folder


@pytest.fixture
def android(workshop: Workshop, ndk: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("ANDROID_NDK_HOME", str(ndk))
    workshop.job = android_job()
    workshop.write(GOOD_native_android)
    return workshop


def failed_native_android(executor: Executor, job: BuildJob) -> Diagnostic:
    return refused(Diagnostic, executor.run, job)


def test_the_ndk_is_found_and_named_to_build_py(android: Workshop, ndk: Path) -> None:
    """Its real folder stands in the arguments and in the environment of the wrappers, and is no part of the plan."""
    android.executor().run(android.job)
    seen = android.seen("update")
    argv, environment = seen["argv"], seen["environment"]
    assert isinstance(argv, list)
    assert isinstance(environment, dict)
    assert argv[argv.index("--android_ndk_path") + 1] == str(ndk)
    assert environment["ORTRIM_COMPILER_CXX"] == str(ndk / LINUX / PROGRAMS["clang++"])
    assert not [word for word in argv if "$" in word]


def test_the_ndk_that_was_named_goes_first(android: Workshop, ndk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_NDK_HOME", "/nowhere")
    executor = android.executor()
    named = replace(executor, inputs=replace(executor.inputs, sdk=ndk))
    assert named.run(android.job).library.is_file()


@pytest.mark.parametrize("cached", [True, False])
def test_cmake_calls_the_wrappers_by_way_of_launchers(android: Workshop, cached: bool) -> None:  # noqa: FBT001
    """The NDK's CMake files choose the compiler by its path; the launchers go in front, and the cache behind them."""
    android.executor(cached=cached).run(android.job)
    argv = android.seen("update")["argv"]
    assert isinstance(argv, list)
    for language, name in (("C", "launch-cc"), ("CXX", "launch-c++")):
        (word,) = (word for word in argv if word.startswith(f"CMAKE_{language}_COMPILER_LAUNCHER="))
        launcher, *cache = word.partition("=")[2].split(";")
        assert launcher == str(android.tree / "wrappers" / name)
        assert Path(launcher).stat().st_mode & 0o111
        assert [Path(each).name for each in cache] == (["ccache"] if cached else [])


def test_what_ships_and_its_symbols_are_two_files(android: Workshop) -> None:
    result = android.executor().run(android.job)
    names = {path.name for path in result.folder.iterdir() if path.is_file()}
    assert {"libonnxruntime.so", "libonnxruntime.so.sym", "link.map", "build.log"} <= names
    assert result.link_map is not None
    copies = (android.tree / "out" / "copies").read_text().splitlines()
    assert [line.rpartition("/")[2] for line in copies] == ["libonnxruntime.so", "libonnxruntime.so.sym"]
    assert frames_of(result.library)


def test_a_shared_cpp_library_comes_from_the_ndk(android: Workshop, ndk: Path) -> None:
    source = ndk / LINUX / "sysroot/usr/lib/aarch64-linux-android/libc++_shared.so"
    source.parent.mkdir()
    source.write_text("the C++ library")
    result = android.executor().run(android_job(AndroidSpec(stl="c++_shared")))
    assert (result.folder / "libc++_shared.so").read_text() == "the C++ library"


def test_a_command_that_fails_after_the_build_fails_it(android: Workshop, ndk: Path) -> None:
    (ndk / LINUX / PROGRAMS["llvm-objcopy"]).write_text(
        "#!/bin/sh\necho 'llvm-objcopy: error: not an object' >&2\nexit 1\n"
    )
    error = failed_native_android(android.executor(), android.job)
    assert isinstance(error, BuildError)
    assert (error.code, error.exit_code, error.where) == ("build-failed", ExitCode.BUILD, TARGET)
    assert error.why == "llvm-objcopy: error: not an object"
    assert android.nothing_finished()


def test_without_an_ndk_nothing_is_started(android: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANDROID_NDK_HOME")
    error = failed_native_android(android.executor(), android.job)
    assert isinstance(error, ToolError)
    assert error.code == "ndk-missing"
    assert android.calls() == ""
    assert android.nothing_finished()


def test_the_header_of_a_provider_is_shipped(android: Workshop) -> None:
    header = android.sources / "onnxruntime/include/onnxruntime/core/providers/coreml/coreml_provider_factory.h"
    header.parent.mkdir(parents=True)
    header.touch()
    assert not (android.executor().run(android.job).headers / header.name).exists()
    other = android.executor().run(replace(android.job, providers=("coreml",)))
    assert (other.headers / header.name).is_file()


BINARIES = Path(__file__).parents[1] / "binaries" / "data"
TINY = BINARIES / "tiny.so"


@pytest.fixture
def job() -> BuildJob:
    return sample_plan(linkage="static").targets[0].job


@pytest.fixture
def paths(tmp_path: Path) -> workspace.JobPaths:
    made = workspace.JobPaths(
        **{name: tmp_path / name for name in ("sources", "build", "tools", "wrappers", "config", "runner", "hooks")}
    )
    made.configured.mkdir(parents=True)
    (made.build / "libonnxruntime.so").write_bytes(TINY.read_bytes())
    (made.build / "link.map").write_bytes((BINARIES / "tiny.map").read_bytes())
    return made


def test_a_static_library_is_joined_from_what_the_link_took() -> None:
    """In its order, each once; the linker's sections are no file, and the compiler's runtime is the application's."""
    found = linked_files(BINARIES / "onnxruntime-excerpt.map")
    names = [Path(file).name for file in found]
    assert len(names) == len(set(names))
    assert {"libonnxruntime_session.a", "libonnxruntime_mlas.a", "libc++.a", "libc++abi.a"} <= set(names)
    assert not {"libcompiler_rt.a", "libc_nonshared.a", "libubsan_rt.a", "<internal>"} & set(names)


def test_a_linker_that_fails_is_a_failed_build(job: BuildJob, paths: workspace.JobPaths) -> None:
    write_program(paths.tools / "ziglang" / "zig", "echo 'ld.lld: error: no room' >&2; exit 1")
    caught = refused(BuildError, write_static_library, job, paths)
    error = caught
    assert (error.code, error.exit_code, error.where) == ("build-failed", ExitCode.BUILD, "linux-x64")
    assert "ld.lld failed" in error.what
    assert error.why == "ld.lld: error: no room"
    assert "linkage = 'shared'" in error.hint
    assert not (paths.build / "libonnxruntime.a").exists()


@pytest.mark.parametrize(
    ("cores", "memory", "jobs", "reason"),
    [
        (2, 24 * 10**9, 2, "2 cores"),
        (1, 24 * 10**9, 1, "1 core"),
        (16, 8 * 10**9, 4, "8 GB of memory, 2 GB for each"),
        (8, 16 * 10**9, 8, "8 cores"),
        (4, 10**9, 1, "1 GB of memory, 2 GB for each"),
        (4, 0, 1, "0 GB of memory, 2 GB for each"),
    ],
)
def test_cores_and_memory_both_limit(cores: int, memory: int, jobs: int, reason: str) -> None:
    assert workspace.limit_parallelism(cores, memory) == workspace.Parallelism(jobs=jobs, reason=reason)


@given(st.integers(1, 1024), st.integers(0, 2**50))
def test_there_is_always_one_job_and_never_more_than_cores(cores: int, memory: int) -> None:
    assert 1 <= workspace.limit_parallelism(cores, memory).jobs <= cores


def test_what_the_user_asks_for_is_done() -> None:
    assert workspace.choose_parallelism(64) == workspace.Parallelism(jobs=64, reason="as asked")


@pytest.mark.parametrize(("content", "limit"), [("4294967296\n", 4294967296), ("max\n", None), ("", None), ("0", None)])
def test_a_containers_memory_is_read(tmp_path: Path, content: str, limit: int | None) -> None:
    (tmp_path / "memory.max").write_text(content)
    assert workspace.memory_limit((tmp_path / "absent", tmp_path / "memory.max")) == limit


def test_without_a_control_group_there_is_no_limit(tmp_path: Path) -> None:
    assert workspace.memory_limit((tmp_path / "absent", tmp_path)) is None


def test_a_container_has_fewer_jobs_than_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000000000")
    monkeypatch.setattr(execution, "CGROUP_MEMORY", (tmp_path / "memory.max",))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert workspace.choose_parallelism(None) == workspace.Parallelism(jobs=1, reason="1 GB of memory, 2 GB for each")
