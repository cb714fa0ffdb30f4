"""Properties without which an xcframework is not fit to ship, each with a code of its own."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final

from ortrim.base.console import counted
from ortrim.binaries.apple import Slice
from ortrim.binaries.macho.files import MachBuild, MachImage, MachKind
from ortrim.binaries.xcframework import FrameworkFacts, SliceFacts, XcframeworkFacts, used_categories
from ortrim.parity.measurements import Gate
from ortrim.platforms.apple import loading
from ortrim.verify.gates import Breaches, RuleBook, some


@dataclass(frozen=True, kw_only=True)
class ApplePromise:
    """What an xcframework was made to keep; what is empty was not promised.

    `minimum_os` is the oldest system of each kind of slice (`ios`, `ios-simulator`, `macos`), `version` that of ONNX
    Runtime. `budgets` are the most bytes of a slice's architectures together, by its identifier. `package_swift` is the
    text of the Package.swift beside the archive. `system_symbols` are all that may be imported, with C's names.
    """

    slices: tuple[Slice, ...] = ()
    minimum_os: tuple[tuple[str, str], ...] = ()
    version: str = ""
    budgets: tuple[tuple[str, int], ...] = ()
    package_swift: str = ""
    system_symbols: frozenset[str] = frozenset()


ON_MACS: Final = frozenset({"macos", "ios-maccatalyst"})
"""The kinds of slice that one library may be for at once, with a load command for each."""
Search = Callable[[XcframeworkFacts, ApplePromise], Breaches]


def _slices(xcframework: XcframeworkFacts) -> str:
    return f"in {counted(len(xcframework.slices), 'slice')}"


XCFRAMEWORK: Final = RuleBook[XcframeworkFacts, ApplePromise]("xcframework", _slices)
_rule = XCFRAMEWORK.rule


def in_words(tell: Callable[[MachImage], str]) -> Callable[[XcframeworkFacts], str]:
    """Return what tells a rule's finding: what `tell` says of the architectures, each word once for a slice.

    When all slices say the same it is said once; when none says anything, how many there are.
    """

    def told(xcframework: XcframeworkFacts) -> str:
        found = [(each, _joined(filter(None, map(tell, each.images)))) for each in xcframework.slices]
        said = {word for _, word in found}
        if len(said) < 2:
            return "".join(said) or _slices(xcframework)
        return "; ".join(f"{each.identifier or each.kind}: {word}" for each, word in found if word)

    return told


def _joined(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def in_each_slice(find: Callable[[SliceFacts], str]) -> Search:
    """Return a search that asks each slice; `find` returns what is wrong with one, empty when nothing is."""
    return lambda xcframework, _promise: (
        (each.library or each.identifier or xcframework.file, find(each)) for each in xcframework.slices
    )


def in_each_image(find: Callable[[SliceFacts, MachImage], str]) -> Search:
    """Return a search that asks each architecture of each slice's binary."""
    return lambda xcframework, _promise: (
        (f"{each.binary_path} ({image.architecture})", find(each, image)) for each, image in xcframework.images
    )


def in_each_framework(find: Callable[[SliceFacts, FrameworkFacts], str]) -> Search:
    """Return a search that asks each slice that is a framework."""
    return lambda xcframework, _promise: (
        (each.framework.path or xcframework.file, find(each, each.framework))
        for each in xcframework.slices
        if each.framework is not None
    )


def _without_frameworks(xcframework: XcframeworkFacts, _promise: ApplePromise) -> str:
    return "" if any(each.framework for each in xcframework.slices) else "it contains libraries, not frameworks"


_framework_rule = partial(_rule, doubt=_without_frameworks)  # libraries are not judged


def _by_itself(xcframework: XcframeworkFacts, _promise: ApplePromise) -> str:
    return "" if xcframework.plist is not None else "it is a framework by itself"


_whole_rule = partial(_rule, doubt=_by_itself)  # a framework by itself is not judged


def kind_of(build: MachBuild) -> str:
    """Return the kind of slice that a load command is for: `ios-simulator`."""
    return f"{build.platform}-{build.variant}".rstrip("-")


def builds_for(each: SliceFacts, image: MachImage) -> tuple[MachBuild, ...]:
    """Return what an architecture says of the system of its slice, and not of another that it is for as well."""
    return tuple(build for build in image.builds if kind_of(build) == each.kind)


def numbers(version: str) -> tuple[int, ...] | None:
    """Return a version's numbers without zeros at the end, so that 15 is 15.0; None for what is no version."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        return None
    found = [int(part) for part in parts]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


ENTRY: Final = "OrtGetApiBase"
PUBLIC: Final = re.compile(r"OrtGetApiBase|OrtSessionOptionsAppendExecutionProvider_\w+")
OBJECTIVE_C: Final = re.compile(r"ORT[A-Z]\w*|ORTIs\w+|OBJC_(METACLASS|CLASS|IVAR)_\$_ORT[\w.]*")
"""Upstream's Objective-C API, where it is compiled along."""
LINKERS: Final = frozenset({"_mh_dylib_header", "_mh_execute_header", "__dso_handle"})
"""What zig's linker exports of every library; two-level names keep them from clashing."""
SYSTEM: Final = ("/usr/lib/", "/System/Library/")
BESIDE: Final = ("@rpath/", "@loader_path/")
"""How the names of libraries begin that an app brings along."""
LINKABLE: Final = frozenset({MachKind.LIBRARY, MachKind.ARCHIVE, MachKind.OBJECT})


def _other_architectures(each: SliceFacts) -> str:
    found = each.binary.architectures if each.binary else ()
    if each.binary is None or sorted(found) == sorted(each.architectures):
        return ""
    return f"it has {some(found)}, said is {some(each.architectures) or 'nothing'}"


def _other_platform(each: SliceFacts, image: MachImage) -> str:
    found = list(dict.fromkeys(kind_of(build) for build in image.builds))
    allowed = ON_MACS if each.kind in found and each.kind in ON_MACS else {each.kind}
    return "" if allowed.issuperset(found) else f"built for {some(found)}, the slice is {each.kind}"


def _other_exports(_each: SliceFacts, image: MachImage) -> str:
    others = [name for name in image.exported if not is_public(name)]
    return f"{counted(len(others), 'other name')}: {some(others)}" if others else ""


def is_public(name: str) -> bool:
    """Whether a name is of ONNX Runtime's C or Objective-C API, or one that a linker adds by itself."""
    return name in LINKERS or bool(PUBLIC.fullmatch(name) or OBJECTIVE_C.fullmatch(name))


def _other_install_name(each: SliceFacts, image: MachImage) -> str:
    wanted = install_name(each)
    if image.kind is not MachKind.LIBRARY or image.install_name == wanted:
        return ""
    return f"it is {image.install_name or 'empty'}, apps that embed it look for {wanted}"


def install_name(each: SliceFacts) -> str:
    """Return the install name by which an app finds the library of a slice among the frameworks it embeds."""
    if each.framework is None:
        return f"@rpath/{each.binary_path.rsplit('/', 1)[-1]}"
    inner = f"{each.binary_path}/".removeprefix(f"{each.framework.path}/" if each.framework.path else "").rstrip("/")
    return f"@rpath/{each.framework.name}.framework/{inner}"


def _foreign_needs(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    """Take what an app brings along for there, but not for a package that was promised: it is whole by itself."""
    there = SYSTEM if promise.slices else (*SYSTEM, *BESIDE)
    for each, image in xcframework.images:
        others = [need.name for need in image.needed if not need.weak and not need.name.startswith(there)]
        yield f"{each.binary_path} ({image.architecture})", f"it needs {some(others)}" if others else ""


def _newer_than_promised(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    promised = dict(promise.minimum_os)
    for each, image in xcframework.images:
        limit = numbers(promised.get(each.kind, ""))
        for build in builds_for(each, image):
            if limit and (numbers(build.minimum_os) or ()) > limit:
                why = f"it was built for {build.minimum_os}, promised is {promised[each.kind]}"
                yield f"{each.binary_path} ({image.architecture})", why


def _over_budget(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    budgets = dict(promise.budgets)
    for each in xcframework.slices:
        size, budget = sum(image.size_bytes for image in each.images), budgets.get(each.identifier)
        if budget is not None and size > budget:
            yield each.binary_path, f"{size:,} bytes, the budget is {budget:,}"


def _sizes(xcframework: XcframeworkFacts) -> str:
    return "; ".join(
        f"{each.identifier or each.kind} {each.binary.size_bytes:,} bytes" for each in xcframework.slices if each.binary
    )


BINARY_RULES: Final = (
    _rule(
        "architectures-differ",
        in_each_slice(_other_architectures),
        told=lambda it: "; ".join(
            f"{each.identifier or it.file}: {', '.join(each.architectures)}" for each in it.slices
        ),
    ),
    _rule(
        "platform-differs",
        in_each_image(_other_platform),
        told=in_words(lambda image: some(build.words for build in image.builds)),
    ),
    _rule(
        "platform-unsaid",
        in_each_image(
            lambda _, image: (
                f"{image.unmarked} of {counted(image.objects, 'object')} say nothing" if image.unmarked else ""
            )
        ),
    ),
    _rule(
        "not-a-library",
        in_each_image(lambda _, image: "" if image.kind in LINKABLE else f"it is of the kind: {image.kind}"),
    ),
    _rule(
        "exports-others",
        in_each_image(_other_exports),
        told=in_words(lambda image: some(name for name in image.exported if name not in LINKERS)),
    ),
    _rule(
        "api-not-exported",
        in_each_image(
            lambda _, image: "" if ENTRY in image.exported else f"it exports {some(image.exported) or 'nothing'}"
        ),
    ),
    _rule(
        "bitcode-embedded",
        in_each_image(lambda _, image: "it has __LLVM,__bitcode, or objects of bitcode" if image.bitcode else ""),
    ),
    _rule("install-name-wrong", in_each_image(_other_install_name), told=in_words(lambda image: image.install_name)),
    _rule("needed-not-system", _foreign_needs, told=in_words(lambda image: some(need.name for need in image.needed))),
    _rule("debug-information-inside", in_each_image(lambda _, image: "it has __DWARF sections" if image.debug else "")),
    _rule(
        "uuid-missing",
        in_each_image(
            lambda _, image: "there is no LC_UUID" if image.kind is MachKind.LIBRARY and not image.uuid else ""
        ),
        told=in_words(lambda image: image.uuid),
    ),
    _rule(
        "built-for-newer-system",
        _newer_than_promised,
        told=in_words(lambda image: some(build.minimum_os for build in image.builds)),
        doubt=lambda _facts, promise: "" if promise.minimum_os else "none was promised",
    ),
    _rule(
        "slice-over-budget",
        _over_budget,
        told=_sizes,
        doubt=lambda xcframework, promise: (
            "" if promise.budgets else ": ".join(filter(None, ("there is no budget", _sizes(xcframework))))
        ),
    ),
)


INFO: Final = "Info.plist"
KEYS: Final = {"CFBundlePackageType": "XFWK", "XCFrameworkFormatVersion": "1.0"}
PLATFORMS: Final = frozenset({"ios", "macos", "tvos", "watchos", "xros", "driverkit"})
VARIANTS: Final = frozenset({"", "simulator", "maccatalyst"})
CHECKSUM: Final = re.compile(r'checksum:\s*"([^"\n]{0,200})"')


def _wrong_keys(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Breaches:
    plist = xcframework.plist or {}
    for key, wanted in KEYS.items():
        if plist.get(key) != wanted:
            yield INFO, f"{key} is {plist.get(key)!r}, not {wanted!r}"


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


def _missing_slices(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    found = {(each.platform, each.variant, name) for each in xcframework.slices for name in each.architectures}
    for wanted in promise.slices:
        missing = [name for name in wanted.architectures if (wanted.platform, wanted.variant, name) not in found]
        if missing:
            yield wanted.identifier, f"there is no library for {some(missing)}"


def _clashes(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Breaches:
    for one, other in combinations(xcframework.slices, 2):
        shared = sorted(set(one.architectures) & set(other.architectures))
        if one.kind == other.kind and shared:
            yield one.identifier, f"{other.identifier} is for {one.kind} on {some(shared)}, too"


def _other_checksum(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    said = CHECKSUM.findall(promise.package_swift)
    if said != [xcframework.digest]:
        why = f"it says {some(said) or 'none'}, the archive's SHA-256 is {xcframework.digest}"
        yield "Package.swift", why


def _no_checksum(xcframework: XcframeworkFacts, promise: ApplePromise) -> str:
    if not promise.package_swift:
        return "there is no Package.swift"
    return "" if xcframework.digest else "it is a folder, and the checksum is an archive's"


PACKAGE_RULES: Final = (
    _whole_rule("xcframework-keys-wrong", _wrong_keys, told=lambda it: f"{len(it.plist or ()):,} keys"),
    _whole_rule("slice-entry-wrong", in_each_slice(_wrong_entry)),
    _whole_rule("slice-missing", _missing_slices, told=lambda it: ", ".join(each.identifier for each in it.slices)),
    _whole_rule("slices-clash", _clashes),
    _whole_rule(
        "slice-unlisted",
        lambda xcframework, _: ((name, "no entry of AvailableLibraries names it") for name in xcframework.unlisted),
    ),
    _rule(
        "link-broken",
        lambda xcframework, _: (
            (link.path, f"it leads to {link.target[:200]}") for link in xcframework.links if not link.leads
        ),
        told=lambda it: f"{len(it.links):,} links",
    ),
    _rule("finder-files", lambda xcframework, _: ((name, "macOS metadata files") for name in xcframework.doubles)),
    _rule("swift-checksum-differs", _other_checksum, told=lambda it: f"SHA-256 {it.digest}", doubt=_no_checksum),
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


def _without_versions(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Breaches:
    links = {link.path: link for link in xcframework.links}
    for each in xcframework.slices:
        if each.framework is None or not each.on_mac:
            continue
        start = f"{each.framework.path}/" if each.framework.path else ""
        current = links.get(f"{start}Versions/Current")
        if current is None or not current.leads:
            yield each.library or xcframework.file, "ITMS-90292: there is no link Versions/Current"
        wanted = [name for name in (each.framework.name, *LINKED) if _is_there(each.framework, name)]
        missing = [name for name in wanted if f"{start}{name}" not in links]
        if missing:
            why = f"ITMS-90291: {some(missing)} should be a link to Versions/Current/..."
            yield each.library or xcframework.file, why


def _is_there(framework: FrameworkFacts, name: str) -> bool:
    has = {"Headers": bool(framework.headers), "Modules": bool(framework.module_map)}
    return has.get(name, True)


def _nested(_each: SliceFacts, framework: FrameworkFacts) -> str:
    found = sorted(NESTED & set(framework.entries))
    return f"it contains {some(found)}" if found else ""


LAYOUT_RULES: Final = (
    _rule(
        "binary-missing", in_each_slice(lambda each: f"there is no {each.binary_path}" if each.binary is None else "")
    ),
    _framework_rule(
        "headers-missing", in_each_framework(lambda _, framework: "" if framework.headers else "it has no Headers")
    ),
    _framework_rule("module-map-missing", in_each_framework(_no_module_map)),
    _framework_rule("module-header-missing", in_each_framework(_unknown_headers)),
    _framework_rule("privacy-manifest-missing", in_each_framework(_no_privacy_manifest)),
    _framework_rule("privacy-reason-missing", in_each_framework(_no_reasons)),
    _framework_rule("framework-not-versioned", _without_versions),
    _framework_rule(
        "framework-versioned",
        in_each_framework(
            lambda each, framework: "" if each.on_mac or "Versions" not in framework.entries else "it has Versions"
        ),
    ),
    _framework_rule(
        "other-binaries",
        in_each_framework(
            lambda _, framework: (
                f"besides the binary there is {some(framework.other_binaries)}" if framework.other_binaries else ""
            )
        ),
    ),
    _framework_rule("bundle-nested", in_each_framework(_nested)),
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
    bad = [
        f"{key} is {value}"
        for key in keys
        if (value := _value(framework, key)) and not (numbers(value) is not None and value.count(".") < MOST_NUMBERS)
    ]
    return some(bad)


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


def _bad_platforms(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    """Apple refuses wrong values; that there is none is a breach only of what was promised."""
    for each in xcframework.slices:
        wanted, plist = PLIST_PLATFORMS.get(each.kind), each.framework.plist if each.framework else None
        if plist is None or wanted is None:
            continue
        value = plist.get("CFBundleSupportedPlatforms", None if promise.slices else [wanted])
        if value != [wanted]:
            yield each.library or xcframework.file, f"it is {value!r}, not [{wanted!r}]"


def _other_version(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    for each in xcframework.slices:
        value = _value(each.framework, "CFBundleShortVersionString") if each.framework else promise.version
        if value and value != promise.version:
            yield each.library, f"it says {value}, packaged is {promise.version}"


def _value(framework: FrameworkFacts | None, key: str) -> str:
    """Return a text of the property list, empty for what is none."""
    value = framework.plist.get(key) if framework and framework.plist else None
    return value if isinstance(value, str) else ""


PLIST_RULES: Final = (
    _framework_rule(
        "framework-plist-missing",
        in_each_framework(
            lambda _, framework: "" if framework.plist is not None else f"there is no {framework.plist_path}"
        ),
    ),
    _framework_rule("plist-key-missing", in_each_framework(_missing_keys)),
    _framework_rule("bundle-version-invalid", in_each_framework(_bad_versions)),
    _framework_rule("bundle-identifier-invalid", in_each_framework(_bad_identifier)),
    _framework_rule("executable-differs", in_each_framework(_other_executable)),
    _framework_rule("minimum-os-missing", in_each_framework(_no_minimum)),
    _framework_rule("minimum-os-differs", in_each_image(_other_minimum)),
    _framework_rule("supported-platforms-wrong", _bad_platforms),
    _rule(
        "version-differs",
        _other_version,
        told=lambda it: it.version,
        doubt=lambda _facts, promise: "" if promise.version else "none was promised",
    ),
)


def in_each_loaded(find: Callable[[MachImage], str]) -> Search:
    """Return a search that asks each architecture that the loader maps; it maps no static library."""
    return in_each_image(lambda _, image: find(image) if loading.is_loaded(image) else "")


def _unknown_imports(xcframework: XcframeworkFacts, promise: ApplePromise) -> Breaches:
    for each, image in xcframework.images:
        unknown = [name for name in image.undefined if name not in promise.system_symbols]
        found = f"{counted(len(unknown), 'name')}: {some(unknown)}" if unknown and loading.is_loaded(image) else ""
        yield f"{each.binary_path} ({image.architecture})", found


def _no_sdk(image: MachImage) -> str:
    return "the load command names no SDK" if not all(build.sdk for build in image.builds) else ""


LOADING_RULES: Final = (
    _rule("linkedit-disordered", in_each_loaded(loading.disordered_linkedit)),
    _rule("linkedit-misaligned", in_each_loaded(loading.misaligned_linkedit)),
    _rule("symbols-disordered", in_each_loaded(loading.disordered_symbols)),
    _rule("fixups-mixed", in_each_loaded(loading.mixed_fixups)),
    _rule("segment-rights-wrong", in_each_loaded(loading.wrong_rights)),
    _rule("segment-misplaced", in_each_loaded(loading.misplaced_segments)),
    _rule("needed-twice", in_each_loaded(loading.needed_twice)),
    _rule("encryption-info-missing", in_each_loaded(loading.not_encryptable)),
    _rule(
        "sdk-unsaid",
        in_each_loaded(_no_sdk),
        told=in_words(lambda image: some(dict.fromkeys(build.sdk for build in image.builds))),
    ),
    _rule(
        "import-unknown",
        _unknown_imports,
        told=in_words(lambda image: f"{len(image.undefined):,}" if loading.is_loaded(image) else ""),
        doubt=lambda _facts, promise: "" if promise.system_symbols else "the system's symbols are not known",
    ),
)


RULES = XCFRAMEWORK.rules = (*PACKAGE_RULES, *LAYOUT_RULES, *PLIST_RULES, *BINARY_RULES, *LOADING_RULES)
broken_rules, require_sound_xcframework = XCFRAMEWORK.broken, XCFRAMEWORK.require
NOTHING: Final = ApplePromise()
"""What is promised of an xcframework of any origin."""


def check_xcframework(xcframework: XcframeworkFacts, promise: ApplePromise = NOTHING) -> tuple[Gate, ...]:
    """Return each property that an xcframework must have, and whether it has it."""
    return XCFRAMEWORK.check(xcframework, promise)
