"""The property lists of frameworks, of the xcframework that holds them, and of debug symbols; sorted XML."""

import plistlib
import re
from collections.abc import Iterable
from typing import Final

from ortrim.core.apple import ApplePlatform, AppleVariant, Slice

FRAMEWORK: Final = "onnxruntime"
BUNDLE: Final = f"{FRAMEWORK}.framework"
XCFRAMEWORK: Final = f"{FRAMEWORK}.xcframework"
BUNDLE_IDENTIFIER: Final = "ortrim.onnxruntime"
"""Not Microsoft's: the identifier says who answers for a bundle. Letters, digits, hyphens and dots are allowed."""
SUPPORTED: Final = {
    (ApplePlatform.IOS, AppleVariant.NONE): "iPhoneOS",
    (ApplePlatform.IOS, AppleVariant.SIMULATOR): "iPhoneSimulator",
    (ApplePlatform.IOS, AppleVariant.CATALYST): "MacOSX",
    (ApplePlatform.MACOS, AppleVariant.NONE): "MacOSX",
}
"""Platform and variant -> `CFBundleSupportedPlatforms`, without which an upload is refused (ITMS-90542)."""
VERSION: Final = re.compile(r"\d+(\.\d+){0,2}")
CATALYST_MINORS: Final = {14: "00012345", 15: "0012345", 16: "0012345"}
"""Major iOS -> the minor number of macOS for each minor number of iOS; later they are the same. From Apple's SDK:
`VersionMap`, `iOSMac_macOS` in its `SDKSettings.json`."""
SAME_NUMBERS: Final = 26
"""From this version on, macOS has the number of the iOS beside it."""


def is_versioned(part: Slice) -> bool:
    """Whether a slice's framework has `Versions`, as a Mac's must, Mac Catalyst's included; a phone's must not."""
    return part.platform is ApplePlatform.MACOS or part.variant is AppleVariant.CATALYST


def framework_plist(part: Slice, minimum_os: str, version: str) -> bytes:
    """Return a framework's `Info.plist`; `minimum_os` is that of the library's load command (ITMS-90208)."""
    numbers = VERSION.match(version)
    assert numbers is not None
    content = {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleExecutable": FRAMEWORK,
        "CFBundleIdentifier": BUNDLE_IDENTIFIER,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": FRAMEWORK,
        "CFBundlePackageType": "FMWK",
        "CFBundleShortVersionString": numbers[0],
        "CFBundleSupportedPlatforms": [SUPPORTED[part.platform, part.variant]],
        "CFBundleVersion": numbers[0],
        **_floor(part, minimum_os),
    }
    return plistlib.dumps(content)


def xcframework_plist(slices: Iterable[Slice]) -> bytes:
    """Return the `Info.plist` of the xcframework: which of its folders is for what."""
    libraries = [_available(part) for part in sorted(slices, key=lambda each: each.identifier)]
    content = {
        "AvailableLibraries": libraries,
        "CFBundlePackageType": "XFWK",
        "XCFrameworkFormatVersion": "1.0",
    }
    return plistlib.dumps(content)


def symbols_plist(version: str) -> bytes:
    """Return the `Info.plist` of a dSYM."""
    content = {
        "CFBundleDevelopmentRegion": "English",
        "CFBundleIdentifier": f"com.apple.xcode.dsym.{BUNDLE_IDENTIFIER}",
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundlePackageType": "dSYM",
        "CFBundleShortVersionString": version,
        "CFBundleSignature": "????",
        "CFBundleVersion": version,
    }
    return plistlib.dumps(content)


def catalyst_macos(ios: str) -> str:
    """Return the macOS whose Mac Catalyst is a version of iOS, as Apple's SDKs map them: 15.2 is 12.1."""
    major, minor = (int(part) for part in f"{ios}.0".split(".")[:2])
    if major < min(CATALYST_MINORS):
        return "10.15"
    minors = CATALYST_MINORS.get(major, "")
    if minors:
        minor = int(minors[min(minor, len(minors) - 1)])
    return f"{major if major >= SAME_NUMBERS else major - 3}.{minor}"


def _floor(part: Slice, minimum_os: str) -> dict[str, str]:
    """Return the oldest system under the key that the slice's platform has for it (ITMS-90360: it is missing)."""
    if part.variant is AppleVariant.CATALYST:
        return {"LSMinimumSystemVersion": catalyst_macos(minimum_os)}
    key = "LSMinimumSystemVersion" if part.platform is ApplePlatform.MACOS else "MinimumOSVersion"
    return {key: minimum_os}


def _available(part: Slice) -> dict[str, str | list[str]]:
    inner = f"Versions/A/{FRAMEWORK}" if is_versioned(part) else FRAMEWORK
    entry: dict[str, str | list[str]] = {
        "BinaryPath": f"{BUNDLE}/{inner}",
        "LibraryIdentifier": part.identifier,
        "LibraryPath": BUNDLE,
        "SupportedArchitectures": list(part.architectures),
        "SupportedPlatform": part.platform.value,
    }
    if part.variant:
        entry["SupportedPlatformVariant"] = part.variant.value
    return entry
