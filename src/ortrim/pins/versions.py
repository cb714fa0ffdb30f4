"""Which ONNX Runtime a word of a buildspec means, and which models each version loads, as `onnxruntime.toml` says.

Lower than the specifications and models that ask for it; where a version's sources are is in `pins.runtime`.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ortrim.pins.shipped import pin_text, shipped_text

NEWEST: Final = "newest"
MINOR: Final = re.compile(r"[0-9]+\.[0-9]+")
SOURCE_PINS: Final = ("upstream", "debian")
"""The kinds of pin files that say where a version's sources are."""


@dataclass(frozen=True, kw_only=True)
class VersionLimits:
    """The newest opsets of `ai.onnx` and `ai.onnx.ml`, and the newest IR version, that a version loads.

    `ml_opset` is None where it was not tried.
    """

    opset: int
    ml_opset: int | None
    ir_version: int


def default_version() -> str:
    """Return the version of buildspecs that name none: the newest that ortrim's own CI has proved."""
    version: str = _file()["default"]
    return version


def exact_version(word: str) -> str:
    """Return the version that is meant by `1.30` (its newest patch) or `newest` (the newest with pinned sources).

    A whole version is returned as it is, known or not. So is the first of a minor version of which none is known:
    whoever looks for its pins says what there is instead.
    """
    if word == NEWEST:
        return next((version for version in reversed(_known()) if _has_sources(version)), default_version())
    if MINOR.fullmatch(word):
        return next((version for version in reversed(_known()) if version.startswith(f"{word}.")), f"{word}.0")
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


def _has_sources(version: str) -> bool:
    return any(pin_text(f"onnxruntime-{version}-{kind}.toml") is not None for kind in SOURCE_PINS)


def _known() -> dict[str, dict[str, Any]]:
    """Return the entries of the versions that are not known to be broken, oldest first."""
    return {version: entry for version, entry in _file()["versions"].items() if "known_broken" not in entry}


def _file() -> dict[str, Any]:
    return _parsed(shipped_text("onnxruntime.toml"))


@cache
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)
