"""The names that a stub of Apple's C library has rest on what is named beside them: headers, and real wheels."""

import os
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import lief
import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.macho.files import read_macho
from ortrim.buildspec.targets import APPLE, CATALYST, TARGETS
from ortrim.compiling.plan import Toolchain
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.pins.shipped import shipped_text, tool_requirements
from ortrim.platforms import APPLE as APPLE_PLATFORM
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from ortrim.platforms.apple.sysroot import SYMBOLS, public_names
from own_caches import zig_of_tests

pytestmark = [pytest.mark.network]

OURS: Final = [name for name, target in TARGETS.items() if target.system in APPLE]
MACS: Final = {"13.0": "10.15", "14.0": "11.0", "16.0": "13.0"}
"""iOS -> the macOS that came with it."""
HEADERS: Final = (
    "aio", "arpa/inet", "assert", "complex", "copyfile", "crt_externs", "ctype", "dirent", "dispatch/dispatch",
    "dlfcn", "err", "errno", "execinfo", "fcntl", "fenv", "fnmatch", "fts", "ftw", "getopt", "glob", "grp",
    "ifaddrs", "inttypes", "langinfo", "libgen", "libkern/OSCacheControl", "locale", "mach-o/dyld", "mach/mach",
    "mach/mach_error", "mach/mach_time", "mach/semaphore", "mach/vm_page_size", "malloc/malloc", "math",
    "monetary", "netdb", "net/if", "netinet/in", "nl_types", "os/lock", "poll", "pthread", "pthread/qos", "pwd",
    "regex", "runetype", "sched", "search", "semaphore", "setjmp", "signal", "spawn", "stdio", "stdlib", "string",
    "strings", "sys/clonefile", "sys/file", "sys/ioctl", "sys/mman", "sys/mount", "sys/msg", "sys/param",
    "sys/random", "sys/resource", "sys/select", "sys/sem", "sys/shm", "sys/socket", "sys/stat", "sys/statvfs",
    "sys/sysctl", "sys/time", "sys/times", "sys/types", "sys/uio", "sys/un", "sys/utsname", "sys/wait", "syslog",
    "termios", "time", "ulimit", "unistd", "utime", "utmpx", "wchar", "wctype", "wordexp", "xlocale",
)  # fmt: skip
PLATFORMS: Final = (
    "ios_13_0_arm64_iphoneos", "ios_13_0_arm64_iphonesimulator", "ios_13_0_x86_64_iphonesimulator",
)  # fmt: skip
WHEELS: Final = ("pillow==13.0.0", "kiwisolver==1.5.1", "lru-dict==1.4.1")
SYSTEM: Final = "/usr/lib/libSystem.B.dylib"


def witnessed(kind: str, keys: set[str], release: str) -> set[str]:
    """Return the names that a release has for the first time, by what shows them."""
    names = tomllib.loads(shipped_text(SYMBOLS))[kind][release]
    return {name for key, text in names.items() if key in keys for name in text.split()}


@pytest.mark.parametrize("target", OURS)
@pytest.mark.parametrize("release", MACS)
def test_headers_declare_what_rests_on_them(target: str, release: str, tmp_path: Path) -> None:
    """For each system the names of a release compile for it without a warning, and headers choose the same variants."""
    mac, architecture = target.startswith("macos-"), target.rpartition("-")[2]
    keys = {"all", "macos" if mac else "ios", f"macos-{architecture}" if mac else ""}
    names = witnessed("headers", keys, release)
    version = MACS[release] if mac else release
    if target == CATALYST and version == "13.0":
        version = "13.1"  # the first
    toolchain = zig_apple_toolchain(TARGETS[target], version, "0.17.0")
    found = {
        symbol
        for flags in ((), ("-D_DARWIN_C_SOURCE",))
        for symbol in asked_for({name.partition("$")[0] for name in names}, toolchain, tmp_path, flags)
    }
    assert names <= found
    assert names <= set(public_names(toolchain.triple))


def asked_for(names: Iterable[str], toolchain: Toolchain, folder: Path, flags: tuple[str, ...]) -> set[str]:
    """Compile a source that takes the address of each function and variable; return what the linker is asked for."""
    includes = (f"#include <{header}.h>\n" for header in HEADERS)
    pointers = (f"void *pointer_{name} = (void *)&{name};\n" for name in sorted(names))
    (folder / "names.c").write_text("".join((*includes, *pointers)))
    tools = packages_folder("tools", tool_requirements())
    inputs = BuildInputs(
        sources=folder, tools=tools, runner=folder, hooks=shipped_folder("cmake"), installed=APPLE_PLATFORM.installed
    )
    paths = prepare_workspace(folder / "work", inputs, toolchain, zig=zig_of_tests())
    warnings = ("-Werror=unguarded-availability", "-Werror=implicit-function-declaration", "-Wno-deprecated")
    words = (str(paths.wrappers / "cc"), "-O1", *warnings, *flags, "-c", "names.c", "-o", "names.o")
    done = run(words, cwd=folder, environment={**os.environ, **job_environment(paths, toolchain)})
    assert done.returncode == 0, done.stderr
    (image,) = read_macho(folder / "names.o").images
    return set(image.undefined)


def test_wheels_for_phones_import_what_rests_on_them(tmp_path: Path) -> None:
    """Each name is in a wheel that was linked with Apple's SDK for iOS 13, and so is every name that they import."""
    found: set[str] = set()
    for platform in PLATFORMS:
        options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.13", "--platform", platform)
        folder = tmp_path / platform
        done = run((sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), *WHEELS))
        assert done.returncode == 0, done.stderr
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as opened:
                for name in opened.namelist():
                    if name.endswith((".so", ".dylib")):
                        found |= imported(opened.read(name))
    names = witnessed("wheels", {"all", "ios"}, "13.0")
    assert names <= found
    assert found <= set(public_names("aarch64-ios.15.1"))


def imported(content: bytes) -> set[str]:
    """Return what a library has dyld take from the C library."""
    parsed = lief.MachO.parse(list(content))
    assert parsed is not None
    return {
        str(binding.symbol.name).removeprefix("_")
        for image in parsed
        for binding in image.bindings
        if binding.symbol is not None and binding.library is not None and binding.library.name == SYSTEM
    }
