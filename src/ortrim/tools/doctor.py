"""What this machine has and lacks for building, and how to get what it lacks. Looks only; installs nothing."""

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ortrim.errors import Diagnostic, StorageError, ToolError
from ortrim.storage.cache import cache_folder
from ortrim.tools.base import Tool, require
from ortrim.tools.containers import Engine
from ortrim.tools.containers_choice import ENGINES, probe
from ortrim.tools.doctor_apple import APPLE_CHECKS
from ortrim.tools.doctor_devices import DEVICE_TOOLS, FETCH_COMMAND, machine_parts_found
from ortrim.tools.doctor_farms import FARM_CHECKS
from ortrim.tools.emulators import EMULATIONS
from ortrim.tools.findings import ALL_TARGETS, Finding
from ortrim.tools.javac import find_jdk
from ortrim.tools.ndk import installed_ndk

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


def examine() -> tuple[Finding, ...]:
    """Examine this machine. Raises nothing: what cannot be examined is a finding that says why."""
    checks: tuple[tuple[str, Callable[[], Finding]], ...] = (
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


def _guarded(name: str, check: Callable[[], Finding], *, required: bool = True) -> Finding:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a doctor who dies of one symptom is no use
        return Finding(name=name, found="", required=required, problem=f"cannot be examined: {error}")


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding(name="Python", found=found)
    problem = "ortrim runs on 3.11, 3.12 and 3.13"
    return Finding(name="Python", found=found, problem=problem, remedy="install ortrim with one of these")


def _pip() -> Finding:
    needed_for = f"{ALL_TARGETS}: the toolchain, models in wheels, other converter versions"
    try:
        return Finding(name="pip", found=importlib.metadata.version("pip"), needed_for=needed_for)
    except importlib.metadata.PackageNotFoundError:
        remedy = f"{sys.executable} -m ensurepip"
        return Finding(name="pip", found="", needed_for=needed_for, problem="is not installed", remedy=remedy)


def _processors() -> Finding:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Finding(name="processors", found=str(count), needed_for="the time that a build takes", required=False)


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    problem = (
        "" if total >= MEMORY_BYTES else f"less than {MEMORY_BYTES // GIGABYTE} GB, which one compilation may take"
    )
    remedy = "use a machine with more memory" if problem else ""
    return Finding(name="memory", found=f"{total / GIGABYTE:.1f} GB", problem=problem, remedy=remedy)


def _cache() -> Finding:
    remedy = "name a folder with space, and yours to write to, in the environment variable ORTRIM_CACHE"
    try:
        folder = cache_folder("sources").parent
        free = shutil.disk_usage(folder).free
    except StorageError as error:
        return Finding(name="cache folder", found="", problem=f"{error.what}: {error.why}", remedy=remedy)
    except OSError as error:
        return Finding(name="cache folder", found="", problem=str(error), remedy=remedy)
    found = f"{free / GIGABYTE:.1f} GB free ({folder})"
    if not os.access(folder, os.W_OK):
        return Finding(name="cache folder", found=found, problem="is not writable", remedy=remedy)
    if free < CACHE_BYTES:
        problem = f"less than {CACHE_BYTES // GIGABYTE} GB, which sources, tools and a build take"
        return Finding(name="cache folder", found=found, problem=problem, remedy=remedy)
    return Finding(name="cache folder", found=found)


def _ndk() -> Finding:
    needed_for = "android targets; invoke plan --target android shows the version that each wants"
    try:
        ndk = installed_ndk()
    except ToolError as error:
        problem = ": ".join(filter(None, (error.what, error.why)))
        return Finding(name=NDK, found="", needed_for=needed_for, required=False, problem=problem, remedy=error.hint)
    return Finding(name=NDK, found=f"{ndk.version} ({ndk.folder})", needed_for=needed_for, required=False)


def _jdk() -> Finding:
    needed_for = "android targets: the classes and the JNI library of an AAR"
    try:
        jdk = find_jdk()
    except ToolError as error:
        problem, remedy = error.why or error.what, error.hint.removeprefix("run: ")
        return Finding(name=JDK, found="", needed_for=needed_for, required=False, problem=problem, remedy=remedy)
    return Finding(name=JDK, found=f"{jdk.version} ({jdk.javac})", needed_for=needed_for, required=False)


def _machine_parts(debian: str) -> Finding:
    """Look for the parts of an emulated machine in the cache."""
    name = f"{debian} machine"
    found, needed_for = "", "verification on 'qemu-user' and 'qemu-system'"
    with suppress(StorageError):
        found = machine_parts_found(debian)
    if found:
        return Finding(name=name, found=found, needed_for=needed_for, required=False)
    problem = "its kernel and libraries are not fetched yet; the first verification does it"
    return Finding(name=name, found="", needed_for=needed_for, required=False, problem=problem, remedy=FETCH_COMMAND)


def _engine_check(engine: Engine) -> Callable[[], Finding]:
    name, needed_for = engine.tool.name, "--executor container, where one of these engines is enough"

    def check() -> Finding:
        try:
            usable = probe(engine)
        except Diagnostic as error:
            remedy = error.hint.removeprefix("run: ")
            return Finding(
                name=name, found="", needed_for=needed_for, required=False, problem=error.what, remedy=remedy
            )
        found = f"{usable.version}{' (rootless)' if usable.rootless else ''}"
        return Finding(name=name, found=found, needed_for=needed_for, required=False)

    return check


def _tool_check(tool: Tool, needed_for: str) -> Callable[[], Finding]:
    def check() -> Finding:
        try:
            installed = require(tool)
        except ToolError as error:
            remedy = error.hint.removeprefix("run: ")
            return Finding(
                name=tool.name, found="", needed_for=needed_for, required=False, problem=error.what, remedy=remedy
            )
        found = f"{installed.version} ({installed.path})"
        return Finding(name=tool.name, found=found, needed_for=needed_for, required=False)

    return check
