"""What an app team gets for Apple's systems: a folder with the Swift package, the xcframework in it, and proof."""

import os
import plistlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ortrim.base.archives import open_bundle
from ortrim.base.cache import publish_folder
from ortrim.base.checksums import FileEntry
from ortrim.base.files import sha256_of, shipped_folder
from ortrim.binaries.apple import ApplePlatform, AppleVariant, slice_of
from ortrim.binaries.macho.files import read_apple_library, universal_file
from ortrim.binaries.xcframework import read_xcframework
from ortrim.buildspec.buildspec import UNITY
from ortrim.buildspec.targets import APPLE_ARCHITECTURES, version_numbers
from ortrim.compiling.plan import JobResult
from ortrim.package import manifest as manifests
from ortrim.package import package
from ortrim.package.manifest import PackagedFile, PackageInputs
from ortrim.package.package import PackagedLink, rendered
from ortrim.package.unity import PLUGINS, UnityPlugin
from ortrim.parity.measurements import Gate
from ortrim.platforms.apple import framework
from ortrim.platforms.apple.arguments import SYMBOLS, is_cross_built
from ortrim.platforms.apple.gates import ApplePromise, check_xcframework, require_sound_xcframework
from ortrim.platforms.apple.sysroot import public_names
from ortrim.platforms.apple.xcode import find_codesign, sign
from ortrim.platforms.platform import Packaging
from ortrim.verify.target import Delivery

RUNTIME_POD: Final = "onnxruntime-c"
OBJECTIVE_C_POD: Final = "onnxruntime-objc"
HEADERS: Final = "Headers"
HIDDEN: Final = "-fvisibility=hidden -fvisibility-inlines-hidden"
POD_PLATFORMS: Final = {ApplePlatform.IOS: "ios", ApplePlatform.MACOS: "osx"}
WEAK: Final = ("CoreML",)
"""Frameworks that a system may lack: the app starts without."""


def podspec_files(inputs: framework.AppleInputs, *, privacy: bool) -> tuple[PackagedFile, ...]:
    """Return the specifications of both pods, for a folder that holds the rest of the zip: `:path => 'folder'`."""
    specs = (_runtime_pod(inputs, privacy=privacy), _objective_c_pod(inputs))
    return tuple(
        PackagedFile(path=f"{spec['name']}.podspec.json", content=package.json_content(spec)) for spec in specs
    )


def deployment_targets(inputs: framework.AppleInputs) -> dict[ApplePlatform, str]:
    """Return the oldest version of each platform that all its slices run on."""
    found: dict[ApplePlatform, str] = {}
    for part in inputs.slices:
        platform = part.slice.platform
        found[platform] = max(found.get(platform, "0"), part.minimum_os, key=version_numbers)
    return found


def _runtime_pod(inputs: framework.AppleInputs, *, privacy: bool) -> dict[str, Any]:
    weak = [name for name in inputs.frameworks if name in WEAK]
    bundles = {"onnxruntime_privacy": [f"{framework.OBJECTIVE_C}/{framework.PRIVACY_FILE}"]}
    return {
        **_common(inputs, RUNTIME_POD, "ONNX Runtime, trimmed to the models of an app: C and C++"),
        "vendored_frameworks": framework.XCFRAMEWORK,
        "static_framework": inputs.static,
        "source_files": f"{HEADERS}/*.h",
        "libraries": "c++",
        "frameworks": [name for name in inputs.frameworks if name not in WEAK],
        **({"weak_frameworks": weak} if weak else {}),
        **({"resource_bundles": bundles} if privacy else {}),
        "pod_target_xcconfig": {"OTHER_CPLUSPLUSFLAGS": HIDDEN},
    }


def _objective_c_pod(inputs: framework.AppleInputs) -> dict[str, Any]:
    return {
        **_common(inputs, OBJECTIVE_C_POD, "ONNX Runtime, trimmed to the models of an app: Objective-C and Swift"),
        "dependencies": {RUNTIME_POD: [inputs.first.plan.ort_version]},
        "static_framework": True,
        "requires_arc": True,
        "source_files": [f"{framework.OBJECTIVE_C}/*.{{h,m,mm}}", f"{framework.OBJECTIVE_C}/include/*.h"],
        "public_header_files": f"{framework.OBJECTIVE_C}/include/*.h",
        "compiler_flags": "-std=c++17 -fobjc-arc-exceptions",
        "pod_target_xcconfig": {
            "HEADER_SEARCH_PATHS": f'"${{PODS_TARGET_SRCROOT}}/{framework.OBJECTIVE_C}"',
            "OTHER_CPLUSPLUSFLAGS": HIDDEN,
        },
    }


def _common(inputs: framework.AppleInputs, name: str, summary: str) -> dict[str, Any]:
    minimums = deployment_targets(inputs)
    return {
        "name": name,
        "version": inputs.first.plan.ort_version,
        "summary": summary,
        "homepage": "https://onnxruntime.ai",
        "license": {"type": " AND ".join(manifests.all_licences(inputs.first)), "file": "LICENSE"},
        "authors": "Microsoft Corporation",
        "source": {"http": "file:///the-folder-is-named-by-:path"},
        "platforms": {POD_PLATFORMS[platform]: minimum for platform, minimum in sorted(minimums.items())},
        "preserve_paths": ["LICENSE", "ThirdPartyNotices.txt"],
    }


def package_swift(inputs: framework.AppleInputs, zip_name: str, checksum: str, *, privacy: bool) -> bytes:
    """Return `Package.swift`; `checksum` is the zip's SHA-256, which is what `swift package compute-checksum` tells."""
    values = {
        "version": inputs.first.plan.ort_version,
        "zip": zip_name,
        "checksum": checksum,
        "platforms": _platforms(inputs),
        "privacy": framework.PRIVACY_FILE if privacy else "",
        "frameworks": inputs.frameworks,
    }
    return rendered("apple/Package.swift.j2", values)


def _platforms(inputs: framework.AppleInputs) -> list[str]:
    minimums = deployment_targets(inputs)
    words = [f'.iOS("{minimums[ApplePlatform.IOS]}")'] if ApplePlatform.IOS in minimums else []
    catalyst = [part.minimum_os for part in inputs.slices if part.slice.variant is AppleVariant.CATALYST]
    words += [f'.macCatalyst("{minimum}")' for minimum in catalyst]
    return words + ([f'.macOS("{minimums[ApplePlatform.MACOS]}")'] if ApplePlatform.MACOS in minimums else [])


Contents = tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]


def signed(files: Iterable[PackagedFile], links: Iterable[PackagedLink], sign: Callable[[Path], None]) -> Contents:
    """Return a package's files and links after `sign` was given the path of the xcframework among them."""
    inside = [file for file in files if file.path.startswith(f"{framework.XCFRAMEWORK}/")]
    outside = tuple(file for file in files if file not in inside)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package.write_contents(folder, inside, links)
        sign(folder / framework.XCFRAMEWORK)
        found, found_links = _read(folder)
    return (*found, *outside), found_links


def _read(folder: Path) -> Contents:
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    files = tuple(_file(folder, path) for path in paths if not path.is_symlink())
    links = tuple(
        PackagedLink(path=path.relative_to(folder).as_posix(), target=path.readlink().as_posix())
        for path in paths
        if path.is_symlink()
    )
    return files, links


def _file(folder: Path, path: Path) -> PackagedFile:
    program = path.stat().st_mode & 0o100
    mode = {"mode": package.PROGRAM_MODE} if program else {}
    return PackagedFile(path=path.relative_to(folder).as_posix(), content=path.read_bytes(), **mode)


APPLE_TOOLCHAIN: Final = "xcode"


def _reasons(libraries: tuple[framework.FrameworkLibrary, ...]) -> tuple[framework.RequiredReason, ...]:
    undefined = {
        each.inputs.slice.identifier: (
            each.inputs.slice.platform,
            tuple(name for image in each.facts.images for name in image.undefined),
        )
        for each in libraries
    }
    return framework.required_reasons(undefined)


def _payload(
    inputs: framework.AppleInputs, libraries: tuple[framework.FrameworkLibrary, ...], privacy: bytes | None
) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    first, headers = inputs.first, inputs.first.headers
    frameworks = [framework.framework_files(each, headers, first.plan.ort_version, privacy) for each in libraries]
    slices = [each.slice for each in inputs.slices]
    files = (
        PackagedFile(path=f"{framework.XCFRAMEWORK}/Info.plist", content=framework.xcframework_plist(slices)),
        *(file for inside, _ in frameworks for file in inside),
        *(PackagedFile(path=f"{HEADERS}/{path.name}", content=path) for path in headers),
        *framework.objective_c_files(inputs, privacy),
        *podspec_files(inputs, privacy=privacy is not None),
        PackagedFile(path="LICENSE", content=package.plain_text(first.licence)),
        PackagedFile(path="ThirdPartyNotices.txt", content=package.notices_text(first)),
    )
    return files, tuple(link for _, links in frameworks for link in links)


def _manifest(
    inputs: framework.AppleInputs,
    libraries: tuple[framework.FrameworkLibrary, ...],
    reasons: tuple[framework.RequiredReason, ...],
    files: tuple[FileEntry, ...],
) -> framework.AppleManifest:
    slices = (
        framework.AppleSlice(
            identifier=each.inputs.slice.identifier,
            platform=each.inputs.slice.platform,
            variant=each.inputs.slice.variant,
            minimum_os=each.inputs.minimum_os,
            targets=tuple(_target(part, each) for part in each.inputs.parts),
        )
        for each in libraries
    )
    return framework.AppleManifest(
        **manifests.shared_facts(inputs.first, files),
        name=inputs.name,
        bundle_identifier=framework.BUNDLE_IDENTIFIER,
        slices=tuple(slices),
        required_reasons=reasons,
    )


def _target(part: framework.ApplePart, library: framework.FrameworkLibrary) -> framework.AppleTarget:
    job = part.inputs.job
    image = next(each for each in library.facts.images if each.architecture == part.architecture)
    return framework.AppleTarget(
        **manifests.library_facts(job),
        architecture=part.architecture,
        uuid=image.uuid,
        cross_built=job.toolchain.kind != APPLE_TOOLCHAIN,
    )


SWIFT_PACKAGE: Final = "onnxruntime"
"""A local package is known by the name of its folder."""
DOCUMENTS: Final = (manifests.MANIFEST, manifests.SBOM, "LICENSE", "ThirdPartyNotices.txt")
"""What stands in the zip as well, so that it can be read without opening that."""


@dataclass(frozen=True, kw_only=True)
class ApplePackage:
    """A finished package: its folder, the folder of the Swift package, and the zip of the xcframework in that.

    `checksum` is what Swift's package manager wants to know of the zip; `symbols` is the zip of dSYMs, None without.
    """

    folder: Path
    swift_package: Path
    xcframework: Path
    checksum: str
    symbols: Path | None
    manifest: framework.AppleManifest


def make_apple_package(
    inputs: framework.AppleInputs, destination: Path, sign: Callable[[Path], None] | None = None
) -> ApplePackage:
    """Make the package's folder, `ortrim-<spec>-apple-<version>`, in the folder `destination`.

    The same inputs give the same bytes on any machine whose Python has the same zlib, unless the xcframework is signed:
    `sign` is given its path. The folder appears when it is complete and replaces an earlier one.
    """
    framework.check_apple_inputs(inputs)
    folder, version = destination / inputs.name, inputs.first.plan.ort_version
    # The zip's name has the runtime's version, which snippets of `fetch` read off it.
    archive = Path(SWIFT_PACKAGE, f"onnxruntime-{version}.xcframework.zip")
    dsyms = f"{inputs.name}-dSYMs.zip"
    with package.writing(folder):
        files, links, manifest, symbols = _contents(inputs, sign)

        def fill(temporary: Path) -> None:
            package.write_zip(temporary / archive, files, links)
            if symbols:
                package.write_zip(temporary / dsyms, symbols)
            documents = (file for file in files if file.path in DOCUMENTS)
            beside = _swift_package(inputs, files, temporary / archive, privacy=bool(manifest.required_reasons))
            package.write_contents(temporary, (*beside, *package.model_files(inputs.first), *documents), ())
            package.write_sums(temporary)

        shutil.rmtree(folder, ignore_errors=True)
        publish_folder(folder, fill)
        return ApplePackage(
            folder=folder,
            swift_package=folder / SWIFT_PACKAGE,
            xcframework=folder / archive,
            checksum=sha256_of(folder / archive),
            symbols=folder / dsyms if symbols else None,
            manifest=manifest,
        )


def _contents(
    inputs: framework.AppleInputs, sign: Callable[[Path], None] | None
) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...], framework.AppleManifest, tuple[PackagedFile, ...]]:
    """Return the zip's files and links, what it says of itself, and the dSYMs beside it."""
    libraries = tuple(framework.framework_library(each) for each in inputs.slices)
    reasons = _reasons(libraries)
    files, links = _payload(inputs, libraries, framework.privacy_manifest(reasons) if reasons else None)
    package.check_paths((*(file.path for file in files), *(link.path for link in links)))
    for part in inputs.parts:
        manifests.refuse_machine_paths(part.inputs, files)
    if sign is not None:
        files, links = signed(files, links, sign)
    described, manifest = manifests.described(
        inputs.first, inputs.name, files, lambda entries: _manifest(inputs, libraries, reasons, entries)
    )
    return described, links, manifest, framework.symbol_files(libraries, inputs.first.plan.ort_version)


def _swift_package(
    inputs: framework.AppleInputs, files: Iterable[PackagedFile], archive: Path, *, privacy: bool
) -> tuple[PackagedFile, ...]:
    text = package_swift(inputs, archive.name, sha256_of(archive), privacy=privacy)
    sources = (file for file in files if file.path.startswith(f"{framework.OBJECTIVE_C}/"))
    return (
        PackagedFile(path=f"{SWIFT_PACKAGE}/Package.swift", content=text),
        *(PackagedFile(path=f"{SWIFT_PACKAGE}/{file.path}", content=file.content) for file in sources),
    )


def deliver(packaging: Packaging) -> list[Delivery]:
    """Make one package of all slices."""
    made, gates = deliver_apple(list(map(apple_part, packaging.parts)), packaging.sources, packaging.folder)
    packaging.step.note(f"{made.folder}: checksum {made.checksum}")
    return [delivery(part.result, made.xcframework, gates) for part in packaging.parts]


def slice_budgets(inputs: framework.AppleInputs) -> tuple[tuple[str, int], ...]:
    """Return the most bytes of each slice by its identifier: what its targets may take together, if each has a budget.

    A static library has none: its own bytes are relocations and names as well, which do not come into an app.
    """
    planned = {target.identifier: target.budgets for target in inputs.first.plan.targets}
    found = []
    for each in () if inputs.static else inputs.slices:
        limits = [planned[part.inputs.job.target.identifier].library_bytes for part in each.parts]
        known = [limit for limit in limits if limit is not None]
        if len(known) == len(limits):
            found.append((each.slice.identifier, sum(known)))
    return tuple(found)


IDENTITY: Final = "ORTRIM_CODESIGN_IDENTITY"
"""The environment variable that names who signs; nobody does without it."""


def apple_part(inputs: PackageInputs) -> framework.ApplePart:
    """Return one architecture of a package: what its build left, with what a dSYM of it holds."""
    symbols = inputs.result.folder / SYMBOLS
    return framework.ApplePart(inputs=inputs, symbols=symbols if symbols.is_file() else None)


def deliver_apple(
    parts: Sequence[framework.ApplePart], sources: Path, destination: Path, environment: Mapping[str, str] = os.environ
) -> tuple[ApplePackage, tuple[Gate, ...]]:
    """Make the package of all slices in the folder `destination`, and pass its xcframework through every gate.

    `sources` is the folder of the source tree; the xcframework is signed if the environment names an identity. Raises a
    `DiagnosticGroup` of all that is wrong with the xcframework. A package that has not passed is gone.
    """
    inputs = framework.AppleInputs(parts=tuple(parts), objective_c=sources / "onnxruntime" / framework.OBJECTIVE_C)
    identity = environment.get(IDENTITY, "")
    made = make_apple_package(inputs, destination, partial(sign, find_codesign(), identity) if identity else None)
    try:
        facts, promise = read_xcframework(made.xcframework), _promise(inputs, made)
        require_sound_xcframework(facts, replace(promise, budgets=()))  # those are for the report to judge
    except BaseException:  # Ctrl-C too: who finds a package takes it for one that has passed
        shutil.rmtree(made.folder)
        raise
    return made, check_xcframework(facts, promise)


def delivery(result: JobResult, xcframework: Path, gates: tuple[Gate, ...]) -> Delivery:
    """Return what a package holds for one of its targets; the gates are those of the whole xcframework."""
    facts, size = read_apple_library(result.library)
    return Delivery(archive=xcframework, library=result.library, facts=facts, gates=gates, size=size)


def _promise(inputs: framework.AppleInputs, made: ApplePackage) -> ApplePromise:
    manifest = made.manifest
    return ApplePromise(
        slices=tuple(each.slice for each in inputs.slices),
        minimum_os=tuple((f"{each.platform}-{each.variant}".rstrip("-"), each.minimum_os) for each in manifest.slices),
        version=manifest.ort_version,
        budgets=slice_budgets(inputs),
        package_swift=(made.swift_package / "Package.swift").read_text(encoding="utf-8"),
        system_symbols=_system_symbols(inputs),
    )


def _system_symbols(inputs: framework.AppleInputs) -> frozenset[str]:
    """Return all that cross-built libraries may import; nothing where Xcode has linked one."""
    jobs = [part.inputs.job for part in inputs.parts]
    if not all(map(is_cross_built, jobs)):
        return frozenset()
    return frozenset(name for job in jobs for name in public_names(job.toolchain.triple))


def unity_plugins(parts: Sequence[PackageInputs], archive: Path) -> Iterator[UnityPlugin]:
    """Yield the xcframework's slices for iOS, and for Macs one dynamic library of all architectures.

    Unity's editor copies the folder `iOS~` into the project of Xcode by a script of the plugin's.
    """
    slices = {part.job.target.identifier: slice_of(part.job.target) for part in parts}
    macs = [part for part in parts if slices[part.job.target.identifier].platform is ApplePlatform.MACOS]
    if macs:
        own = {APPLE_ARCHITECTURES[part.job.target.architecture]: part.result.library.read_bytes() for part in macs}
        cpu = "AnyCPU" if len(own) > 1 else min(own).replace("arm", "ARM")
        editor = {"CPU": cpu, "DefaultValueInitialized": "true", "OS": "OSX"}
        yield UnityPlugin(
            path=f"{PLUGINS}/macOS/{min(own)}/libonnxruntime.dylib",
            content=universal_file(own),
            mode=package.PROGRAM_MODE,
            players={"Editor": editor, "OSXUniversal": {"CPU": cpu}},
        )
    if len(macs) < len(parts):
        yield from _of_ios(archive)
        if not any("coreml" in part.job.providers for part in parts):
            players = {"iOS": {"AddToEmbeddedBinaries": "false", "CPU": "AnyCPU"}}
            source = shipped_folder("package") / UNITY / "onnxruntime_coreml.c"
            yield UnityPlugin(path=f"{PLUGINS}/iOS/{source.name}", content=source, players=players)


def _of_ios(archive: Path) -> Iterator[UnityPlugin]:
    with open_bundle(archive) as bundle:
        about = plistlib.loads(bundle.read(f"{framework.XCFRAMEWORK}/Info.plist"))
        about["AvailableLibraries"] = [
            each
            for each in about["AvailableLibraries"]
            if each["SupportedPlatform"] == ApplePlatform.IOS
            and each.get("SupportedPlatformVariant") != AppleVariant.CATALYST
        ]
        folder = f"{PLUGINS}/iOS~"
        yield UnityPlugin(path=f"{folder}/{framework.XCFRAMEWORK}/Info.plist", content=plistlib.dumps(about))
        for each in about["AvailableLibraries"]:
            for name in bundle.below(f"{framework.XCFRAMEWORK}/{each['LibraryIdentifier']}"):
                yield UnityPlugin(path=f"{folder}/{name}", content=bundle.read(name))
