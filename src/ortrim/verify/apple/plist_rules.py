"""Rules for the property lists of frameworks, most of which App Store Connect would tell an app's team otherwise."""

import re
from collections.abc import Iterator
from typing import Final

from ortrim.core.macho import MachImage
from ortrim.core.xcframework import FrameworkFacts, SliceFacts, XcframeworkFacts
from ortrim.verify.apple.rules import (
    ApplePromise,
    Rule,
    builds_for,
    in_each_framework,
    in_each_image,
    numbers,
    without_frameworks,
)
from ortrim.verify.rules import Breach, some

KEYS: Final = {
    "CFBundleExecutable": "", "CFBundleIdentifier": "", "CFBundlePackageType": "",
    "CFBundleShortVersionString": " (ITMS-90057)", "CFBundleVersion": " (ITMS-90056)",
}  # fmt: skip
"""What has to be there, and Apple's error where it has one of its own."""
PLATFORMS: Final = {
    "ios": "iPhoneOS", "ios-simulator": "iPhoneSimulator", "ios-maccatalyst": "MacOSX", "macos": "MacOSX",
    "tvos": "AppleTVOS", "tvos-simulator": "AppleTVSimulator", "watchos": "WatchOS",
    "watchos-simulator": "WatchSimulator", "xros": "XROS", "xros-simulator": "XRSimulator",
}  # fmt: skip
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
MOST_NUMBERS: Final = 3
CATALYST: Final = "maccatalyst"


def minimum_key(each: SliceFacts) -> str:
    """Return the key of a framework's oldest system, which Macs have another for."""
    return "LSMinimumSystemVersion" if each.on_mac else "MinimumOSVersion"


def _no_plist(_each: SliceFacts, framework: FrameworkFacts) -> str:
    return "" if framework.plist is not None else f"there is no {framework.plist_path}"


def _missing_keys(_each: SliceFacts, framework: FrameworkFacts) -> str:
    missing = [f"{key}{error}" for key, error in KEYS.items() if not _value(framework, key)]
    kind = _value(framework, "CFBundlePackageType")
    found = [f"it lacks {some(missing)}"] if missing else []
    if kind not in {"", "FMWK"}:
        found.append(f"CFBundlePackageType is {kind}, not FMWK")
    return "; ".join(found) if framework.plist is not None else ""


def _bad_versions(_each: SliceFacts, framework: FrameworkFacts) -> str:
    keys = ("CFBundleShortVersionString", "CFBundleVersion")
    bad = [f"{key} is {value}" for key in keys if (value := _value(framework, key)) and not _is_version(value)]
    return some(bad)


def _is_version(value: str) -> bool:
    return numbers(value) is not None and value.count(".") < MOST_NUMBERS


def _bad_identifier(_each: SliceFacts, framework: FrameworkFacts) -> str:
    value = _value(framework, "CFBundleIdentifier")
    return f"CFBundleIdentifier is {value}" if value and not IDENTIFIER.fullmatch(value) else ""


def _other_executable(each: SliceFacts, framework: FrameworkFacts) -> str:
    value, binary = _value(framework, "CFBundleExecutable"), each.binary_path.rsplit("/", 1)[-1]
    if not value or value == framework.name == binary:
        return ""
    return f"CFBundleExecutable is {value}, the binary {binary}, the framework {framework.name}"


def _no_minimum(each: SliceFacts, framework: FrameworkFacts) -> str:
    key = minimum_key(each)
    if framework.plist is None or numbers(_value(framework, key)):
        return ""
    value = framework.plist.get(key)
    return f"{key} is missing" if value is None else f"{key} is {value!r}"


def _other_minimum(each: SliceFacts, image: MachImage) -> str:
    said = _value(each.framework, minimum_key(each)) if each.framework else ""
    if not numbers(said) or each.variant == CATALYST:  # a Mac's number, while the load command has that of iOS
        return ""
    said_inside = (build.minimum_os for build in builds_for(each, image))
    newest = max(said_inside, key=lambda version: numbers(version) or (), default="")
    if not newest or numbers(newest) == numbers(said):
        return ""
    return f"{minimum_key(each)} is {said}, the load command says {newest}"


def _bad_platforms(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    """Apple refuses wrong values; that there is none is a breach only of what was promised."""
    for each in xcframework.slices:
        wanted, plist = PLATFORMS.get(each.kind), each.framework.plist if each.framework else None
        if plist is None or wanted is None:
            continue
        value = plist.get("CFBundleSupportedPlatforms", None if promise.slices else [wanted])
        if value != [wanted]:
            yield Breach(where=each.library or xcframework.file, why=f"it is {value!r}, not [{wanted!r}]")


def _other_version(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    for each in xcframework.slices:
        value = _value(each.framework, "CFBundleShortVersionString") if each.framework else promise.version
        if value and value != promise.version:
            yield Breach(where=each.library, why=f"it says {value}, packaged is {promise.version}")


def _value(framework: FrameworkFacts | None, key: str) -> str:
    """Return a text of the property list, empty for what is none."""
    value = framework.plist.get(key) if framework and framework.plist else None
    return value if isinstance(value, str) else ""


PLIST_RULES: Final = (
    Rule(
        reference="framework-plist-missing",
        name="Info.plist of each framework",
        what="Xcode would not embed a framework without it",
        hint="write one beside the binary; a Mac's lies in Resources",
        search=in_each_framework(_no_plist),
        doubt=without_frameworks,
    ),
    Rule(
        reference="plist-key-missing",
        name="keys of Info.plist",
        what="App Store Connect would refuse the app",
        hint="write the key into the framework's Info.plist",
        search=in_each_framework(_missing_keys),
        doubt=without_frameworks,
    ),
    Rule(
        reference="bundle-version-invalid",
        name="versions of Info.plist",
        what="App Store Connect would refuse the app: ITMS-90060, not a list of at most three non-negative integers",
        hint="write 1.21.0 without a suffix",
        search=in_each_framework(_bad_versions),
        doubt=without_frameworks,
    ),
    Rule(
        reference="bundle-identifier-invalid",
        name="identifier of Info.plist",
        what="App Store Connect would refuse the app for the characters in this identifier",
        hint="letters, digits, hyphens and dots are allowed",
        search=in_each_framework(_bad_identifier),
        doubt=without_frameworks,
    ),
    Rule(
        reference="executable-differs",
        name="CFBundleExecutable is the binary",
        what="Xcode and codesign would not find the framework's binary",
        hint="framework, binary and CFBundleExecutable have one name",
        search=in_each_framework(_other_executable),
        doubt=without_frameworks,
    ),
    Rule(
        reference="minimum-os-missing",
        name="oldest system in Info.plist",
        what="App Store Connect would refuse the app: ITMS-90360, a value for the key MinimumOSVersion is required",
        hint="write MinimumOSVersion (a Mac's is LSMinimumSystemVersion) with the version of the load command",
        search=in_each_framework(_no_minimum),
        doubt=without_frameworks,
    ),
    Rule(
        reference="minimum-os-differs",
        name="oldest system as in the load command",
        what="App Store Connect would refuse the app: ITMS-90208, it does not support the minimum OS of its Info.plist",
        hint="write the version that `vtool -show-build` tells into Info.plist",
        search=in_each_image(_other_minimum),
        doubt=without_frameworks,
    ),
    Rule(
        reference="supported-platforms-wrong",
        name="CFBundleSupportedPlatforms",
        what="App Store Connect would refuse the app: ITMS-90542, invalid CFBundleSupportedPlatforms value",
        hint="iPhoneOS for devices, iPhoneSimulator for simulators, MacOSX for Macs and Catalyst: one in each slice",
        search=_bad_platforms,
        doubt=without_frameworks,
    ),
    Rule(
        reference="version-differs",
        name="version of ONNX Runtime",
        what="the framework says that it is another version",
        hint="make the package anew from the plan",
        search=_other_version,
        doubt=lambda _facts, promise: "" if promise.version else "none was promised",
        told=lambda it: it.version,
    ),
)
