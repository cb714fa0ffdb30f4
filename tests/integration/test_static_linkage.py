"""A static library for real: joined and hidden with the pinned toolchain, linked by C and by C++ programs."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.binaries.objects import archive_members, visible_symbols
from ortrim.compiling.executor import write_static_library
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.workspace import BuildInputs, JobPaths, job_environment, prepare_workspace
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms import LINUX
from ortrim.sources.root_file_systems import machine_parts
from own_caches import zig_of_tests
from sample_plans import sample_plan

pytestmark = [pytest.mark.build, pytest.mark.network]

LIBRARY = """
#include <map>
#include <string>
namespace ours { std::map<int, std::string> known; }
std::string clash(int n) { return "ours " + std::to_string(n); }
extern "C" __attribute__((visibility("default"))) const char *OrtGetApiBase(void) {
  static std::string answer;
  ours::known[1] = clash(7);
  for (const auto &entry : ours::known) answer += entry.second;
  return answer.c_str();
}
int nobody_calls_this() { return 1; }
"""
PROGRAM = """
#include <stdio.h>
#include <string.h>
#ifdef __cplusplus
#include <string>
std::string clash(int n) { return "theirs " + std::to_string(n); }  // a name that the library has as well
extern "C"
#endif
const char *OrtGetApiBase(void);
int main(void) {
#ifdef __cplusplus
  puts(clash(8).c_str());
#endif
  puts(OrtGetApiBase());
  return strcmp(OrtGetApiBase(), "ours 7") == 0;  /* the second call appends */
}
"""


TARGETS: Final = ("linux-x64", "linux-arm64-musl", "linux-armhf")
NEEDED: Final = {"linux-arm64-musl": ("qemu-aarch64-static",), "linux-armhf": ("qemu-arm-static", "apt-get")}
"""What runs a target's programs, and fetches the C library that they want."""
RUN: Final = [pytest.param(target, marks=pytest.mark.needs(*NEEDED.get(target, ()))) for target in TARGETS]


@pytest.fixture(scope="module", params=TARGETS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[BuildJob, JobPaths]:
    """Link a small shared library as upstream's build does, and make the static one beside it."""
    folder = tmp_path_factory.mktemp("static")
    job = sample_plan(request.param, linkage="static").targets[0].job
    tools = packages_folder("tools", tool_requirements())
    inputs = BuildInputs(sources=folder, tools=tools, runner=shipped_folder("runner"), hooks=shipped_folder("cmake"))
    paths = prepare_workspace(folder / "work", inputs, job.toolchain, zig=zig_of_tests())
    paths.configured.mkdir()
    (folder / "library.cc").write_text(LIBRARY)
    (folder / "exports.lds").write_text("{ global: OrtGetApiBase; local: *; };")
    compiling = (
        "-c",
        "../../../library.cc",
        "-o",
        "library.o",
        "-fPIC",
        "-Os",
        "-ffunction-sections",
        "-fdata-sections",
    )
    require(compiler(job, paths, "c++", *compiling))
    require(compiler(job, paths, "ar", "qc", "liblibrary.a", "library.o"))
    linking = ("-shared", "-Wl,--gc-sections", "-Wl,--print-map", "-Wl,--version-script=../../../exports.lds")
    library = f"libonnxruntime.so.{job.ort_version}"
    require(compiler(job, paths, "c++", *linking, "-Wl,-u,OrtGetApiBase", "liblibrary.a", "-o", library))
    LINUX.finish(job, paths)
    write_static_library(job, paths)
    return job, paths


def compiler(job: BuildJob, paths: JobPaths, name: str, *arguments: str) -> Completed:
    """Run one of the toolchain's wrappers where upstream's build runs them."""
    environment = job_environment(paths, job.toolchain)
    return run((paths.wrappers / name, *arguments), cwd=paths.configured, environment=environment)


def require(done: Completed) -> None:
    assert done.returncode == 0, done.stderr


def linked(job: BuildJob, paths: JobPaths, language: str, *options: str) -> Path:
    """Return a program in C or C++ that is linked with the archive and the system's libraries alone."""
    source = paths.configured / f"program.{'c' if language == 'cc' else 'cc'}"
    source.write_text(PROGRAM)
    program = paths.build / f"program-{language}"
    system = ("-ldl", "-lpthread", "-lm")
    archive = paths.build / "libonnxruntime.a"
    require(compiler(job, paths, language, *options, str(source), str(archive), "-o", str(program), *system))
    return program


def test_the_archive_shows_the_interface_alone(built: tuple[BuildJob, JobPaths]) -> None:
    """One member, one visible name, no C++ among what it asks for."""
    _, paths = built
    ((name, content),) = archive_members(paths.build / "libonnxruntime.a")
    offered, asked = visible_symbols(content)
    assert (name, offered) == ("onnxruntime.o", frozenset({"OrtGetApiBase"}))
    assert not [symbol for symbol in asked if symbol.startswith("_Z") and not symbol.startswith("_ZTH")]
    assert b"nobody_calls_this" not in content


def test_making_it_again_gives_the_same_bytes(built: tuple[BuildJob, JobPaths]) -> None:
    """Nothing in it depends on when or where it was made."""
    job, paths = built
    archive = paths.build / "libonnxruntime.a"
    before = archive.read_bytes()
    write_static_library(job, paths)
    assert archive.read_bytes() == before


@pytest.mark.parametrize("built", RUN, indirect=True)
@pytest.mark.parametrize("language", ["cc", "c++"])
def test_programs_link_it_without_a_clash(built: tuple[BuildJob, JobPaths], language: str) -> None:
    """A C program needs no C++ library; a C++ program keeps its own functions of the same name as ours."""
    job, paths = built
    program = linked(job, paths, language, *(("-static",) if "musl" in job.target.identifier else ()))
    done = run((*launcher(job), program))
    expected = ["theirs 8", "ours 7"] if language == "c++" else ["ours 7"]
    assert (done.returncode, done.stdout.splitlines()) == (0, expected)


def launcher(job: BuildJob) -> tuple[str | Path, ...]:
    """Return what a target's programs are started with here; those for musl bring all that they need."""
    match job.target.identifier:
        case "linux-arm64-musl":
            return ("qemu-aarch64-static",)
        case "linux-armhf":
            return ("qemu-arm-static", "-L", machine_parts(EMULATIONS["arm"]).root)
        case _:
            return ()


@pytest.mark.needs("gcc")
def test_the_systems_own_compiler_links_it(built: tuple[BuildJob, JobPaths]) -> None:
    """What zig joins is an ordinary object: GNU's linker takes it."""
    job, paths = built
    if job.target.identifier != "linux-x64":
        pytest.skip("gcc links for the host alone")
    gcc = shutil.which("gcc") or ""
    source, program = paths.configured / "gcc.c", paths.build / "gcc-program"
    source.write_text(PROGRAM)
    archive = str(paths.build / "libonnxruntime.a")
    require(run((gcc, str(source), archive, "-o", str(program), "-ldl", "-lpthread", "-lm")))
    assert run((program,)).stdout == "ours 7\n"
