"""An application that CMake builds against a package, in a folder with a blank, with the pinned tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, run
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements
from program_files import write_program
from wheel_package import PROGRAM

PROJECT: Final = """
cmake_minimum_required(VERSION 3.24)
project(application LANGUAGES C)
include(snippet.cmake)
add_executable(application main.c)
target_link_libraries(application PRIVATE onnxruntime::onnxruntime)
message(STATUS "models in ${onnxruntime_MODELS_DIR}")
"""


@dataclass(frozen=True, kw_only=True)
class Application:
    folder: Path
    tools: Path

    def configure(self, text: str) -> Completed:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "snippet.cmake").write_text(text)
        (self.folder / "main.c").write_text(PROGRAM)
        (self.folder / "CMakeLists.txt").write_text(PROJECT)
        ninja = (f"-DCMAKE_MAKE_PROGRAM={self.tools}/bin/ninja", "-G", "Ninja")
        return self.cmake("-S", self.folder, "-B", self.folder / "build", *ninja, f"-DCMAKE_C_COMPILER={self.compiler}")

    def configure_with(self, archive: Path) -> Path:
        """Configure the project with a package that is unpacked beside it, and return the package's folder."""
        unpacked = self.folder.parent / "unpacked"
        unpacked.mkdir()
        assert run(("tar", "-x", "-f", archive, "-C", unpacked)).returncode == 0
        package = unpacked / archive.name.removesuffix(".tar.gz")
        done = self.configure(f'find_package(onnxruntime REQUIRED PATHS "{package}" NO_DEFAULT_PATH)')
        assert done.returncode == 0, done.stderr
        assert f"models in {package}/models" in done.stdout
        return package

    def build_and_run(self) -> str:
        built = self.cmake("--build", self.folder / "build")
        assert built.returncode == 0, built.stdout
        return run([self.folder / "build" / "application"]).stdout

    @property
    def compiler(self) -> Path:
        """The pinned compiler as one program, which is how CMake wants it."""
        return write_program(self.folder / "cc", f'exec "{self.tools}/ziglang/zig" cc "$@"')

    def cmake(self, *words: str | Path) -> Completed:
        return run((self.tools / "cmake" / "data" / "bin" / "cmake", *words), cwd=self.folder)


def new_application(folder: Path) -> Application:
    return Application(folder=folder / "an app", tools=packages_folder("tools", tool_requirements()))
