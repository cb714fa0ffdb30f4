"""Android's own unwinder, by which debuggerd walks the stacks of crashes: that of Android 10, from Debian bookworm."""

import platform
from pathlib import Path
from typing import Final

from android_root import ARCHITECTURES
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages

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
