"""The versions of ONNX Runtime that `onnxruntime.toml` knows, which a buildspec means, and which models each loads."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ortrim.errors import SpecError
from ortrim.pins.shipped import pin_text, shipped_text

VERSIONS_FILE: Final = "onnxruntime.toml"
NEWEST: Final = "newest"
MINOR: Final = re.compile(r"[0-9]+\.[0-9]+")
SOURCE_PINS: Final = ("upstream", "debian")
"""The kinds of pin files that say where a version's sources are."""


@dataclass(frozen=True, kw_only=True)
class VersionLimits:
    """The newest opsets of `ai.onnx` and `ai.onnx.ml` (None if untried) and IR version that a version loads."""

    opset: int
    ml_opset: int | None
    ir_version: int


def versions_file() -> dict[str, Any]:
    """Return `onnxruntime.toml` as data; it travels with ortrim and is checked by a test."""
    return _parsed(shipped_text(VERSIONS_FILE))


@cache
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def default_version() -> str:
    """Return the version of buildspecs that name none: the newest that ortrim's own CI has proved."""
    version: str = versions_file()["default"]
    return version


def supported_versions() -> tuple[str, ...]:
    """Return the versions that are known and not broken, oldest first."""
    return tuple(_known())


def known_version(version: str) -> dict[str, Any]:
    """Return the entry of a version that can be built."""
    where = "onnxruntime.version"
    entry: dict[str, Any] | None = versions_file()["versions"].get(version)
    if entry is None:
        hint = f"the nearest version that ortrim knows is {_nearest(version)}; all: {', '.join(supported_versions())}"
        raise SpecError("unknown-version", f"ONNX Runtime {version} is not known to ortrim", where=where, hint=hint)
    if "known_broken" in entry:
        broken = entry["known_broken"]
        what, hint = f"ONNX Runtime {version} is known to be broken", f"use {broken['instead']}"
        raise SpecError("known-broken-version", what, where=where, why=broken["reason"], hint=hint)
    return entry


def pin_file_name(version: str, kind: str) -> str:
    """Return the name of the file that pins one kind of source of one version."""
    return f"onnxruntime-{version}-{kind}.toml"


def newest_pinned() -> str:
    """Return the newest version whose sources are pinned, from wherever they come."""
    pinned = (
        version
        for version in reversed(supported_versions())
        if any(pin_text(pin_file_name(version, kind)) is not None for kind in SOURCE_PINS)
    )
    return next(pinned, default_version())


def exact_version(word: str) -> str:
    """Return the version that is meant by `1.30` (its newest patch) or `newest` (the newest with pinned sources).

    A whole version is returned as it is, and the first of an unknown minor version: who looks for its pins says more.
    """
    if word == NEWEST:
        return newest_pinned()
    if MINOR.fullmatch(word):
        patches = (version for version in reversed(supported_versions()) if version.startswith(f"{word}."))
        return next(patches, f"{word}.0")
    return word


def limits_of(version: str) -> VersionLimits | None:
    """Return the limits of a version; None when they are not recorded, so that the converter has to judge."""
    entry = _known().get(version)
    if entry is None:
        return None
    return VersionLimits(
        opset=entry["max_opset"], ml_opset=entry.get("max_ml_opset"), ir_version=entry["max_ir_version"]
    )


def needed_for_opset(domain: str, opset: int) -> str:
    """Return in words which ONNX Runtime loads an opset of `ai.onnx` or `ai.onnx.ml`."""
    key = {"ai.onnx": "max_opset", "ai.onnx.ml": "max_ml_opset"}[domain]
    return _needed(key, opset, f"opset {opset} of {domain}")


def needed_for_ir_version(ir_version: int) -> str:
    """Return in words which ONNX Runtime loads an IR version."""
    return _needed("max_ir_version", ir_version, f"IR version {ir_version}")


def _needed(key: str, least: int, what: str) -> str:
    known = _known()
    first = next((version for version, entry in known.items() if entry.get(key, 0) >= least), None)
    if first is None:
        return f"no ONNX Runtime that ortrim knows loads {what}; the newest is {list(known)[-1]}"
    return f"{what} needs ONNX Runtime {first} or later"


def _known() -> dict[str, dict[str, Any]]:
    """Return the entries of the versions that are not known to be broken, oldest first."""
    return {version: entry for version, entry in versions_file()["versions"].items() if "known_broken" not in entry}


def _nearest(version: str) -> str:
    return min(supported_versions(), key=lambda known: abs(_as_number(known) - _as_number(version)))


def _as_number(version: str) -> int:
    """Return a version as one number, so that versions have a distance; what is not a digit counts as none."""
    parts = [int("".join(filter(str.isdecimal, part)) or 0) for part in version.split(".")[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return (major * 1000 + minor) * 1000 + patch
