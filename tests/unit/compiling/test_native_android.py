"""The native executor with an NDK: where it is found, how CMake gets at the wrappers, and what follows the build."""

from dataclasses import replace
from pathlib import Path

import pytest

from elf_frames import frames_of
from ndk_layout import LINUX, lay_out_ndk
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.compiling.native import Executor
from ortrim.compiling.plan import BuildJob
from ortrim.errors import BuildError, Diagnostic, ExitCode, ToolError
from ortrim.platforms.android.ndk import PROGRAMS
from sample_plans import MODELS, sample_plan
from workshop import Workshop

TARGET = "android-arm64-v8a"
GOOD = 'leave("MinSizeRel/libonnxruntime.so", "link.map")'
FRAMED = Path(__file__).parents[1] / "binaries" / "data" / "framed.so"
COPIES = f"""\
#!/bin/sh
while [ $# -gt 2 ]; do shift; done
echo "$@" >>copies
case "$1" in */libonnxruntime.so) set -- '{FRAMED}' "$2" ;; esac
cp -- "$1" "$2"
"""


def android_job(options: AndroidSpec | None = None) -> BuildJob:
    """Return the job of an Android target."""
    models = (replace(MODELS[0], style="runtime"),)
    return sample_plan(TARGET, android=options or AndroidSpec(), models=models).targets[0].job


@pytest.fixture
def ndk(tmp_path: Path) -> Path:
    """Lay out an NDK whose one working program copies what it should strip, and a real library for ONNX Runtime's."""
    folder = lay_out_ndk(tmp_path / "the ndk")
    program = folder / LINUX / PROGRAMS["llvm-objcopy"]
    program.write_text(COPIES)
    program.chmod(0o755)
    return folder


@pytest.fixture
def android(workshop: Workshop, ndk: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Let the workshop build for Android."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("ANDROID_NDK_HOME", str(ndk))
    workshop.job = android_job()
    workshop.write(GOOD)
    return workshop


def failed(executor: Executor, job: BuildJob) -> Diagnostic:
    """Run a build that fails and return its diagnostic."""
    with pytest.raises(Diagnostic) as caught:
        executor.run(job)
    return caught.value


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
    """`--ndk` is heeded before the environment."""
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
    """The finished build has the library, its map and its symbols; the commands ran in the plan's order."""
    result = android.executor().run(android.job)
    names = {path.name for path in result.folder.iterdir() if path.is_file()}
    assert {"libonnxruntime.so", "libonnxruntime.so.sym", "link.map", "build.log"} <= names
    assert result.link_map is not None
    copies = (android.tree / "out" / "copies").read_text().splitlines()
    assert [line.rpartition("/")[2] for line in copies] == ["libonnxruntime.so", "libonnxruntime.so.sym"]
    assert frames_of(result.library)


def test_a_shared_cpp_library_comes_from_the_ndk(android: Workshop, ndk: Path) -> None:
    """It lies beside the library in the finished build."""
    source = ndk / LINUX / "sysroot/usr/lib/aarch64-linux-android/libc++_shared.so"
    source.parent.mkdir()
    source.write_text("the C++ library")
    result = android.executor().run(android_job(AndroidSpec(stl="c++_shared")))
    assert (result.folder / "libc++_shared.so").read_text() == "the C++ library"


def test_a_command_that_fails_after_the_build_fails_it(android: Workshop, ndk: Path) -> None:
    """The program's own words are shown, and no half of a build is left."""
    (ndk / LINUX / PROGRAMS["llvm-objcopy"]).write_text(
        "#!/bin/sh\necho 'llvm-objcopy: error: not an object' >&2\nexit 1\n"
    )
    error = failed(android.executor(), android.job)
    assert isinstance(error, BuildError)
    assert (error.code, error.exit_code, error.where) == ("build-failed", ExitCode.BUILD, TARGET)
    assert error.why == "llvm-objcopy: error: not an object"
    assert android.nothing_finished()


def test_without_an_ndk_nothing_is_started(android: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is said before upstream's build is called."""
    monkeypatch.delenv("ANDROID_NDK_HOME")
    error = failed(android.executor(), android.job)
    assert isinstance(error, ToolError)
    assert error.code == "ndk-missing"
    assert android.calls() == ""
    assert android.nothing_finished()


def test_the_header_of_a_provider_is_shipped(android: Workshop) -> None:
    """Applications need it to ask for the provider."""
    header = android.sources / "onnxruntime/include/onnxruntime/core/providers/nnapi/nnapi_provider_factory.h"
    header.parent.mkdir(parents=True)
    header.touch()
    assert not (android.executor().run(android.job).headers / header.name).exists()
    other = android.executor().run(android_job(AndroidSpec(providers=("nnapi",))))
    assert (other.headers / header.name).is_file()
