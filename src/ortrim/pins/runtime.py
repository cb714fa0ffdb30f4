"""The versions of ONNX Runtime that ortrim knows."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from ortrim.errors import SpecError
from ortrim.pins.pin_files import read_git_pin, read_source_set
from ortrim.pins.shipped import pin_text
from ortrim.pins.source_sets import GitPin, SourceSet
from ortrim.pins.tools import converter_requirements


@dataclass(frozen=True, kw_only=True)
class ApplePins:
    """Facts for Apple's systems of one version of ONNX Runtime: the lowest deployment targets, and GitHub's Xcode.

    `maccatalyst` is a version of iOS, and that of `ios` where upstream's own is not known.
    """

    ios: str
    macos: str
    maccatalyst: str
    xcode: str


@dataclass(frozen=True, kw_only=True)
class RuntimePins:
    """One version of ONNX Runtime: what it can load and where its sources are pinned.

    `sources` holds the sets that are pinned, in the order in which `auto` tries them; `git` is the commit when
    pinned. `converter_requirements` is the text of a requirements file, None when that is not pinned. `ndk` is the
    version of Android's NDK that upstream builds with, `apple` what it builds for Apple's systems; None when that is
    not known.
    """

    version: str
    max_opset: int
    max_ir_version: int
    converter_requirements: str | None
    sources: tuple[SourceSet, ...]
    git: GitPin | None
    ndk: str | None = None
    apple: ApplePins | None = None


@cache
def versions_file() -> dict[str, Any]:
    """Return `onnxruntime.toml` as data; it travels with ortrim and is checked by a test."""
    text = pin_text("onnxruntime.toml")
    assert text is not None
    return tomllib.loads(text)


def supported_versions() -> tuple[str, ...]:
    """Return the versions that are known and not broken, oldest first."""
    return tuple(version for version, entry in versions_file()["versions"].items() if "known_broken" not in entry)


def licence_ids() -> dict[str, str]:
    """Return the SPDX licence identifier of each component."""
    return {name: entry["licence"] for name, entry in versions_file()["components"].items()}


def upstream_names() -> dict[str, str]:
    """Return the components by their names in ONNX Runtime's `cmake/deps.txt`."""
    components = versions_file()["components"]
    return {entry["upstream"]: name for name, entry in components.items() if "upstream" in entry}


def runtime_pins(version: str) -> RuntimePins:
    """Return what is pinned for one version of ONNX Runtime.

    Raises `SpecError` (`unknown-version`, `known-broken-version`), or `SourcesError` when a pin file is not valid.
    """
    entry = known_version(version)
    return RuntimePins(
        version=version,
        max_opset=entry["max_opset"],
        max_ir_version=entry["max_ir_version"],
        converter_requirements=converter_requirements(version),
        sources=_source_sets(version),
        git=_git_pin(version),
        ndk=entry.get("ndk"),
        apple=_apple_pins(entry.get("apple")),
    )


def known_version(version: str) -> dict[str, Any]:
    """Return the entry of a version that can be built. Raises `SpecError` as `runtime_pins` does."""
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


def _apple_pins(entry: dict[str, str] | None) -> ApplePins | None:
    return None if entry is None else ApplePins(**{"maccatalyst": entry["ios"]} | entry)


def pin_file_name(version: str, kind: str) -> str:
    """Return the name of the file that pins one kind of source of one version."""
    return f"onnxruntime-{version}-{kind}.toml"


def _source_sets(version: str) -> tuple[SourceSet, ...]:
    sets = []
    for kind in ("archive", "debian"):
        name = pin_file_name(version, kind)
        if (text := pin_text(name)) is not None:
            sets.append(read_source_set(text, kind, name, licence_ids()))
    return tuple(sets)


def _git_pin(version: str) -> GitPin | None:
    name = pin_file_name(version, "git")
    text = pin_text(name)
    return None if text is None else read_git_pin(text, name)


def _nearest(version: str) -> str:
    return min(supported_versions(), key=lambda known: abs(_as_number(known) - _as_number(version)))


def _as_number(version: str) -> int:
    """Return a version as one number, so that versions have a distance; what is not a digit counts as none."""
    parts = [int("".join(filter(str.isdecimal, part)) or 0) for part in version.split(".")[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return (major * 1000 + minor) * 1000 + patch
