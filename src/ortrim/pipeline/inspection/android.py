"""`inspect` of an AAR, of whatever origin: what is in it, and which of the properties of a good one it has."""

from pathlib import Path
from typing import Any

from ortrim.binaries.aar import read_aar
from ortrim.core.aar import AarFacts, AbiSize
from ortrim.core.android import NativeLibrary
from ortrim.core.measurements import Verdict
from ortrim.core.serialization import to_data
from ortrim.verify.android.gates import broken_rules, check_aar, own_promise


def inspect_aar(path: Path) -> dict[str, Any]:
    """Return what is in an AAR as JSON-ready data.

    `label` names it by the version that its library says of itself: sizes of different versions are not to be compared
    without. The gates are judged by what the AAR itself promises; those that fail come first, and `broken` has their
    references. Raises as `read_aar` does.
    """
    aar = read_aar(path)
    gates = check_aar(aar, own_promise(aar))
    return {
        "label": f"{aar.file}: ONNX Runtime {aar.version}" if aar.version else f"{aar.file}: of no known version",
        "version": aar.version or None,
        "package": aar.package,
        "minimum_api": aar.minimum_api,
        "broken": list(broken_rules(gates)),
        "size_bytes": aar.size_bytes,
        "members": aar.members,
        "abis": {size.abi: _size(size) for size in aar.sizes},
        "libraries": [_library(library) for library in aar.libraries],
        "classes": _classes(aar),
        "keep_rules": list(aar.keep_rules),
        "prefab": bool(aar.prefab),
        "headers": len(aar.headers),
        "assets": list(aar.assets),
        "metadata": dict(aar.metadata),
        "manifest": None if aar.manifest is None else to_data(aar.manifest),
        "gates": to_data(tuple(sorted(gates, key=lambda gate: gate.verdict is not Verdict.FAIL))),
    }


def _size(size: AbiSize) -> dict[str, int]:
    about: dict[str, int] = to_data(size)
    return {name: value for name, value in about.items() if name != "abi"}


def _library(library: NativeLibrary) -> dict[str, Any]:
    return {
        "path": library.path,
        "size_bytes": library.size_bytes,
        "compressed_bytes": library.compressed_bytes,
        "api_level": library.api_level,
        "ndk": library.ndk,
        "alignment": library.facts.load_alignment,
        "needed": list(library.facts.needed),
        "build_id": library.build_id,
    }


def _classes(aar: AarFacts) -> dict[str, Any] | None:
    if aar.classes is None:
        return None
    about: dict[str, Any] = to_data(aar.classes)
    return about | {"native_methods": len(aar.classes.native_methods)}
