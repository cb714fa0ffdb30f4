"""The Swift package: the runtime as a binary target, and the Objective-C API as one that the app compiles."""

from ortrim.core.apple import ApplePlatform, AppleVariant
from ortrim.package.apple.inputs import AppleInputs
from ortrim.package.apple.podspecs import deployment_targets
from ortrim.package.apple.reasons import PRIVACY_FILE
from ortrim.package.templates import rendered


def package_swift(inputs: AppleInputs, zip_name: str, checksum: str, *, privacy: bool) -> bytes:
    """Return `Package.swift`; `checksum` is the zip's SHA-256, which is what `swift package compute-checksum` tells."""
    values = {
        "version": inputs.first.plan.ort_version,
        "zip": zip_name,
        "checksum": checksum,
        "platforms": _platforms(inputs),
        "privacy": PRIVACY_FILE if privacy else "",
        "frameworks": inputs.frameworks,
    }
    return rendered("apple/Package.swift.j2", values)


def _platforms(inputs: AppleInputs) -> list[str]:
    floors = deployment_targets(inputs)
    words = [f'.iOS("{floors[ApplePlatform.IOS]}")'] if ApplePlatform.IOS in floors else []
    catalyst = [part.minimum_os for part in inputs.slices if part.slice.variant is AppleVariant.CATALYST]
    words += [f'.macCatalyst("{floor}")' for floor in catalyst]
    return words + ([f'.macOS("{floors[ApplePlatform.MACOS]}")'] if ApplePlatform.MACOS in floors else [])
