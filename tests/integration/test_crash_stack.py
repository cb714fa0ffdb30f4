"""A crash in a stripped library: what crash reporters read of it, and what they then make of its symbols."""

import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from android_root import ARCHITECTURES
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.binaries.elf import build_id_of
from ortrim.buildspec.buildspec import BuildOptionChoices
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.compiling.upstream_arguments import folding_flags
from ortrim.compiling.workspace import JobPaths
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms import platform_of
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages
from own_caches import zig_of_tests
from sample_plans import MODELS, sample_plan

SUITE: Final = "bookworm"
PACKAGES: Final = (
    "android-libbacktrace", "android-libbacktrace-dev", "android-libbase", "android-liblog", "p7zip-full",
    "libc6", "libgcc-s1", "libstdc++6",
)  # fmt: skip
LAYOUT: Final = "1"
REPORTER: Final = """\
#include <backtrace/Backtrace.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void report(int, siginfo_t *, void *context) {
  auto *stack = Backtrace::Create(BACKTRACE_CURRENT_PROCESS, BACKTRACE_CURRENT_THREAD);
  stack->Unwind(0, context);
  for (size_t i = 0; i < stack->NumFrames(); i++) puts(stack->FormatFrameData(i).c_str());
  fflush(stdout);
  _exit(0);
}
__attribute__((constructor)) static void listen() {
  struct sigaction action = {};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}
"""
"""Prints the stack where the program is that it is linked with crashes."""


def crash(program: Path, library: Path) -> list[str]:
    root, folder = _root(), program.parent
    (folder / "reporter.cc").write_text(REPORTER)
    (unwinder,) = root.rglob("libbacktrace.so.0")
    sources = (program, folder / "reporter.cc", "-o", folder / "crashing", library, unwinder)
    options = ("-std=c++17", "-w", "-I", root / "usr" / "include" / "android", "-Wl,--allow-shlib-undefined")
    done = run(("g++", *options, *sources, f"-Wl,-rpath,{library.parent}"))
    assert done.returncode == 0, done.stderr
    loader = min((root / "lib").rglob("ld-linux-*.so.*"))
    folders = sorted({path.parent for path in root.rglob("*.so*")})
    done = run((loader, "--library-path", ":".join(map(str, folders)), folder / "crashing"))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _root() -> Path:
    """Return the folder that the packages were unpacked into; made when the cache has none."""
    architecture = ARCHITECTURES[platform.machine()]
    folder = cache_folder("test-roots") / f"{SUITE}-android-unwinder-{architecture}-{LAYOUT}"

    def make(temporary: Path) -> None:
        def accept(_package: DebianPackage, file: Path) -> None:
            done = run(("dpkg-deb", "--extract", file, temporary))
            assert done.returncode == 0, done.stderr

        fetch_packages(PackageRequest(names=PACKAGES, suite=SUITE, architecture=architecture), accept)

    publish_folder(folder, make)
    return folder


pytestmark = [pytest.mark.network, pytest.mark.needs("g++", "gdb", "addr2line")]

LIBRARY: Final = """\
static int __attribute__((noinline)) read_at(int *p, int n) {
  int b[40];
  for (int i = 0; i < 40; i++) b[i] = n * i;
  return p[n] + b[n % 40];
}
static int __attribute__((noinline)) add_three(int *p, int n) { return read_at(p, n + 1) * 3 + n; }
int __attribute__((noinline)) nobody_calls(int *p) { return add_three(p, 1); }
extern "C" __attribute__((visibility("default"))) int deep(int *p, int n) { return add_three(p, n) + 5; }
"""
PROGRAM: Final = """\
extern "C" int deep(int *, int);
int main() { return deep((int *)8, 3) + 1; }
"""
INSIDE: Final = ["read_at(int*, int)", "add_three(int*, int)", "deep"]


def planned(*, tables: bool) -> BuildJob:
    """Return the job of an Android library that zig compiles, with unwind tables or without."""
    models = (replace(MODELS[0], style="runtime"),)
    options = BuildOptionChoices(unwind_tables=None if tables else False)
    toolchain = zig_toolchain(TARGETS["linux-x64"], "2.28", "0.17.0")
    return sample_plan("android-x86_64", models=models, build_options=options, toolchain=toolchain).targets[0].job


def built(folder: Path, *, tables: bool) -> tuple[Path, Path]:
    """Return a library that was compiled, linked and stripped as the job says, and its symbols."""
    job, zig = planned(tables=tables), packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    (cold,) = (word.partition("=")[2].split() for word in job.arguments if word.startswith("ORTRIM_COLD="))
    (folder / "MinSizeRel").mkdir()
    (folder / "deep.cc").write_text(LIBRARY)
    upstream = ("-fno-exceptions", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-ffunction-sections")
    compiling = (
        "c++",
        "-target",
        f"{platform.machine()}-linux-gnu.2.28",
        *upstream,
        "-fPIC",
        "-fvisibility=hidden",
        *cold,
    )
    folding = [word.removeprefix("-Wl,") for word in folding_flags(job) if "-T" not in word]
    linking = ("ld.lld", "-shared", "--gc-sections", "--build-id=sha1", "-soname=libonnxruntime.so", *folding)
    to_object, to_library = ("-c", "deep.cc", "-o", "deep.o"), ("deep.o", "-o", "MinSizeRel/libonnxruntime.so")
    for words in ((*compiling, *to_object), (*linking, *to_library)):
        done = run((zig, *words), cwd=folder, environment={"ZIG_GLOBAL_CACHE_DIR": str(zig_of_tests())})
        assert done.returncode == 0, done.stderr
    nowhere = {name: Path() for name in ("sources", "tools", "wrappers", "config", "runner", "hooks")}
    platform_of(job.target).finish(job, JobPaths(build=folder, **nowhere))
    return folder / "libonnxruntime.so", folder / "libonnxruntime.so.sym"


def reported(folder: Path, library: Path) -> list[tuple[str, str]]:
    """Return the stack that Android's unwinder reports of a crash: the place in each frame's file, and the file."""
    (folder / "main.cc").write_text(PROGRAM)
    found = (re.search(r"#\d+ +pc ([0-9a-f]+) +(\S+)", line) for line in crash(folder / "main.cc", library))
    return [(frame[1], Path(frame[2]).name) for frame in found if frame]


def named(symbols: Path, places: list[str]) -> list[str]:
    return run(("addr2line", "-C", "-f", "-e", symbols, *places)).stdout.splitlines()[::2]


def test_a_reported_stack_goes_through_the_library_and_has_names(tmp_path: Path) -> None:
    """The unwinder reads the library alone, as on a phone; the symbols are read later, where the report arrives."""
    library, symbols = built(tmp_path, tables=True)
    stack = reported(tmp_path, library)
    assert [file for _, file in stack[:4]] == ["libonnxruntime.so"] * 3 + ["crashing"]
    assert named(symbols, [place for place, _ in stack[:3]]) == INSIDE
    assert b"read_at" not in library.read_bytes()


def test_without_unwind_tables_the_stack_ends_in_its_first_frame(tmp_path: Path) -> None:
    """As it is where a buildspec turns them off; its symbols then name that frame."""
    library, symbols = built(tmp_path, tables=False)
    ((place, file),) = reported(tmp_path, library)
    assert (file, named(symbols, [place])) == ("libonnxruntime.so", INSIDE[:1])


def test_a_debugger_finds_the_symbols_by_build_id(tmp_path: Path) -> None:
    """Laid out as in the archive of symbols; the tables in them serve who reads dumps of memory elsewhere."""
    library, symbols = built(tmp_path, tables=True)
    build_id = build_id_of(library)
    assert build_id
    place = tmp_path / "symbols" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    symbols.rename(place)
    (tmp_path / "main.cc").write_text(PROGRAM)
    done = run(("g++", "-o", "main", "main.cc", library, f"-Wl,-rpath,{tmp_path}"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = ("-ex", f"set debug-file-directory {tmp_path / 'symbols'}", "-ex", "run", "-ex", "bt")
    told = run(("gdb", "-nx", "-batch", *words, tmp_path / "main")).stdout
    names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+)", told, re.MULTILINE)
    assert names == ["read_at", "add_three", "deep", "main"]
