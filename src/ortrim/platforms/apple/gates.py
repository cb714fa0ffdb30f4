"""Properties without which an xcframework is not fit to ship, each with a code of its own.

- Rules for an xcframework as a whole: its own Info.plist, its slices, its links, and what names its archive.
- Rules for what lies in a framework: headers, module map, privacy manifest, versions and nothing else that runs.
- Rules for the property lists of frameworks, most of which App Store Connect would tell an app's team otherwise.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

from ortrim.binaries.macho import MachImage
from ortrim.binaries.xcframework import FrameworkFacts, SliceFacts, XcframeworkFacts, used_categories
from ortrim.parity.measurements import Gate
from ortrim.platforms.apple.rules import (
    BINARY_RULES,
    ApplePromise,
    AppleRule,
    FrameworkRule,
    WholeRule,
    builds_for,
    in_each_framework,
    in_each_image,
    in_each_slice,
    numbers,
)
from ortrim.verify.gates import Breach, broken, judged, require_kept, some

INFO: Final = "Info.plist"
KEYS: Final = {"CFBundlePackageType": "XFWK", "XCFrameworkFormatVersion": "1.0"}
PLATFORMS: Final = frozenset({"ios", "macos", "tvos", "watchos", "xros", "driverkit"})
VARIANTS: Final = frozenset({"", "simulator", "maccatalyst"})
CHECKSUM: Final = re.compile(r'checksum:\s*"([^"\n]{0,200})"')


def _wrong_keys(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    plist = xcframework.plist or {}
    for key, wanted in KEYS.items():
        if plist.get(key) != wanted:
            yield Breach(where=INFO, why=f"{key} is {plist.get(key)!r}, not {wanted!r}")


def _wrong_entry(each: SliceFacts) -> str:
    found = []
    if not each.identifier or "/" in each.identifier:
        found.append(f"LibraryIdentifier is {each.identifier!r}")
    if each.platform not in PLATFORMS:
        found.append(f"SupportedPlatform is {each.platform!r}")
    if each.variant not in VARIANTS:
        found.append(f"SupportedPlatformVariant is {each.variant!r}")
    if not each.architectures:
        found.append("there are no SupportedArchitectures")
    if each.astray:
        found.append(f"{some(each.astray)} leads nowhere")
    return "; ".join(found)


def _missing_slices(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    found = {(each.platform, each.variant, name) for each in xcframework.slices for name in each.architectures}
    for wanted in promise.slices:
        missing = [name for name in wanted.architectures if (wanted.platform, wanted.variant, name) not in found]
        if missing:
            yield Breach(where=wanted.identifier, why=f"there is no library for {some(missing)}")


def _clashes(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    for one, other in combinations(xcframework.slices, 2):
        shared = sorted(set(one.architectures) & set(other.architectures))
        if one.kind == other.kind and shared:
            yield Breach(where=one.identifier, why=f"{other.identifier} is for {one.kind} on {some(shared)}, too")


def _broken_links(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    yield from (
        Breach(where=link.path, why=f"it leads to {link.target[:200]}") for link in xcframework.links if not link.leads
    )


def _other_checksum(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    said = CHECKSUM.findall(promise.package_swift)
    if said != [xcframework.digest]:
        why = f"it says {some(said) or 'none'}, the archive's SHA-256 is {xcframework.digest}"
        yield Breach(where="Package.swift", why=why)


def _no_checksum(xcframework: XcframeworkFacts, promise: ApplePromise) -> str:
    if not promise.package_swift:
        return "there is no Package.swift"
    return "" if xcframework.digest else "it is a folder, and the checksum is an archive's"


PACKAGE_RULES: Final = (
    WholeRule(
        code="xcframework-keys-wrong",
        name="keys of the xcframework",
        what="Xcode would not recognize it as an xcframework",
        hint='write CFBundlePackageType "XFWK" and XCFrameworkFormatVersion "1.0"',
        search=_wrong_keys,
        told=lambda it: f"{len(it.plist or ()):,} keys",
    ),
    WholeRule(
        code="slice-entry-wrong",
        name="entries of the xcframework",
        what="Xcode could not match this slice to a platform",
        hint="write platform, variant and architectures as Apple names them: ios, simulator, arm64",
        search=in_each_slice(_wrong_entry),
    ),
    WholeRule(
        code="slice-missing",
        name="all slices",
        what="Xcode would report: no library for this platform was found",
        hint="build all ios and macos targets of the buildspec before the xcframework",
        search=_missing_slices,
        told=lambda it: ", ".join(each.identifier for each in it.slices),
    ),
    WholeRule(
        code="slices-clash",
        name="one slice for each system",
        what="xcodebuild would report: both represent two equivalent library definitions",
        hint="join the architectures of one platform and variant into one slice with lipo",
        search=_clashes,
    ),
    WholeRule(
        code="slice-unlisted",
        name="only folders of slices",
        what="Xcode does not see this folder, and everyone downloads it",
        hint="name it in AvailableLibraries, or remove it",
        search=lambda xcframework, _: (
            Breach(where=name, why="no entry of AvailableLibraries names it") for name in xcframework.unlisted
        ),
    ),
    AppleRule(
        code="link-broken",
        name="links lead somewhere",
        what="codesign would refuse it: a link leads nowhere, or outside",
        hint="links stay inside their framework and are relative",
        search=_broken_links,
        told=lambda it: f"{len(it.links):,} links",
    ),
    AppleRule(
        code="finder-files",
        name="nothing of Finder's",
        what="a signature does not cover these files, so that codesign refuses the bundle",
        hint="pack with zip -yX, or ditto --norsrc",
        search=lambda xcframework, _: (Breach(where=name, why="macOS metadata files") for name in xcframework.doubles),
    ),
    AppleRule(
        code="swift-checksum-differs",
        name="checksum of Package.swift",
        what="Swift Package Manager would report: the checksum of the downloaded artifact does not match",
        hint="write the archive's SHA-256 into Package.swift, as `swift package compute-checksum` prints it",
        search=_other_checksum,
        doubt=_no_checksum,
        told=lambda it: f"SHA-256 {it.digest}",
    ),
)


HEADER: Final = re.compile(r'^\s*(?:(?:private|textual|umbrella)\s+)*header\s+"([^"\n]{1,500})"', re.MULTILINE)
MODULE: Final = re.compile(r"\bframework\s+module\s+([\w.\"-]+)")
LINKED: Final = ("Headers", "Modules", "Resources")
NESTED: Final = frozenset({"Frameworks", "PlugIns", "SwiftSupport"})
PRIVACY: Final = "PrivacyInfo.xcprivacy"
ACCESSED: Final = "NSPrivacyAccessedAPITypes"
TYPE: Final = "NSPrivacyAccessedAPIType"
REASONS: Final = "NSPrivacyAccessedAPITypeReasons"


def _no_module_map(_each: SliceFacts, framework: FrameworkFacts) -> str:
    if not framework.module_map:
        return "there is no Modules/module.modulemap"
    names = [name.strip('"') for name in MODULE.findall(framework.module_map)]
    return "" if framework.name in names else f"its module map has no framework module {framework.name}"


def _unknown_headers(_each: SliceFacts, framework: FrameworkFacts) -> str:
    missing = [name for name in HEADER.findall(framework.module_map) if name not in framework.headers]
    return f"its module map names {some(missing)}, which Headers lacks" if missing else ""


def _unexplained(each: SliceFacts) -> dict[str, tuple[str, ...]]:
    """Return the categories of required reason API that a slice uses and its privacy manifest has no reason for."""
    used = used_categories(name for image in each.images for name in image.undefined)
    privacy = each.framework.privacy if each.framework else None
    explained = {entry.get(TYPE) for entry in _accessed(privacy) if entry.get(REASONS)}
    return {category: symbols for category, symbols in used.items() if category not in explained}


def _accessed(privacy: Any) -> list[dict[str, Any]]:
    entries = privacy.get(ACCESSED) if privacy else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _no_privacy_manifest(each: SliceFacts, framework: FrameworkFacts) -> str:
    used = {name for symbols in _unexplained(each).values() for name in symbols}
    if each.platform == "macos" or framework.privacy is not None or not used:
        return ""
    return f"there is no {PRIVACY}, and the binary uses {some(sorted(used))}"


def _no_reasons(each: SliceFacts, framework: FrameworkFacts) -> str:
    if each.platform == "macos" or framework.privacy is None:
        return ""
    return "; ".join(f"no reason for {category}: {some(names)}" for category, names in _unexplained(each).items())


def _without_versions(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    links = {link.path: link for link in xcframework.links}
    for each in xcframework.slices:
        if each.framework is None or not each.on_mac:
            continue
        start = f"{each.framework.path}/" if each.framework.path else ""
        current = links.get(f"{start}Versions/Current")
        if current is None or not current.leads:
            yield Breach(where=each.library or xcframework.file, why="ITMS-90292: there is no link Versions/Current")
        wanted = [name for name in (each.framework.name, *LINKED) if _is_there(each.framework, name)]
        missing = [name for name in wanted if f"{start}{name}" not in links]
        if missing:
            why = f"ITMS-90291: {some(missing)} should be a link to Versions/Current/..."
            yield Breach(where=each.library or xcframework.file, why=why)


def _is_there(framework: FrameworkFacts, name: str) -> bool:
    """Whether a framework has, in a version or beside it, what should be linked; its binary always."""
    has = {"Headers": bool(framework.headers), "Modules": bool(framework.module_map)}
    return has.get(name, True)


def _nested(_each: SliceFacts, framework: FrameworkFacts) -> str:
    found = sorted(NESTED & set(framework.entries))
    return f"it contains {some(found)}" if found else ""


LAYOUT_RULES: Final = (
    AppleRule(
        code="binary-missing",
        name="every slice has its binary",
        what="Xcode would report a missing file when it links the app",
        hint="make the xcframework again; in a zip, keep symbolic links (zip -y)",
        search=in_each_slice(lambda each: f"there is no {each.binary_path}" if each.binary is None else ""),
    ),
    FrameworkRule(
        code="headers-missing",
        name="headers",
        what="it cannot be included or imported",
        hint="put the public headers into Headers",
        search=in_each_framework(lambda _, framework: "" if framework.headers else "it has no Headers"),
    ),
    FrameworkRule(
        code="module-map-missing",
        name="module map",
        what="Swift would report: no such module",
        hint="write Modules/module.modulemap with `framework module <name>`",
        search=in_each_framework(_no_module_map),
    ),
    FrameworkRule(
        code="module-header-missing",
        name="headers of the module map",
        what="Swift could not build the module: header not found",
        hint="name the headers that are in Headers",
        search=in_each_framework(_unknown_headers),
    ),
    FrameworkRule(
        code="privacy-manifest-missing",
        name="privacy manifest",
        what="App Store Connect would refuse the app: ITMS-91053, missing API declaration",
        hint=f"put a {PRIVACY} with the reasons into the framework",
        search=in_each_framework(_no_privacy_manifest),
    ),
    FrameworkRule(
        code="privacy-reason-missing",
        name="reasons of the privacy manifest",
        what="App Store Connect would refuse the app: ITMS-91053, missing API declaration",
        hint=f"add the category with an approved reason to {ACCESSED}",
        search=in_each_framework(_no_reasons),
    ),
    FrameworkRule(
        code="framework-not-versioned",
        name="frameworks of Macs have versions",
        what="App Store Connect would call the framework malformed, and codesign its format ambiguous",
        hint="keep symbolic links when packing: zip -y, ditto; npm and some archives drop them",
        search=_without_versions,
    ),
    FrameworkRule(
        code="framework-versioned",
        name="frameworks of phones have none",
        what="a phone's framework is flat, codesign and Xcode refuse another layout",
        hint="put the binary and Info.plist into the framework's own folder",
        search=in_each_framework(
            lambda each, framework: "" if each.on_mac or "Versions" not in framework.entries else "it has Versions"
        ),
    ),
    FrameworkRule(
        code="other-binaries",
        name="one binary in each framework",
        what="App Store Connect would refuse the app: ITMS-90171, the binary file is not permitted",
        hint="ship the library in a separate framework, or not at all",
        search=in_each_framework(
            lambda _, framework: (
                f"besides the binary there is {some(framework.other_binaries)}" if framework.other_binaries else ""
            )
        ),
    ),
    FrameworkRule(
        code="bundle-nested",
        name="nothing nested",
        what="App Store Connect would refuse the app: ITMS-90206, it contains a disallowed file",
        hint="embed such frameworks in the app itself",
        search=in_each_framework(_nested),
    ),
)


PLIST_KEYS: Final = {
    "CFBundleExecutable": "", "CFBundleIdentifier": "", "CFBundlePackageType": "",
    "CFBundleShortVersionString": " (ITMS-90057)", "CFBundleVersion": " (ITMS-90056)",
}  # fmt: skip
"""What has to be there, and Apple's error where it has one of its own."""
PLIST_PLATFORMS: Final = {
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


def _missing_keys(_each: SliceFacts, framework: FrameworkFacts) -> str:
    missing = [f"{key}{error}" for key, error in PLIST_KEYS.items() if not _value(framework, key)]
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
        wanted, plist = PLIST_PLATFORMS.get(each.kind), each.framework.plist if each.framework else None
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
    FrameworkRule(
        code="framework-plist-missing",
        name="Info.plist of each framework",
        what="Xcode would not embed a framework without it",
        hint="write one into the binary's folder; for Macs, into Resources",
        search=in_each_framework(
            lambda _, framework: "" if framework.plist is not None else f"there is no {framework.plist_path}"
        ),
    ),
    FrameworkRule(
        code="plist-key-missing",
        name="keys of Info.plist",
        what="App Store Connect would refuse the app",
        hint="write the key into the framework's Info.plist",
        search=in_each_framework(_missing_keys),
    ),
    FrameworkRule(
        code="bundle-version-invalid",
        name="versions of Info.plist",
        what="App Store Connect would refuse the app: ITMS-90060, not a list of at most three non-negative integers",
        hint="write 1.21.0 without a suffix",
        search=in_each_framework(_bad_versions),
    ),
    FrameworkRule(
        code="bundle-identifier-invalid",
        name="identifier of Info.plist",
        what="App Store Connect would refuse the app for the characters in this identifier",
        hint="letters, digits, hyphens and dots are allowed",
        search=in_each_framework(_bad_identifier),
    ),
    FrameworkRule(
        code="executable-differs",
        name="CFBundleExecutable is the binary",
        what="Xcode and codesign would not find the framework's binary",
        hint="framework, binary and CFBundleExecutable have one name",
        search=in_each_framework(_other_executable),
    ),
    FrameworkRule(
        code="minimum-os-missing",
        name="minimum system version in Info.plist",
        what="App Store Connect would refuse the app: ITMS-90360, a value for the key MinimumOSVersion is required",
        hint="write MinimumOSVersion (a Mac's is LSMinimumSystemVersion) with the version of the load command",
        search=in_each_framework(_no_minimum),
    ),
    FrameworkRule(
        code="minimum-os-differs",
        name="minimum system version as in the load command",
        what="App Store Connect would refuse the app: ITMS-90208, it does not support the minimum OS of its Info.plist",
        hint="write the version that `vtool -show-build` prints into Info.plist",
        search=in_each_image(_other_minimum),
    ),
    FrameworkRule(
        code="supported-platforms-wrong",
        name="CFBundleSupportedPlatforms",
        what="App Store Connect would refuse the app: ITMS-90542, invalid CFBundleSupportedPlatforms value",
        hint="iPhoneOS for devices, iPhoneSimulator for simulators, MacOSX for Macs and Catalyst: one in each slice",
        search=_bad_platforms,
    ),
    AppleRule(
        code="version-differs",
        name="version of ONNX Runtime",
        what="the framework declares another version",
        hint="make the package again from the plan",
        search=_other_version,
        doubt=lambda _facts, promise: "" if promise.version else "none was promised",
        told=lambda it: it.version,
    ),
)


RULES: Final[tuple[AppleRule, ...]] = (*PACKAGE_RULES, *LAYOUT_RULES, *PLIST_RULES, *BINARY_RULES)
NOTHING: Final = ApplePromise()
"""What is promised of an xcframework of any origin."""


def check_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise = NOTHING) -> tuple[Gate, ...]:
    """Return each property that an xcframework must have, and whether it has it."""
    return judged(RULES, xcframework, promise)


def broken_rules(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the references of the rules whose gates fail, in their order."""
    return broken(RULES, gates)


def require_sound_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise) -> None:
    """Refuse one that is not fit to ship. Raises a `DiagnosticGroup` of `BinaryError`, one for each breach."""
    require_kept(RULES, xcframework, promise)
