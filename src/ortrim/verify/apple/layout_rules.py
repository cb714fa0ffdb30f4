"""Rules for what lies in a framework: headers, module map, privacy manifest, versions and nothing else that runs."""

import re
from collections.abc import Iterator
from typing import Any, Final

from ortrim.binaries.required_reasons import used_categories
from ortrim.core.xcframework import FrameworkFacts, SliceFacts, XcframeworkFacts
from ortrim.verify.apple.rules import ApplePromise, Rule, in_each_framework, in_each_slice, without_frameworks
from ortrim.verify.rules import Breach, some

HEADER: Final = re.compile(r'^\s*(?:(?:private|textual|umbrella)\s+)*header\s+"([^"\n]{1,500})"', re.MULTILINE)
MODULE: Final = re.compile(r"\bframework\s+module\s+([\w.\"-]+)")
LINKED: Final = ("Headers", "Modules", "Resources")
NESTED: Final = frozenset({"Frameworks", "PlugIns", "SwiftSupport"})
PRIVACY: Final = "PrivacyInfo.xcprivacy"
ACCESSED: Final = "NSPrivacyAccessedAPITypes"
TYPE: Final = "NSPrivacyAccessedAPIType"
REASONS: Final = "NSPrivacyAccessedAPITypeReasons"


def _no_headers(_each: SliceFacts, framework: FrameworkFacts) -> str:
    return "" if framework.headers else "it has no Headers"


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


def _with_versions(each: SliceFacts, framework: FrameworkFacts) -> str:
    return "" if each.on_mac or "Versions" not in framework.entries else "it has Versions"


def _other_binaries(_each: SliceFacts, framework: FrameworkFacts) -> str:
    return f"beside the binary there is {some(framework.other_binaries)}" if framework.other_binaries else ""


def _nested(_each: SliceFacts, framework: FrameworkFacts) -> str:
    found = sorted(NESTED & set(framework.entries))
    return f"it contains {some(found)}" if found else ""


def _nothing_there(each: SliceFacts) -> str:
    return f"there is no {each.binary_path}" if each.binary is None else ""


LAYOUT_RULES: Final = (
    Rule(
        reference="binary-missing",
        name="every slice has its binary",
        what="Xcode would stop with a missing file when it links the app",
        hint="make the xcframework anew; a zip needs symbolic links kept (zip -y)",
        search=in_each_slice(_nothing_there),
    ),
    Rule(
        reference="headers-missing",
        name="headers",
        what="nobody can include or import it",
        hint="put the public headers into Headers",
        search=in_each_framework(_no_headers),
        doubt=without_frameworks,
    ),
    Rule(
        reference="module-map-missing",
        name="module map",
        what="Swift would say: no such module",
        hint="write Modules/module.modulemap with `framework module <name>`",
        search=in_each_framework(_no_module_map),
        doubt=without_frameworks,
    ),
    Rule(
        reference="module-header-missing",
        name="headers of the module map",
        what="Swift could not build the module: header not found",
        hint="name headers as they lie in Headers",
        search=in_each_framework(_unknown_headers),
        doubt=without_frameworks,
    ),
    Rule(
        reference="privacy-manifest-missing",
        name="privacy manifest",
        what="App Store Connect would refuse the app: ITMS-91053, missing API declaration",
        hint=f"put a {PRIVACY} with the reasons into the framework",
        search=in_each_framework(_no_privacy_manifest),
        doubt=without_frameworks,
    ),
    Rule(
        reference="privacy-reason-missing",
        name="reasons of the privacy manifest",
        what="App Store Connect would refuse the app: ITMS-91053, missing API declaration",
        hint=f"add the category with an approved reason to {ACCESSED}",
        search=in_each_framework(_no_reasons),
        doubt=without_frameworks,
    ),
    Rule(
        reference="framework-not-versioned",
        name="frameworks of Macs have versions",
        what="App Store Connect would call the framework malformed, and codesign its format ambiguous",
        hint="keep symbolic links when packing: zip -y, ditto; npm and some archives drop them",
        search=_without_versions,
        doubt=without_frameworks,
    ),
    Rule(
        reference="framework-versioned",
        name="frameworks of phones have none",
        what="a phone's framework is flat, codesign and Xcode refuse another layout",
        hint="put the binary and Info.plist into the framework's own folder",
        search=in_each_framework(_with_versions),
        doubt=without_frameworks,
    ),
    Rule(
        reference="other-binaries",
        name="one binary in each framework",
        what="App Store Connect would refuse the app: ITMS-90171, the binary file is not permitted",
        hint="ship the library in a framework of its own, or not at all",
        search=in_each_framework(_other_binaries),
        doubt=without_frameworks,
    ),
    Rule(
        reference="bundle-nested",
        name="nothing nested",
        what="App Store Connect would refuse the app: ITMS-90206, it contains a disallowed file",
        hint="embed such frameworks in the app itself",
        search=in_each_framework(_nested),
        doubt=without_frameworks,
    ),
)
