"""The official library for a machine that is not this one: what a trimmed library for it is held against there."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.environments import packages_folder
from ortrim.tools.full_runtime import DISTRIBUTION

WHEEL_PLATFORMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "arm64": (
            "manylinux_2_28_aarch64",
            "manylinux_2_27_aarch64",
            "manylinux_2_17_aarch64",
            "manylinux2014_aarch64",
        ),
        "x64": ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    }
)
"""By the architecture's name in `core.targets`; upstream publishes wheels for Linux for no other."""
MAC_PLATFORMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        architecture: tuple(
            f"macosx_{system}_{kind}" for system in ("14_0", "13_0", "11_0", "10_15") for kind in ("universal2", own)
        )
        for architecture, own in (("arm64", "arm64"), ("x64", "x86_64"))
    }
)
"""The wheels for Macs, of both kinds or of one, by the oldest system that any version was built for."""


def foreign_library(version: str, requirements: str | None, architecture: str) -> Path | None:
    """Return `libonnxruntime.so` of the official wheel for another machine, pinned by the same hashes as this one's.

    `requirements` is the text of the version's requirements file; None when there are no pins for it. Returns None
    when there is no such wheel. Raises `ToolError` (`baseline-incomplete`) and what `packages_folder` raises.
    """
    return _library(version, requirements, WHEEL_PLATFORMS.get(architecture), f"libonnxruntime.so.{version}")


def mac_library(version: str, requirements: str | None, architecture: str) -> Path | None:
    """Return `libonnxruntime.dylib` of the official wheel for Macs, which may be for both kinds of them.

    As `foreign_library` does for Linux.
    """
    return _library(version, requirements, MAC_PLATFORMS.get(architecture), f"libonnxruntime.{version}.dylib")


def _library(version: str, requirements: str | None, platforms: tuple[str, ...] | None, name: str) -> Path | None:
    entry = _entry(requirements or "", version)
    if platforms is None or not entry:
        return None
    folder = packages_folder(f"{DISTRIBUTION}-{version}", entry, platforms=platforms)
    library = folder / DISTRIBUTION / "capi" / name
    if not library.is_file() or library.stat().st_size == 0:
        hint = f"remove {folder}, then run the same command again"
        raise ToolError("baseline-incomplete", "the official wheel lacks its library", where=str(library), hint=hint)
    return library


def _entry(requirements: str, version: str) -> str:
    """Return the runtime's own line of a requirements file, with the lines of hashes that continue it."""
    found = re.search(rf"^{DISTRIBUTION}=={re.escape(version)}(?: .*\\\n(?:.*\\\n)*.*)?$", requirements, re.MULTILINE)
    return f"{found[0]}\n" if found and "--hash=" in found[0] else ""
