"""Applications build against a package: through CMake and through pkg-config, and run with a real library."""

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import onnxruntime
import pytest

from ortrim.base.command import Completed, run
from ortrim.base.scripts import packages_folder
from ortrim.compiling.plan import Package
from ortrim.pins.shipped import tool_requirements
from program_files import write_program
from wheel_package import PROGRAM, make_wheel_package

pytestmark = pytest.mark.network

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(application LANGUAGES C)
find_package(onnxruntime {request} CONFIG REQUIRED)
add_executable(application main.c)
target_link_libraries(application PRIVATE onnxruntime::onnxruntime)
message(STATUS "models in ${{onnxruntime_MODELS_DIR}}")
"""


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """The pinned programs with which applications are built here."""

    cmake: Path
    ninja: Path
    compiler: Path


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory: pytest.TempPathFactory) -> Toolbox:
    """Return the pinned tools, the compiler as one program, which is how CMake wants it."""
    folder = packages_folder("tools", tool_requirements())
    compiler = write_program(tmp_path_factory.mktemp("compiler") / "cc", f'exec "{folder}/ziglang/zig" cc "$@"')
    return Toolbox(cmake=folder / "cmake" / "data" / "bin" / "cmake", ninja=folder / "bin" / "ninja", compiler=compiler)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """Make a package of the installed wheel's library, then move it, since packages must be relocatable."""
    folder = tmp_path_factory.mktemp("package")
    made = make_wheel_package(folder)
    moved = folder / "some where else"
    made.folder.rename(moved)
    return replace(made, folder=moved)


def configure(folder: Path, package: Package, toolbox: Toolbox, request: str, *options: str) -> Completed:
    folder.mkdir(exist_ok=True)
    (folder / "main.c").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(PROJECT.format(request=request))
    where = (f"-DCMAKE_PREFIX_PATH={package.folder}", f"-DCMAKE_C_COMPILER={toolbox.compiler}")
    ninja = (f"-DCMAKE_MAKE_PROGRAM={toolbox.ninja}", "-G", "Ninja")
    return run((toolbox.cmake, "-S", folder, "-B", folder / "build", *ninja, *where, *options))


def version_printed_by(program: Path, environment: dict[str, str] | None = None) -> str:
    done = run([program], environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_cmake_project_finds_the_package_and_runs(package: Package, toolbox: Toolbox, tmp_path: Path) -> None:
    version = onnxruntime.__version__
    done = configure(tmp_path / "app", package, toolbox, version)
    assert done.returncode == 0, done.stderr
    assert f"models in {package.folder}/models" in done.stdout
    built = run((toolbox.cmake, "--build", tmp_path / "app" / "build"))
    assert built.returncode == 0, built.stdout
    assert version_printed_by(tmp_path / "app" / "build" / "application") == f"version {version}"


@pytest.mark.parametrize("request_line", ["", "1.0", "1.0...<2"])
def test_cmake_accepts_requests_of_the_same_major_version(
    package: Package, toolbox: Toolbox, tmp_path: Path, request_line: str
) -> None:
    done = configure(tmp_path / "app", package, toolbox, request_line)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("request_line", ["0.9", "1.999", "2", "1.0...1.1"])
def test_cmake_refuses_requests_of_other_versions(
    package: Package, toolbox: Toolbox, tmp_path: Path, request_line: str
) -> None:
    done = configure(tmp_path / "app", package, toolbox, request_line)
    assert done.returncode != 0
    assert onnxruntime.__version__ in done.stderr


def test_cmake_refuses_a_package_for_another_processor(package: Package, toolbox: Toolbox, tmp_path: Path) -> None:
    """A cross build for arm64 is told when it is configured, with the package's target, not when it is linked."""
    other = (
        "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH",
    )
    done = configure(tmp_path / "app", package, toolbox, "1.0", *other)
    assert done.returncode != 0
    assert "(linux-x64)" in done.stderr


@pytest.mark.needs("pkg-config")
def test_pkg_config_user_compiles_and_runs(package: Package, toolbox: Toolbox, tmp_path: Path) -> None:
    """The flags lead into the package wherever it lies; the program runs with the library beside them."""
    # The word-splitting of a shell, which flags from pkg-config usually meet, cannot take the blanks in a folder.
    folder = tmp_path / "package"
    shutil.copytree(package.folder, folder, symlinks=True)
    environment = {"PKG_CONFIG_PATH": str(folder / "lib" / "pkgconfig"), "PATH": os.environ["PATH"]}
    version = run(["pkg-config", "--modversion", "libonnxruntime"], environment=environment)
    assert version.stdout.strip() == onnxruntime.__version__
    flags = run(["pkg-config", "--cflags", "--libs", "libonnxruntime"], environment=environment).stdout.split()
    assert str(folder) in os.path.normpath(flags[0].removeprefix("-I"))
    (tmp_path / "main.c").write_text(PROGRAM)
    built = run([toolbox.compiler, "-o", tmp_path / "application", tmp_path / "main.c", *flags])
    assert built.returncode == 0, built.stderr
    found = version_printed_by(tmp_path / "application", {"LD_LIBRARY_PATH": str(folder / "lib")})
    assert found == f"version {onnxruntime.__version__}"


def test_archive_is_the_same_in_another_process(tmp_path: Path) -> None:
    """Hash randomisation changes the order of sets from process to process, and must not change a package."""
    script = tmp_path / "make.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom sample_package import make_inputs\n"
        "from ortrim.package.package import make_package\n"
        "folder = Path(sys.argv[1])\nprint(make_package(make_inputs(folder / 'built'), folder / 'out').archive)\n"
    )
    digests = set()
    for seed in ("1", "2", "3"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1] / "support")}
        done = run([sys.executable, script, tmp_path / seed], environment=environment)
        assert done.returncode == 0, done.stderr
        digests.add(hashlib.sha256(Path(done.stdout.strip()).read_bytes()).hexdigest())
    assert len(digests) == 1
