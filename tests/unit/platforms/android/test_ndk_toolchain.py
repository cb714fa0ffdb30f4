"""The NDK's wrappers and launchers, in front of programs that write down what they are called with."""

from pathlib import Path

import pytest

from ortrim.buildspec.targets import TARGETS
from ortrim.platforms.android.ndk import ENVIRONMENT, ndk_toolchain
from wrapper_bench import WrapperBench

ANDROID = [name for name in TARGETS if name.startswith("android-")]
COMPILATION = ("-c", "a file.c", "-o", "a.o", '-DNAME="a b"', "", "$HOME", "*")


@pytest.fixture
def bench(tmp_path: Path) -> WrapperBench:
    toolchain = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, "27.2.12479018")
    made = WrapperBench(tmp_path, wrappers=toolchain.wrappers)
    for variable, name in ENVIRONMENT.items():
        program = made.program(name, f"#!/bin/sh\nexec '{tmp_path}/a compiler' {name} \"$@\"\n")
        made.environment[variable] = str(program)
    made.program("ccache", '#!/bin/sh\necho ccache\nexec "$@"\n')
    return made


@pytest.mark.parametrize(("wrapper", "program"), [("cc", "clang"), ("c++", "clang++")])
@pytest.mark.parametrize("way", ["by itself", "by its launcher", "behind a compiler cache"])
def test_the_ndks_compiler_is_called(bench: WrapperBench, wrapper: str, program: str, way: str) -> None:
    """For the target and its level, with the folders' names kept out; all arguments arrive as they were given.

    CMake calls the launcher with the compiler that it chose itself; what runs is the wrapper, whose text names the
    NDK's version to a cache.
    """
    launched = (f"launch-{wrapper}", f"/the ndk/bin/{program}")
    cached = (launched[0], str(bench.folder / "ccache"), launched[1])
    command = {"by itself": (wrapper,), "by its launcher": launched, "behind a compiler cache": cached}[way]
    done = bench.call(*command, *COMPILATION)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ccache\n" if command == cached else "", "")
    assert bench.calls() == [[program, "--target=aarch64-none-linux-android24", *bench.maps, *COMPILATION]]


def test_a_failing_compiler_fails_its_launcher(bench: WrapperBench) -> None:
    bench.program("clang", "#!/bin/sh\nexit 3\n")
    assert bench.call("launch-cc", str(bench.folder / "ccache"), "/ndk/bin/clang", "-c", "a.c").returncode == 3


@pytest.mark.parametrize("name", ["ar", "ranlib", "objcopy"])
def test_other_tools_are_the_ndks_own(bench: WrapperBench, name: str) -> None:
    bench.call(name, "rc", "a b.a")
    assert bench.calls() == [[f"llvm-{name}", "rc", "a b.a"]]


def test_the_compiler_of_each_abi_level_and_version_is_another_one() -> None:
    """The text of a wrapper is what the compiler cache goes by."""
    versions = ("27.2.12479018", "28.0.13004108")
    made = [ndk_toolchain(TARGETS[name], api, version) for name in ANDROID for api in (24, 30) for version in versions]
    assert len({dict(toolchain.wrappers)["cc"] for toolchain in made}) == len(made)
