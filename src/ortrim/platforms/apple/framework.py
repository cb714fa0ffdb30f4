"""Frameworks of an xcframework: what they are made from, the files of each slice, and the manifest of all."""

import plistlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ortrim.binaries.apple import ApplePlatform, AppleVariant, Slice, slice_of, slices_of
from ortrim.binaries.macho.files import MachFile, MachKind, macho_of, universal_file
from ortrim.binaries.xcframework import Category, categories, used_categories
from ortrim.compiling.plan import AppleBuild, PackagedLibrary, PackageManifest
from ortrim.errors import PackageError
from ortrim.package.manifest import PackagedFile, PackageInputs, check_inputs, joined_inputs, require_files
from ortrim.package.package import PROGRAM_MODE, PackagedLink, rendered
from ortrim.platforms.apple.arguments import apple_build, frameworks
from ortrim.platforms.apple.xcode import SDKS


@dataclass(frozen=True, kw_only=True)
class AppleTarget(PackagedLibrary):
    """One architecture of a slice, and the UUID that crash reports name.

    `cross_built` says that it was not compiled on a Mac with Apple's own tools and SDK.
    """

    architecture: str
    uuid: str
    cross_built: bool


@dataclass(frozen=True, kw_only=True)
class AppleSlice:
    """One entry of the xcframework: `platform` and `variant` are its words; `minimum_os` is the oldest it runs on."""

    identifier: str
    platform: str
    variant: str
    minimum_os: str
    targets: tuple[AppleTarget, ...]


@dataclass(frozen=True, kw_only=True)
class RequiredReason:
    """A category of Apple's required reason API that the library uses: which of its symbols, and for what reasons."""

    category: str
    reasons: tuple[str, ...]
    symbols: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AppleManifest(PackageManifest):
    """`manifest.json` of a package for Apple's systems."""

    schema: Literal["ortrim-apple/1"] = "ortrim-apple/1"
    bundle_identifier: str
    slices: tuple[AppleSlice, ...]
    required_reasons: tuple[RequiredReason, ...]


OBJECTIVE_C: Final = "objectivec"
"""The folder of upstream's Objective-C API, in its sources and in ours."""


@dataclass(frozen=True, kw_only=True)
class ApplePart:
    """One target of the package: the inputs that its own package would have, and what a dSYM of its library holds."""

    inputs: PackageInputs
    symbols: Path | None = None

    @property
    def slice(self) -> Slice:
        """The slice that the target is or is a part of; it has one architecture."""
        return slice_of(self.inputs.job.target)

    @property
    def architecture(self) -> str:
        """The architecture, as Apple's tools call it."""
        return self.slice.architectures[0]

    @property
    def library(self) -> Path:
        """What goes into the framework: the dynamic library, or the static one if that was planned."""
        result = self.inputs.result
        if self.inputs.job.linkage == "shared":
            return result.library
        return result.archive or result.folder / "libonnxruntime.a"

    @property
    def apple(self) -> AppleBuild:
        """What the library is built for."""
        return apple_build(self.inputs.job)


@dataclass(frozen=True, kw_only=True)
class AppleSliceInputs:
    """One slice of the xcframework, and its parts: one for each architecture."""

    slice: Slice
    parts: tuple[ApplePart, ...]

    @property
    def minimum_os(self) -> str:
        """The oldest iOS or macOS that the slice runs on; for Mac Catalyst it is iOS's number."""
        return self.parts[0].apple.deployment_target


@dataclass(frozen=True, kw_only=True)
class AppleInputs:
    """All that a package for Apple's systems is made from; `objective_c` is the folder of upstream's Objective-C API.

    The sources of that API are compiled in the app; without the folder there are none, as nothing else needs them.
    """

    parts: tuple[ApplePart, ...]
    objective_c: Path

    @property
    def first(self) -> PackageInputs:
        """The inputs of the first target, for what is the same in all, with the sources and licences of all."""
        return joined_inputs(part.inputs for part in self.parts)

    @property
    def name(self) -> str:
        """Name of the package: of its folder and of the file of symbols in it."""
        return f"ortrim-{self.first.plan.spec_name}-apple-{self.first.plan.ort_version}"

    @property
    def static(self) -> bool:
        """Whether the framework's library is linked into the app's own program."""
        return self.first.job.linkage == "static"

    @property
    def slices(self) -> tuple[AppleSliceInputs, ...]:
        """The slices of the xcframework, in the order of the targets; the parts of each in that of their names."""
        found = []
        for each in slices_of(part.inputs.job.target for part in self.parts):
            kind = (each.platform, each.variant)
            parts = (part for part in self.parts if (part.slice.platform, part.slice.variant) == kind)
            ordered = tuple(sorted(parts, key=lambda part: part.architecture))
            found.append(AppleSliceInputs(slice=each, parts=ordered))
        return tuple(found)

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The system's frameworks that any of the libraries needs, sorted."""
        return tuple(sorted({name for part in self.parts for name in frameworks(part.inputs.job)}))


def check_apple_inputs(inputs: AppleInputs) -> None:
    """Refuse inputs that are absent or do not belong together."""
    if not inputs.parts:
        raise PackageError("no-slice", "an xcframework needs at least one slice", hint="build an ios target first")
    for part in inputs.parts:
        if part.inputs.job.apple is None:
            what, hint = "this target is not one for Apple's systems", "it takes the targets ios-* and macos-*"
            raise PackageError("not-apple", what, where=part.inputs.job.target.identifier, hint=hint)
        check_inputs(part.inputs)
        require_files((part.library, *filter(None, (part.symbols,))))
    require_files((inputs.objective_c / "include" / "onnxruntime.h",))
    _check_agreement(inputs)


def _check_agreement(inputs: AppleInputs) -> None:
    plan, linkage = inputs.first.plan, inputs.first.job.linkage
    seen: dict[tuple[str, str], str] = {}
    for part in inputs.parts:
        minimum = seen.setdefault((part.slice.platform, part.slice.variant), part.apple.deployment_target)
        same = (part.inputs.plan, part.inputs.job.linkage) == (plan, linkage)
        twice = sum(other.slice == part.slice for other in inputs.parts) > 1
        if not same or twice or minimum != part.apple.deployment_target:
            what = "the slices must come from one plan, with one linkage and minimum system version, each once"
            hint = "run: invoke build --target 'ios*'"
            raise PackageError("mixed-builds", what, where=part.inputs.job.target.identifier, hint=hint)


FRAMEWORK: Final = "onnxruntime"
BUNDLE: Final = f"{FRAMEWORK}.framework"
XCFRAMEWORK: Final = f"{FRAMEWORK}.xcframework"
BUNDLE_IDENTIFIER: Final = "ortrim.onnxruntime"
"""Not Microsoft's: the identifier says who answers for a bundle. Letters, digits, hyphens and dots are allowed."""
PLIST_VERSION: Final = re.compile(r"\d+(\.\d+){0,2}")
CATALYST_MINORS: Final = {14: "00012345", 15: "0012345", 16: "0012345"}
"""Major iOS -> the minor number of macOS for each minor number of iOS; later they are the same. From Apple's SDK:
`VersionMap`, `iOSMac_macOS` in its `SDKSettings.json`."""
SAME_NUMBERS: Final = 26
"""From this version on, macOS has the number of the iOS beside it."""


def framework_plist(part: Slice, minimum_os: str, version: str) -> bytes:
    """Return a framework's `Info.plist`; `minimum_os` is that of the library's load command (ITMS-90208)."""
    numbers = PLIST_VERSION.match(version)
    assert numbers is not None
    content = {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleExecutable": FRAMEWORK,
        "CFBundleIdentifier": BUNDLE_IDENTIFIER,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": FRAMEWORK,
        "CFBundlePackageType": "FMWK",
        "CFBundleShortVersionString": numbers[0],
        "CFBundleSupportedPlatforms": [SDKS[part.platform, part.variant]],  # else an upload is refused (ITMS-90542)
        "CFBundleVersion": numbers[0],
        **_floor(part, minimum_os),
    }
    return plistlib.dumps(content)


def xcframework_plist(slices: Iterable[Slice]) -> bytes:
    """Return the `Info.plist` of the xcframework: which of its folders is for what."""
    content = {
        "AvailableLibraries": [_available(part) for part in sorted(slices, key=lambda each: each.identifier)],
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
    inner = f"Versions/A/{FRAMEWORK}" if part.on_mac else FRAMEWORK
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


PRIVACY_FILE: Final = "PrivacyInfo.xcprivacy"
Undefined = Mapping[str, tuple[ApplePlatform, Iterable[str]]]
"""Identifier of a slice -> its platform, and its undefined symbols."""


def required_reasons(undefined: Undefined) -> tuple[RequiredReason, ...]:
    """Return what of Apple's required reason API the libraries of all slices use, and our reasons.

    Raises `PackageError` `no-required-reason` for a slice of iOS that uses what ONNX Runtime has no reason for; on a
    Mac, Apple asks for none. A call that goes by the name of a method, `systemUptime`, shows in no symbol.
    """
    used = {identifier: used_categories(names) for identifier, (_, names) in undefined.items()}
    for identifier, (platform, _) in undefined.items():
        if platform is ApplePlatform.IOS:
            _require_reasons(identifier, used[identifier])
    found = ((each, _symbols(each, used.values())) for each in categories() if each.reasons)
    return tuple(
        RequiredReason(category=each.name, reasons=each.reasons, symbols=symbols) for each, symbols in found if symbols
    )


def privacy_manifest(reasons: Iterable[RequiredReason]) -> bytes:
    """Return the content of `PrivacyInfo.xcprivacy`: nothing is collected, nobody is tracked, and these are used."""
    used = [
        {"NSPrivacyAccessedAPIType": each.category, "NSPrivacyAccessedAPITypeReasons": list(each.reasons)}
        for each in reasons
    ]
    content = {
        "NSPrivacyAccessedAPITypes": used,
        "NSPrivacyCollectedDataTypes": [],
        "NSPrivacyTracking": False,
        "NSPrivacyTrackingDomains": [],
    }
    return plistlib.dumps(content)


def _symbols(category: Category, used: Iterable[Mapping[str, tuple[str, ...]]]) -> tuple[str, ...]:
    return tuple(sorted({name for slice_used in used for name in slice_used.get(category.name, ())}))


def _require_reasons(identifier: str, used: Mapping[str, tuple[str, ...]]) -> None:
    for category in categories():
        if not category.reasons and (symbols := used.get(category.name)):
            what = f"the library uses {', '.join(symbols)}, for which Apple requires a reason"
            why = f"{category.name}: App Store Connect would refuse the app: ITMS-91053 (missing API declaration)"
            hint = "find what calls it: `invoke inspect` lists the symbols; ONNX Runtime itself has no use for it"
            raise PackageError("no-required-reason", what, where=identifier, why=why, hint=hint)


VERSION: Final = "A"
CXX_HEADER: Final = "onnxruntime_cxx_api.h"
C_HEADERS: Final = ("onnxruntime_c_api.h", "coreml_provider_factory.h")
"""What can be imported as it is, from Swift too; the other headers are parts of these, or are included by name."""


@dataclass(frozen=True, kw_only=True)
class FrameworkLibrary:
    """The library of one slice: all its architectures in one file, and what was read from that."""

    inputs: AppleSliceInputs
    content: bytes
    facts: MachFile


def framework_library(whole: AppleSliceInputs) -> FrameworkLibrary:
    """Join the libraries of a slice's parts."""
    content = universal_file({part.architecture: _checked(part) for part in whole.parts})
    return FrameworkLibrary(inputs=whole, content=content, facts=macho_of(content, whole.slice.identifier))


def framework_files(
    library: FrameworkLibrary, headers: tuple[Path, ...], version: str, privacy: bytes | None
) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    """Return the files and links of a slice's framework, with their paths from where the xcframework lies."""
    part = library.inputs.slice
    root = f"{XCFRAMEWORK}/{part.identifier}/{BUNDLE}"
    inner = f"{root}/Versions/{VERSION}" if part.on_mac else root
    resources = f"{inner}/Resources" if part.on_mac else root
    files = (
        PackagedFile(path=f"{inner}/{FRAMEWORK}", content=library.content, mode=PROGRAM_MODE),
        PackagedFile(path=f"{resources}/Info.plist", content=framework_plist(part, library.inputs.minimum_os, version)),
        PackagedFile(path=f"{inner}/Modules/module.modulemap", content=module_map(headers)),
        *(PackagedFile(path=f"{inner}/Headers/{path.name}", content=path) for path in headers),
        *([] if privacy is None else [PackagedFile(path=f"{resources}/{PRIVACY_FILE}", content=privacy)]),
    )
    return files, tuple(_links(root)) if part.on_mac else ()


def module_map(headers: tuple[Path, ...]) -> bytes:
    """Return what makes `import onnxruntime` work in Swift and in C."""
    names = {path.name for path in headers}
    plain = [name for name in C_HEADERS if name in names]
    return rendered("apple/module.modulemap.j2", {"headers": plain, "cxx_header": CXX_HEADER})


def _links(root: str) -> Iterator[PackagedLink]:
    """Yield what leads from a Mac's framework into its version; `codesign` refuses one whose layout is another."""
    yield PackagedLink(path=f"{root}/Versions/Current", target=VERSION)
    for name in ("Headers", "Modules", "Resources", FRAMEWORK):
        yield PackagedLink(path=f"{root}/{name}", target=f"Versions/Current/{name}")


def _checked(part: ApplePart) -> bytes:
    """Return a part's library when it is one that can be joined with the others of its slice."""
    content, where = part.library.read_bytes(), part.inputs.job.target.identifier
    facts = macho_of(content, where)
    if facts.architectures != (part.architecture,):
        why = f"it is for {', '.join(facts.architectures)}"
        raise PackageError("wrong-architecture", "the library is for another processor", where=where, why=why)
    (image,) = facts.images
    expected = MachKind.LIBRARY if part.inputs.job.linkage == "shared" else MachKind.ARCHIVE
    if image.kind is not expected:
        what, why = f"the framework should hold a {expected}", f"the file is a {image.kind}"
        raise PackageError("wrong-kind", what, where=where, why=why)
    return content


TRAINING: Final = ("onnxruntime_training", "ort_checkpoint", "ort_training_session")
"""How the names of files begin that need a runtime which can train."""
ENDINGS: Final = (".h", ".m", ".mm")
PUBLIC: Final = "include"


def objective_c_files(inputs: AppleInputs, privacy: bytes | None) -> tuple[PackagedFile, ...]:
    """Return the sources and headers with their paths from the root of the package, and the privacy manifest.

    The manifest goes along since a static framework's own does not get into an app in every way of linking.
    """
    folder = inputs.objective_c
    found = [
        PackagedFile(path=f"{OBJECTIVE_C}/{path.relative_to(folder).as_posix()}", content=path)
        for path in sorted((*folder.iterdir(), *(folder / PUBLIC).iterdir()))  # tests and documents lie deeper
        if path.suffix in ENDINGS and path.is_file() and not path.name.startswith(TRAINING)
    ]
    own = [] if privacy is None else [PackagedFile(path=f"{OBJECTIVE_C}/{PRIVACY_FILE}", content=privacy)]
    return (*found, *own)


def symbol_files(libraries: tuple[FrameworkLibrary, ...], version: str) -> tuple[PackagedFile, ...]:
    """Return a dSYM for each slice whose parts all have symbols, as Xcode lays them; static ones become the app's."""
    files: list[PackagedFile] = []
    for library in libraries:
        parts, contents = library.inputs.parts, f"{library.inputs.slice.identifier}/{BUNDLE}.dSYM/Contents"
        dynamic = [part for part in parts if part.symbols is not None and part.inputs.job.linkage == "shared"]
        found = {part.architecture: _symbols_checked(part, library.facts) for part in dynamic}
        if len(found) == len(parts):
            dwarf = f"{contents}/Resources/DWARF/{FRAMEWORK}"
            files.append(PackagedFile(path=f"{contents}/Info.plist", content=symbols_plist(version)))
            files.append(PackagedFile(path=dwarf, content=universal_file(found)))
    return tuple(files)


def _symbols_checked(part: ApplePart, shipped: MachFile) -> bytes:
    assert part.symbols is not None
    content = part.symbols.read_bytes()
    (image,) = macho_of(content, str(part.symbols)).images
    library = next(each for each in shipped.images if each.architecture == part.architecture)
    if not image.uuid or (image.uuid, image.architecture) != (library.uuid, library.architecture):
        why = f"UUID {image.uuid or 'none'}; the library that ships has {library.uuid or 'none'}"
        what = "these are the symbols of another library"
        hint = "build the target again: library and symbols must come from one link"
        raise PackageError("symbols-differ", what, where=str(part.symbols), why=why, hint=hint)
    return content
