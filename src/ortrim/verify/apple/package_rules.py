"""Rules for an xcframework as a whole: its own Info.plist, its slices, its links, and what names its archive."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from ortrim.core.xcframework import SliceFacts, XcframeworkFacts
from ortrim.verify.apple.rules import ApplePromise, Rule, by_itself, in_each_slice
from ortrim.verify.rules import Breach, some

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


def _unlisted(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    yield from (Breach(where=name, why="no entry of AvailableLibraries names it") for name in xcframework.unlisted)


def _broken_links(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    yield from (
        Breach(where=link.path, why=f"it leads to {link.target[:200]}") for link in xcframework.links if not link.leads
    )


def _doubles(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
    yield from (Breach(where=name, why="macOS' own notes on files") for name in xcframework.doubles)


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
    Rule(
        reference="xcframework-keys-wrong",
        name="keys of the xcframework",
        what="Xcode would not take it for an xcframework",
        hint='write CFBundlePackageType "XFWK" and XCFrameworkFormatVersion "1.0"',
        search=_wrong_keys,
        doubt=by_itself,
        told=lambda it: f"{len(it.plist or ()):,} keys",
    ),
    Rule(
        reference="slice-entry-wrong",
        name="entries of the xcframework",
        what="Xcode would not know what this slice is for",
        hint="write platform, variant and architectures in Apple's words: ios, simulator, arm64",
        search=in_each_slice(_wrong_entry),
        doubt=by_itself,
    ),
    Rule(
        reference="slice-missing",
        name="all slices",
        what="Xcode would say: no library for this platform was found",
        hint="build every ios and macos target of the buildspec before the xcframework",
        search=_missing_slices,
        doubt=by_itself,
        told=lambda it: ", ".join(each.identifier for each in it.slices),
    ),
    Rule(
        reference="slices-clash",
        name="one slice for each system",
        what="xcodebuild would say: both represent two equivalent library definitions",
        hint="join the architectures of one platform and variant into one slice with lipo",
        search=_clashes,
        doubt=by_itself,
    ),
    Rule(
        reference="slice-unlisted",
        name="no folder that is no slice",
        what="Xcode does not see this folder, and everyone downloads it",
        hint="name it in AvailableLibraries, or remove it",
        search=_unlisted,
        doubt=by_itself,
    ),
    Rule(
        reference="link-broken",
        name="links lead somewhere",
        what="codesign would refuse it: a link leads nowhere, or outside",
        hint="links stay inside their framework and are relative",
        search=_broken_links,
        told=lambda it: f"{len(it.links):,} links",
    ),
    Rule(
        reference="finder-files",
        name="nothing of Finder's",
        what="a signature does not cover these files, so that codesign refuses the bundle",
        hint="pack with zip -yX, or ditto --norsrc",
        search=_doubles,
    ),
    Rule(
        reference="swift-checksum-differs",
        name="checksum of Package.swift",
        what="Swift's package manager would say: the checksum of the downloaded artifact does not match",
        hint="write the archive's SHA-256 into Package.swift, as `swift package compute-checksum` tells it",
        search=_other_checksum,
        doubt=_no_checksum,
        told=lambda it: f"SHA-256 {it.digest}",
    ),
)
