"""`inspect` of what is built for Apple's systems, of whatever origin: xcframeworks, frameworks, Mach-O libraries."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ortrim.binaries.macho import read_macho
from ortrim.binaries.required_reasons import used_categories
from ortrim.binaries.xcframework import read_xcframework
from ortrim.core.macho import MachImage
from ortrim.core.measurements import Verdict
from ortrim.core.serialization import to_data
from ortrim.core.xcframework import SliceFacts
from ortrim.verify.apple.binary_rules import LINKERS, is_public
from ortrim.verify.apple.gates import broken_rules, check_xcframework

MOST_NAMES: Final = 20


def inspect_xcframework(path: Path) -> dict[str, Any]:
    """Return what is in an xcframework or a framework, a folder or a zip archive of one, as JSON-ready data.

    `label` names it by the version that it says of itself: sizes of different versions are not to be compared without.
    The gates are judged without any promise; those that fail come first, and `broken` has their references. Raises as
    `read_xcframework` does.
    """
    facts = read_xcframework(path)
    gates = check_xcframework(facts)
    return {
        "label": _label(facts.file, facts.version),
        "version": facts.version or None,
        "broken": list(broken_rules(gates)),
        "size_bytes": facts.size_bytes,
        "sha256": facts.digest or None,
        "slices": {each.identifier or each.kind: _slice(each) for each in facts.slices},
        "libraries": [_image(each.identifier or each.kind, image) for each, image in facts.images],
        **_names(tuple(image for _, image in facts.images)),
        "required_reasons": list(used_categories(name for _, image in facts.images for name in image.undefined)),
        "gates": to_data(tuple(sorted(gates, key=lambda gate: gate.verdict is not Verdict.FAIL))),
    }


def inspect_macho(path: Path) -> dict[str, Any]:
    """Return what is in a Mach-O library, object or static library as JSON-ready data. Raises as `read_macho` does."""
    file = read_macho(path)
    version = next((image.version for image in file.images if image.version), "")
    return {
        "label": _label(path.name, version),
        "version": version or None,
        "size_bytes": file.size_bytes,
        "architectures": [_image(image.architecture, image) for image in file.images],
        **_names(file.images),
        "needed": sorted({need.name for image in file.images for need in image.needed}),
        "segments": _segments(file.images),
    }


def _label(file: str, version: str) -> str:
    return f"{file}: ONNX Runtime {version}" if version else f"{file}: of no known version"


def _slice(each: SliceFacts) -> dict[str, Any]:
    return {
        "architectures": ", ".join(each.architectures),
        "binary_bytes": each.binary.size_bytes if each.binary else None,
        "size_bytes": each.size_bytes,
    }


def _image(place: str, image: MachImage) -> dict[str, Any]:
    return {
        "place": place,
        "architecture": image.architecture,
        "kind": image.kind.value,
        "size_bytes": image.size_bytes,
        "built_for": [build.words for build in image.builds],
        "install_name": image.install_name or None,
        "signature": image.signature.value,
        "bitcode": image.bitcode,
        "debug_information": image.debug,
        "uuid": image.uuid or None,
    }


def _names(images: tuple[MachImage, ...]) -> dict[str, Any]:
    """Return what is offered to apps, ONNX Runtime's API and all else, and how much is asked of others."""
    offered = {name for image in images for name in image.exported}
    others = sorted(name for name in offered if not is_public(name))
    return {
        "public_api": sorted(name for name in offered - LINKERS if is_public(name)),
        "other_names": others[:MOST_NAMES],
        "other_names_in_all": len(others),
        "names_asked_for": len({name for image in images for name in image.undefined}),
    }


def _segments(images: Iterable[MachImage]) -> list[dict[str, Any]]:
    return [
        {
            "segment": f"{image.architecture} {segment.name}",
            "file_bytes": segment.file_bytes,
            "memory_bytes": segment.memory_bytes,
        }
        for image in images
        for segment in image.segments
    ]
