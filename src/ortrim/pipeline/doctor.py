"""What this machine has and lacks for building, and how to get what it lacks. Looks only; installs nothing.

- What this machine has for Apple's systems: Xcode, and its ways to simulators and phones.
- What this machine has for verifying on others: emulators, the ways to real devices, and the parts of machines.
- What this machine has for verifying on device farms: their programs, and whether there are credentials.
"""

import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ortrim.base.cache import cache_folder
from ortrim.base.emulators import EMULATIONS, PACKAGES_FILE, QEMU_SYSTEM, X64_USER, machine_folder
from ortrim.base.tools import ALL_TARGETS, Tool, ToolFinding, require
from ortrim.build.container_engines import ENGINES, ContainerEngine, probe
from ortrim.errors import Diagnostic, StorageError, ToolError
from ortrim.platforms.android.jni import find_jdk
from ortrim.platforms.android.ndk import installed_ndk
from ortrim.platforms.apple.xcode import find_xcode, find_xcrun

XCODE: Final = "Xcode"
COMPILING: Final = "ios and maccatalyst targets, and macos targets on a Mac; elsewhere: --executor github"
VERIFYING: Final = {
    "simctl": "ios-simulator targets: verification on 'simctl' simulators",
    "devicectl": "ios-arm64: verification on 'devicectl' phones",
}
"""Tools that `xcrun` finds in the Xcode that is chosen, and what each is needed for."""


def _xcode() -> ToolFinding:
    try:
        xcode = find_xcode()
    except ToolError as error:
        return _absent(XCODE, COMPILING, error)
    return ToolFinding(name=XCODE, found=f"{xcode.version} ({xcode.folder})", needed_for=COMPILING, required=False)


def _doctor_apple_tool_check(tool: str, needed_for: str) -> Callable[[], ToolFinding]:
    def check() -> ToolFinding:
        try:
            xcrun = find_xcrun(tool)
        except ToolError as error:
            return _absent(tool, needed_for, error)
        return ToolFinding(name=tool, found=f"by {xcrun.program}", needed_for=needed_for, required=False)

    return check


def _absent(name: str, needed_for: str, error: ToolError) -> ToolFinding:
    problem, remedy = ": ".join(filter(None, (error.what, error.why))), error.hint.removeprefix("run: ")
    return ToolFinding(name=name, found="", needed_for=needed_for, required=False, problem=problem, remedy=remedy)


APPLE_CHECKS: Final[tuple[tuple[str, Callable[[], ToolFinding]], ...]] = (
    (XCODE, _xcode),
    *((tool, _doctor_apple_tool_check(tool, needed_for)) for tool, needed_for in VERIFYING.items()),
)
"""By the name of the finding."""


FETCH_COMMAND: Final = "invoke devices --fetch"
SHOWN_PACKAGES: Final = ("linux-image", "libc6")
"""The kernel and the C library: what a machine is, for who reads a list."""
SSH: Final = Tool(name="ssh", package="openssh-client", version_words=("-V",))
DEVICE_TOOLS: Final = (
    (EMULATIONS["arm64"].user, "linux-arm64: verification on 'qemu-user'"),
    (EMULATIONS["arm"].user, "linux-armhf: verification on 'qemu-user'"),
    (EMULATIONS["riscv64"].user, "linux-riscv64: verification on 'qemu-user'"),
    (X64_USER, "models with layout = 'nchwc8': conversion"),
    (QEMU_SYSTEM, "linux-arm64, linux-armhf: verification on 'qemu-system'"),
    (Tool(name="adb", package="adb", minimum=(1, 0, 41)), "verification on 'adb' devices"),
    (SSH, "verification on 'ssh' machines"),
)
"""Programs, and what each is needed for."""


def machine_parts_found(debian: str) -> str:
    """Return what the cache holds of an emulated machine, by Debian's word for it; empty when it was not fetched."""
    try:
        text = (machine_folder(debian) / PACKAGES_FILE).read_text(encoding="utf-8")
        packages = [(str(entry["name"]), str(entry["version"])) for entry in json.loads(text)["packages"]]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return ", ".join(f"{name} {version}" for name, version in packages if name.startswith(SHOWN_PACKAGES))


FIREBASE: Final = "verification on 'firebase' devices"
AWS: Final = "verification on 'devicefarm' devices"
BROWSERSTACK: Final = "verification on 'browserstack' devices"
EXTRA: Final = 'pip install "ortrim[devicefarm]"'


def _gcloud() -> ToolFinding:
    from ortrim.farms.firebase import find_gcloud  # noqa: PLC0415 - loaded when asked for

    try:
        gcloud = find_gcloud()
    except ToolError as error:
        return _finding("gcloud", FIREBASE, "", error.what, error.hint.removeprefix("run: "))
    return _finding("gcloud", FIREBASE, f"{gcloud.version} ({gcloud.program})")


def _boto3() -> ToolFinding:
    try:
        return _finding("boto3", AWS, importlib.metadata.version("boto3"))
    except importlib.metadata.PackageNotFoundError:
        return _finding("boto3", AWS, "", "is not installed", EXTRA)


def _browserstack() -> ToolFinding:
    from ortrim.farms.farm import absent_variables  # noqa: PLC0415 - as above

    absent = absent_variables(os.environ)
    if absent:
        remedy = "set both, from https://www.browserstack.com/accounts/profile"
        return _finding("BrowserStack", BROWSERSTACK, "", f"not set: {' and '.join(absent)}", remedy)
    return _finding("BrowserStack", BROWSERSTACK, "user name and access key are set")


def _finding(name: str, needed_for: str, found: str, problem: str = "", remedy: str = "") -> ToolFinding:
    return ToolFinding(name=name, found=found, needed_for=needed_for, required=False, problem=problem, remedy=remedy)


FARM_CHECKS: Final[tuple[tuple[str, Callable[[], ToolFinding]], ...]] = (
    ("gcloud", _gcloud),
    ("boto3", _boto3),
    ("BrowserStack", _browserstack),
)
"""By the name of the finding."""


GIGABYTE: Final = 10**9
CACHE_BYTES: Final = 4 * GIGABYTE
"""Room for the sources (0.5 GB unpacked), the tools (0.8 GB), the compiler cache and a build, of 1.21.0."""
MEMORY_BYTES: Final = 2 * GIGABYTE
"""What one compilation may take: bare `--parallel` exhausts machines (microsoft/onnxruntime#22859)."""
NDK: Final = "Android NDK"
JDK: Final = "JDK"

TOOLS: Final = (
    (Tool(name="git", package="git", minimum=(2, 20)), f"{ALL_TARGETS}: sources of kind 'git'"),
    (Tool(name="apt-get", package="apt"), f"{ALL_TARGETS}: sources of kind 'debian'"),
    (Tool(name="dpkg-deb", package="dpkg"), f"{ALL_TARGETS}: sources of kind 'debian'"),
    (Tool(name="gcc", package="gcc", minimum=(11,)), "the host's target with compiler = 'gcc'"),
    (Tool(name="g++", package="g++", minimum=(11,)), "the host's target with compiler = 'gcc'"),
    (Tool(name="clang", package="clang", minimum=(14,)), "the host's target with compiler = 'clang'"),
    (Tool(name="clang++", package="clang", minimum=(14,)), "the host's target with compiler = 'clang'"),
)


def examine() -> tuple[ToolFinding, ...]:
    """Examine this machine. Raises nothing: what cannot be examined is a finding that says why."""
    checks: tuple[tuple[str, Callable[[], ToolFinding]], ...] = (
        ("Python", _python),
        ("pip", _pip),
        ("processors", _processors),
        ("memory", _memory),
        ("cache folder", _cache),
    )
    general = tuple(_guarded(name, check) for name, check in checks)
    tools = tuple(_guarded(tool.name, _tool_check(tool, purpose)) for tool, purpose in (*TOOLS, *DEVICE_TOOLS))
    mobile = (_guarded(NDK, _ndk), _guarded(JDK, _jdk))
    apple = tuple(_guarded(name, check, required=False) for name, check in APPLE_CHECKS)
    engines = tuple(_guarded(engine.tool.name, _engine_check(engine)) for engine in ENGINES)
    machines = tuple(_machine_parts(emulation.debian) for emulation in EMULATIONS.values())
    farms = tuple(_guarded(name, check, required=False) for name, check in FARM_CHECKS)
    return general + tools + mobile + apple + engines + machines + farms


def _guarded(name: str, check: Callable[[], ToolFinding], *, required: bool = True) -> ToolFinding:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a doctor who dies of one symptom is no use
        return ToolFinding(name=name, found="", required=required, problem=f"cannot be examined: {error}")


def _python() -> ToolFinding:
    found = f"{platform.python_version()} ({sys.executable})"
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return ToolFinding(name="Python", found=found)
    problem = "ortrim runs on 3.11, 3.12 and 3.13"
    return ToolFinding(name="Python", found=found, problem=problem, remedy="install ortrim with one of these")


def _pip() -> ToolFinding:
    needed_for = f"{ALL_TARGETS}: the toolchain, models in wheels, other converter versions"
    try:
        return ToolFinding(name="pip", found=importlib.metadata.version("pip"), needed_for=needed_for)
    except importlib.metadata.PackageNotFoundError:
        remedy = f"{sys.executable} -m ensurepip"
        return ToolFinding(name="pip", found="", needed_for=needed_for, problem="is not installed", remedy=remedy)


def _processors() -> ToolFinding:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return ToolFinding(name="processors", found=str(count), needed_for="the time that a build takes", required=False)


def _memory() -> ToolFinding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    problem = (
        "" if total >= MEMORY_BYTES else f"less than {MEMORY_BYTES // GIGABYTE} GB, which one compilation may take"
    )
    remedy = "use a machine with more memory" if problem else ""
    return ToolFinding(name="memory", found=f"{total / GIGABYTE:.1f} GB", problem=problem, remedy=remedy)


def _cache() -> ToolFinding:
    remedy = "set the environment variable ORTRIM_CACHE to a writable folder with enough space"
    try:
        folder = cache_folder("sources").parent
        free = shutil.disk_usage(folder).free
    except StorageError as error:
        return ToolFinding(name="cache folder", found="", problem=f"{error.what}: {error.why}", remedy=remedy)
    except OSError as error:
        return ToolFinding(name="cache folder", found="", problem=str(error), remedy=remedy)
    found = f"{free / GIGABYTE:.1f} GB free ({folder})"
    if not os.access(folder, os.W_OK):
        return ToolFinding(name="cache folder", found=found, problem="is not writable", remedy=remedy)
    if free < CACHE_BYTES:
        problem = f"less than {CACHE_BYTES // GIGABYTE} GB, which sources, tools and a build take"
        return ToolFinding(name="cache folder", found=found, problem=problem, remedy=remedy)
    return ToolFinding(name="cache folder", found=found)


def _ndk() -> ToolFinding:
    needed_for = "android targets; invoke plan --target android shows the version that each target needs"
    try:
        ndk = installed_ndk()
    except ToolError as error:
        problem = ": ".join(filter(None, (error.what, error.why)))
        return ToolFinding(
            name=NDK, found="", needed_for=needed_for, required=False, problem=problem, remedy=error.hint
        )
    return ToolFinding(name=NDK, found=f"{ndk.version} ({ndk.folder})", needed_for=needed_for, required=False)


def _jdk() -> ToolFinding:
    needed_for = "android targets: the classes and the JNI library of an AAR"
    try:
        jdk = find_jdk()
    except ToolError as error:
        problem, remedy = error.why or error.what, error.hint.removeprefix("run: ")
        return ToolFinding(name=JDK, found="", needed_for=needed_for, required=False, problem=problem, remedy=remedy)
    return ToolFinding(name=JDK, found=f"{jdk.version} ({jdk.javac})", needed_for=needed_for, required=False)


def _machine_parts(debian: str) -> ToolFinding:
    """Look for the parts of an emulated machine in the cache."""
    name = f"{debian} machine"
    found, needed_for = "", "verification on 'qemu-user' and 'qemu-system'"
    with suppress(StorageError):
        found = machine_parts_found(debian)
    if found:
        return ToolFinding(name=name, found=found, needed_for=needed_for, required=False)
    problem = "its kernel and libraries are not downloaded yet; the first verification downloads them"
    return ToolFinding(
        name=name, found="", needed_for=needed_for, required=False, problem=problem, remedy=FETCH_COMMAND
    )


def _engine_check(engine: ContainerEngine) -> Callable[[], ToolFinding]:
    name, needed_for = engine.tool.name, "--executor container (one of these engines is enough)"

    def check() -> ToolFinding:
        try:
            usable = probe(engine)
        except Diagnostic as error:
            remedy = error.hint.removeprefix("run: ")
            return ToolFinding(
                name=name, found="", needed_for=needed_for, required=False, problem=error.what, remedy=remedy
            )
        found = f"{usable.version}{' (rootless)' if usable.rootless else ''}"
        return ToolFinding(name=name, found=found, needed_for=needed_for, required=False)

    return check


def _tool_check(tool: Tool, needed_for: str) -> Callable[[], ToolFinding]:
    def check() -> ToolFinding:
        try:
            installed = require(tool)
        except ToolError as error:
            remedy = error.hint.removeprefix("run: ")
            return ToolFinding(
                name=tool.name, found="", needed_for=needed_for, required=False, problem=error.what, remedy=remedy
            )
        found = f"{installed.version} ({installed.path})"
        return ToolFinding(name=tool.name, found=found, needed_for=needed_for, required=False)

    return check
