"""What this machine has and lacks for building, and how to get what it lacks. Looks only; installs nothing."""

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ortrim.base.cache import cache_folder
from ortrim.base.tools import (
    ALL_TARGETS,
    EMULATIONS,
    QEMU_SYSTEM,
    X64_USER,
    Tool,
    ToolFinding,
    find_xcrun,
    machine_folder,
    require,
)
from ortrim.binaries.macho.layout import require_lief
from ortrim.compiling.container_engines import ENGINES, ContainerEngine, probe
from ortrim.devices import adb, ssh
from ortrim.devices.farms import aws_device_farm, firebase
from ortrim.errors import Diagnostic, StorageError
from ortrim.platforms.android.jni import find_jdk
from ortrim.platforms.android.ndk import installed_ndk
from ortrim.platforms.apple.xcode import find_xcode
from ortrim.sources.debian import read_packages

FETCH_COMMAND: Final = "invoke devices --fetch"
SHOWN_PACKAGES: Final = ("linux-image", "libc6")
"""The kernel and the C library: what a machine is, for who reads a list."""
GIGABYTE: Final = 10**9
CACHE_BYTES: Final = 4 * GIGABYTE
"""Room for the sources (0.5 GB unpacked), the tools (0.8 GB), the compiler cache and a build, of 1.21.0."""
MEMORY_BYTES: Final = 2 * GIGABYTE
"""What one compilation may take: bare `--parallel` exhausts machines (microsoft/onnxruntime#22859)."""
Examined = tuple[str, str, str]
"""What was found, what is wrong with it, and what helps."""


@dataclass(frozen=True)
class ToolCheck:
    """A thing to look for: `look` returns it in words, with what is wrong if anything is, or raises what is wrong.

    Of what it raises, the reason is told as well where it is `explained`.
    """

    name: str
    needed_for: str
    look: Callable[[], str | Examined]
    required: bool = False
    explained: bool = True

    def finding(self) -> ToolFinding:
        """Look. Raises nothing: what cannot be examined is a finding that says why."""
        try:
            answer = self.look()
            found, problem, remedy = (answer, "", "") if isinstance(answer, str) else answer
        except Diagnostic as error:
            why = error.why if self.explained else ""
            found, problem, remedy = "", ": ".join(filter(None, (error.what, why))), error.hint.removeprefix("run: ")
        except Exception as error:  # noqa: BLE001 - a doctor who dies of one symptom is no use
            found, problem, remedy = "", f"cannot be examined: {error}", ""
        return ToolFinding(
            name=self.name,
            found=found,
            needed_for=self.needed_for,
            required=self.required,
            problem=problem,
            remedy=remedy,
        )


def examine() -> tuple[ToolFinding, ...]:
    """Examine this machine. Raises nothing: what cannot be examined is a finding that says why."""
    tools = (_tool_check(tool, purpose) for tool, purpose in (*TOOLS, *DEVICE_TOOLS))
    machines = (_machine_check(emulation.debian) for emulation in EMULATIONS.values())
    engines = map(_engine_check, ENGINES)
    checks = (*GENERAL_CHECKS, *tools, *MOBILE_CHECKS, *APPLE_CHECKS, *engines, *machines, *FARM_CHECKS)
    return tuple(check.finding() for check in checks)


def _python() -> str | Examined:
    found = f"{platform.python_version()} ({sys.executable})"
    if (3, 11) <= sys.version_info[:2] <= (3, 14):
        return found
    return found, "ortrim runs on 3.11 to 3.14", "install ortrim with one of these"


def _distribution(name: str, remedy: str) -> str | Examined:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "", "is not installed", remedy


def _processors() -> str:
    return str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def _memory() -> str | Examined:
    if not hasattr(os, "sysconf"):
        return f"not looked at: nothing is compiled on {platform.system()}"
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = f"{total / GIGABYTE:.1f} GB"
    if total >= MEMORY_BYTES:
        return found
    problem = f"less than {MEMORY_BYTES // GIGABYTE} GB, which one compilation may take"
    return found, problem, "use a machine with more memory"


def _cache() -> str | Examined:
    remedy = "set the environment variable ORTRIM_CACHE to a writable folder with enough space"
    try:
        folder = cache_folder("sources").parent
        free = shutil.disk_usage(folder).free
    except StorageError as error:
        return "", f"{error.what}: {error.why}", remedy
    except OSError as error:
        return "", str(error), remedy
    found = f"{free / GIGABYTE:.1f} GB free ({folder})"
    if not os.access(folder, os.W_OK):
        return found, "is not writable", remedy
    if free < CACHE_BYTES:
        return found, f"less than {CACHE_BYTES // GIGABYTE} GB, which sources, tools and a build take", remedy
    return found


GENERAL_CHECKS: Final = (
    ToolCheck("Python", ALL_TARGETS, _python, required=True),
    ToolCheck(
        "pip",
        f"{ALL_TARGETS}: the toolchain, models in wheels, other converter versions",
        partial(_distribution, "pip", f"{sys.executable} -m ensurepip"),
        required=True,
    ),
    ToolCheck("processors", "the time that a build takes", _processors),
    ToolCheck("memory", ALL_TARGETS, _memory, required=True),
    ToolCheck("cache folder", ALL_TARGETS, _cache, required=True),
)

TOOLS: Final = (
    (Tool(name="git", package="git", minimum=(2, 20)), f"{ALL_TARGETS}: sources of kind 'upstream'"),
    (Tool(name="apt-get", package="apt"), f"{ALL_TARGETS}: sources of kind 'debian'"),
    (Tool(name="gcc", package="gcc", minimum=(11,)), "the host's target with compiler = 'gcc'"),
    (Tool(name="g++", package="g++", minimum=(11,)), "the host's target with compiler = 'gcc'"),
    (Tool(name="clang", package="clang", minimum=(14,)), "the host's target with compiler = 'clang'"),
    (Tool(name="clang++", package="clang", minimum=(14,)), "the host's target with compiler = 'clang'"),
)
DEVICE_TOOLS: Final = (
    (EMULATIONS["arm64"].user, "linux-arm64: verification on 'qemu-user'; Apple's arm64 targets on Linux: on 'macho'"),
    (EMULATIONS["arm"].user, "linux-armhf: verification on 'qemu-user'"),
    (EMULATIONS["riscv64"].user, "linux-riscv64: verification on 'qemu-user'"),
    (X64_USER, "models with layout = 'nchwc8': conversion"),
    (QEMU_SYSTEM, "linux-arm64, linux-armhf: verification on 'qemu-system'"),
    (adb.ADB, "verification on 'adb' devices"),
    (ssh.TOOL, "verification on 'ssh' machines"),
)
"""Programs, and what each is needed for."""


def _tool_check(tool: Tool, needed_for: str) -> ToolCheck:
    def look() -> str:
        installed = require(tool)
        return f"{installed.version} ({installed.path})"

    return ToolCheck(tool.name, needed_for, look, explained=False)


def _engine_check(engine: ContainerEngine) -> ToolCheck:
    def look() -> str:
        usable = probe(engine)
        return f"{usable.version}{' (rootless)' if usable.rootless else ''}"

    needed_for = "--executor container (one of these engines is enough)"
    return ToolCheck(engine.tool.name, needed_for, look, explained=False)


def _ndk() -> str:
    ndk = installed_ndk()
    return f"{ndk.version} ({ndk.folder})"


def _jdk() -> str:
    jdk = find_jdk()
    return f"{jdk.version} ({jdk.javac})"


MOBILE_CHECKS: Final = (
    ToolCheck(
        "Android NDK",
        "android targets that it is to compile, as zig does without; invoke plan shows the version of each",
        _ndk,
    ),
    ToolCheck("JDK", "android targets: the classes and the JNI library of an AAR", _jdk),
)


def _xcode() -> str:
    xcode = find_xcode()
    return f"{xcode.version} ({xcode.folder})"


def _xcrun(tool: str) -> str:
    return f"by {find_xcrun(tool).path}"


APPLE_CHECKS: Final = (
    ToolCheck("LIEF", "Apple's targets", require_lief, explained=False),
    ToolCheck("Xcode", "Apple's targets on a Mac, CoreML; elsewhere: --executor github", _xcode),
    ToolCheck("simctl", "ios-simulator targets: verification on 'simctl' simulators", partial(_xcrun, "simctl")),
    ToolCheck("devicectl", "ios-arm64: verification on 'devicectl' phones", partial(_xcrun, "devicectl")),
)


def machine_parts_found(debian: str) -> str:
    """Return what the cache holds of an emulated machine, by Debian's word for it; empty when it was not fetched."""
    try:
        packages = read_packages(machine_folder(debian), code="machine-damaged", what="the emulated machine")
    except Diagnostic:
        return ""
    return ", ".join(f"{each.name} {each.version}" for each in packages if each.name.startswith(SHOWN_PACKAGES))


def _machine_check(debian: str) -> ToolCheck:
    def look() -> str | Examined:
        problem = "its kernel and libraries are not downloaded yet; the first verification downloads them"
        return machine_parts_found(debian) or ("", problem, FETCH_COMMAND)

    needed_for = "verification on 'qemu-user' and 'qemu-system'"
    return ToolCheck(f"{debian} machine", needed_for, look)


FARM_CHECKS: Final = (
    ToolCheck("gcloud", "verification on 'firebase' devices", firebase.found, explained=False),
    ToolCheck("boto3", "verification on 'devicefarm' devices", aws_device_farm.found_boto3, explained=False),
)
"""What each farm is reached with."""
