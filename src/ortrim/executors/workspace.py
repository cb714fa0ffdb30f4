"""The folder that a job works in, and all that the job sees of this machine."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.plan import Toolchain
from ortrim.executors.paths import JobPaths
from ortrim.storage.files import write_if_changed
from ortrim.tools.environments import environment_with
from ortrim.tools.ndk import find_ndk
from ortrim.tools.xcode import find_xcode

UNREACHED: Final = "unreached.ld"
"""The linker's script of what is left out, which a first link finds empty and later ones as it was left."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Complete folders that jobs only read: source tree, tool packages, the runner's source, the CMake hooks.

    `ndk` is where to look for Android's NDK; None for where the environment says. `image_ndk` is where a container's
    image has the one that a job needs, if jobs run in one.
    """

    sources: Path
    tools: Path
    runner: Path
    hooks: Path
    ndk: Path | None = None
    image_ndk: Path | None = None


def prepare_workspace(
    work: Path, inputs: Inputs, toolchain: Toolchain, operator_config: str = "", zig: Path | None = None
) -> JobPaths:
    """Make the folders and small files of a job's workspace, or make them anew, and return where they are.

    What zig compiles of its own libraries lies in the workspace, unless `zig` names a folder that outlives it.

    Raises `ToolError` when the toolchain is an NDK or an Xcode that is not here, and `StorageError`.
    """
    paths = JobPaths(
        sources=inputs.sources,
        build=work / "out",
        tools=inputs.tools,
        wrappers=work / "wrappers",
        zig=zig or work / "zig",
        config=work / "operators.config",
        runner=inputs.runner,
        hooks=work / "hooks",
        ndk=_ndk(inputs, toolchain),
        xcode=find_xcode(toolchain.version).folder if toolchain.kind == "xcode" else Path(),
    )
    for folder in (paths.wrappers, paths.build, paths.zig):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in toolchain.wrappers:
        write_if_changed(paths.wrappers / name, text)
        (paths.wrappers / name).chmod(0o755)
    paths.config.write_text(operator_config, encoding="utf-8")
    for hook in sorted(inputs.hooks.iterdir()):
        write_if_changed(paths.hooks / hook.name, hook.read_text(encoding="utf-8"))
    if not (paths.hooks / UNREACHED).exists():
        write_if_changed(paths.hooks / UNREACHED, "")
    return paths


def _ndk(inputs: Inputs, toolchain: Toolchain) -> Path:
    if toolchain.kind != "ndk":
        return Path()
    return inputs.image_ndk or find_ndk(toolchain.version, named=inputs.ndk).folder


def job_environment(paths: JobPaths, toolchain: Toolchain) -> dict[str, str]:
    """Return the whole environment of a job.

    The dates are those of upstream's `__DATE__`, which must not change between builds.
    """
    return environment_with(paths.tools) | {
        "CC": str(paths.wrappers / "cc"),
        "CXX": str(paths.wrappers / "c++"),
        "HOME": str(paths.build),
        "ORTRIM_BUILD": str(paths.configured),
        "ORTRIM_LINK_MAP": str(paths.link_map),
        "ORTRIM_PRECOMPILED_HEADER": str(paths.hooks / "precompiled.h"),
        "ORTRIM_SOURCES": str(paths.sources),
        "ORTRIM_SOURCES_HERE": os.path.relpath(paths.sources, paths.configured),
        "SOURCE_DATE_EPOCH": "315532800",
        "TZ": "UTC",
        "ZIG_GLOBAL_CACHE_DIR": str(paths.zig),
        "ZIG_LOCAL_CACHE_DIR": str(paths.compiler_scratch),
        **{name: _program(paths.resolve(value)) for name, value in toolchain.environment},
    }


def _program(name: str) -> str:
    """Return where PATH has a program that a toolchain gives by its mere name, so that plans hold no path."""
    return name if "/" in name else shutil.which(name) or name
