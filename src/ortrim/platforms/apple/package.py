"""What an app team gets for Apple's systems: a folder with the Swift package, the xcframework in it, and proof.

- The two pods: the runtime in its framework, and the Objective-C API that is compiled against it. As JSON: plain data.
- The Swift package: the runtime as a binary target, and the Objective-C API as one that the app compiles.
- The xcframework's zip: all that goes into it, the manifest and the bill of materials of that.
- Signing, which is done on files: the xcframework is laid out, signed, and read back as it then is.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ortrim.base.cache import publish_folder
from ortrim.base.checksums import FileEntry
from ortrim.base.files import sha256_of
from ortrim.binaries.apple import ApplePlatform, AppleVariant
from ortrim.compiling.plan import digest
from ortrim.errors import StorageError
from ortrim.package.manifest import (
    MANIFEST,
    SBOM,
    PackagedFile,
    all_licences,
    described,
    has_cpuinfo,
    refuse_machine_paths,
)
from ortrim.package.package import (
    PROGRAM_MODE,
    PackagedLink,
    check_paths,
    model_files,
    notices_text,
    plain_text,
    rendered,
    write_contents,
    write_sums,
    write_zip,
)
from ortrim.platforms.apple.framework import (
    BUNDLE_IDENTIFIER,
    PRIVACY_FILE,
    XCFRAMEWORK,
    FrameworkLibrary,
    framework_files,
    framework_library,
    objective_c_files,
    privacy_manifest,
    required_reasons,
    symbol_files,
    xcframework_plist,
)
from ortrim.platforms.apple.inputs import (
    OBJECTIVE_C,
    AppleInputs,
    AppleManifest,
    ApplePart,
    AppleSlice,
    AppleTarget,
    RequiredReason,
    check_apple_inputs,
)

RUNTIME_POD: Final = "onnxruntime-c"
OBJECTIVE_C_POD: Final = "onnxruntime-objc"
HEADERS: Final = "Headers"
HIDDEN: Final = "-fvisibility=hidden -fvisibility-inlines-hidden"
POD_PLATFORMS: Final = {ApplePlatform.IOS: "ios", ApplePlatform.MACOS: "osx"}
WEAK: Final = ("CoreML",)
"""Frameworks that a system may lack: the app starts without."""


def podspec_files(inputs: AppleInputs, *, privacy: bool) -> tuple[PackagedFile, ...]:
    """Return the specifications of both pods, for a folder that holds the rest of the zip: `:path => 'folder'`."""
    specs = (_runtime_pod(inputs, privacy=privacy), _objective_c_pod(inputs))
    return tuple(
        PackagedFile(path=f"{spec['name']}.podspec.json", content=(json.dumps(spec, indent=2) + "\n").encode())
        for spec in specs
    )


def deployment_targets(inputs: AppleInputs) -> dict[ApplePlatform, str]:
    """Return the oldest version of each platform that all its slices run on."""
    found: dict[ApplePlatform, str] = {}
    for part in inputs.slices:
        platform = part.slice.platform
        found[platform] = max(found.get(platform, "0"), part.minimum_os, key=_numbers)
    return found


def _runtime_pod(inputs: AppleInputs, *, privacy: bool) -> dict[str, Any]:
    weak = [name for name in inputs.frameworks if name in WEAK]
    bundles = {"onnxruntime_privacy": [f"{OBJECTIVE_C}/{PRIVACY_FILE}"]}
    return {
        **_common(inputs, RUNTIME_POD, "ONNX Runtime, trimmed to the models of an app: C and C++"),
        "vendored_frameworks": XCFRAMEWORK,
        "static_framework": inputs.static,
        "source_files": f"{HEADERS}/*.h",
        "libraries": "c++",
        "frameworks": [name for name in inputs.frameworks if name not in WEAK],
        **({"weak_frameworks": weak} if weak else {}),
        **({"resource_bundles": bundles} if privacy else {}),
        "pod_target_xcconfig": {"OTHER_CPLUSPLUSFLAGS": HIDDEN},
    }


def _objective_c_pod(inputs: AppleInputs) -> dict[str, Any]:
    return {
        **_common(inputs, OBJECTIVE_C_POD, "ONNX Runtime, trimmed to the models of an app: Objective-C and Swift"),
        "dependencies": {RUNTIME_POD: [inputs.first.plan.ort_version]},
        "static_framework": True,
        "requires_arc": True,
        "source_files": [f"{OBJECTIVE_C}/*.{{h,m,mm}}", f"{OBJECTIVE_C}/include/*.h"],
        "public_header_files": f"{OBJECTIVE_C}/include/*.h",
        "compiler_flags": "-std=c++17 -fobjc-arc-exceptions",
        "pod_target_xcconfig": {
            "HEADER_SEARCH_PATHS": f'"${{PODS_TARGET_SRCROOT}}/{OBJECTIVE_C}"',
            "OTHER_CPLUSPLUSFLAGS": HIDDEN,
        },
    }


def _common(inputs: AppleInputs, name: str, summary: str) -> dict[str, Any]:
    minimums = deployment_targets(inputs)
    return {
        "name": name,
        "version": inputs.first.plan.ort_version,
        "summary": summary,
        "homepage": "https://onnxruntime.ai",
        "license": {"type": " AND ".join(all_licences(inputs.first)), "file": "LICENSE"},
        "authors": "Microsoft Corporation",
        "source": {"http": "file:///the-folder-is-named-by-:path"},
        "platforms": {POD_PLATFORMS[platform]: minimum for platform, minimum in sorted(minimums.items())},
        "preserve_paths": ["LICENSE", "ThirdPartyNotices.txt"],
    }


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


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
    minimums = deployment_targets(inputs)
    words = [f'.iOS("{minimums[ApplePlatform.IOS]}")'] if ApplePlatform.IOS in minimums else []
    catalyst = [part.minimum_os for part in inputs.slices if part.slice.variant is AppleVariant.CATALYST]
    words += [f'.macCatalyst("{minimum}")' for minimum in catalyst]
    return words + ([f'.macOS("{minimums[ApplePlatform.MACOS]}")'] if ApplePlatform.MACOS in minimums else [])


Contents = tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]


def signed(files: Iterable[PackagedFile], links: Iterable[PackagedLink], sign: Callable[[Path], None]) -> Contents:
    """Return a package's files and links after `sign` was given the path of the xcframework among them.

    The signature holds a time, so that the bytes are no longer those of another run. Raises what `sign` raises.
    """
    inside = [file for file in files if file.path.startswith(f"{XCFRAMEWORK}/")]
    outside = tuple(file for file in files if file not in inside)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_contents(folder, inside, links)
        sign(folder / XCFRAMEWORK)
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
    mode = {"mode": PROGRAM_MODE} if program else {}
    return PackagedFile(path=path.relative_to(folder).as_posix(), content=path.read_bytes(), **mode)


APPLE_TOOLCHAIN: Final = "xcode"


@dataclass(frozen=True, kw_only=True)
class AppleContent:
    """The files and links of the zip, what it says of itself, and the libraries in it."""

    files: tuple[PackagedFile, ...]
    links: tuple[PackagedLink, ...]
    manifest: AppleManifest
    libraries: tuple[FrameworkLibrary, ...]

    def content(self, path: str) -> bytes | Path:
        """Return one file's content. Raises StopIteration for a path that is not there."""
        return next(file.content for file in self.files if file.path == path)


def apple_content(inputs: AppleInputs, sign: Callable[[Path], None] | None = None) -> AppleContent:
    """Return all that goes into the zip; `sign` signs the xcframework at a path, and is None for none.

    Raises `PackageError`, `BinaryError` for a library that cannot be read, and what `sign` raises.
    """
    libraries = tuple(framework_library(each) for each in inputs.slices)
    reasons = _reasons(libraries)
    files, links = _payload(inputs, libraries, privacy_manifest(reasons) if reasons else None)
    check_paths((*(file.path for file in files), *(link.path for link in links)))
    for part in inputs.parts:
        refuse_machine_paths(part.inputs, files)
    if sign is not None:
        files, links = signed(files, links, sign)
    described_files, manifest = described(
        inputs.first, inputs.name, files, lambda entries: _manifest(inputs, libraries, reasons, entries)
    )
    return AppleContent(files=described_files, links=links, manifest=manifest, libraries=libraries)


def _reasons(libraries: tuple[FrameworkLibrary, ...]) -> tuple[RequiredReason, ...]:
    undefined = {
        each.inputs.slice.identifier: (
            each.inputs.slice.platform,
            tuple(name for image in each.facts.images for name in image.undefined),
        )
        for each in libraries
    }
    return required_reasons(undefined)


def _payload(
    inputs: AppleInputs, libraries: tuple[FrameworkLibrary, ...], privacy: bytes | None
) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    first, headers = inputs.first, inputs.first.headers
    frameworks = [framework_files(each, headers, first.plan.ort_version, privacy) for each in libraries]
    files = (
        PackagedFile(path=f"{XCFRAMEWORK}/Info.plist", content=xcframework_plist(each.slice for each in inputs.slices)),
        *(file for inside, _ in frameworks for file in inside),
        *(PackagedFile(path=f"{HEADERS}/{path.name}", content=path) for path in headers),
        *objective_c_files(inputs, privacy),
        *podspec_files(inputs, privacy=privacy is not None),
        PackagedFile(path="LICENSE", content=plain_text(first.licence)),
        PackagedFile(path="ThirdPartyNotices.txt", content=notices_text(first)),
    )
    return files, tuple(link for _, links in frameworks for link in links)


def _manifest(
    inputs: AppleInputs,
    libraries: tuple[FrameworkLibrary, ...],
    reasons: tuple[RequiredReason, ...],
    files: tuple[FileEntry, ...],
) -> AppleManifest:
    plan, job = inputs.first.plan, inputs.first.job
    return AppleManifest(
        name=inputs.name,
        bundle_identifier=BUNDLE_IDENTIFIER,
        ort_version=plan.ort_version,
        ortrim_version=plan.ortrim_version,
        plan_digest=digest(plan),
        linkage=job.linkage,
        profile=job.profile,
        exceptions=job.exceptions,
        compiler=f"{job.toolchain.kind} {job.toolchain.version}",
        tools=job.tools,
        slices=tuple(_slice(each) for each in libraries),
        required_reasons=reasons,
        operators=inputs.first.operators,
        models=plan.models,
        sources=job.sources,
        files=tuple(sorted(files, key=lambda entry: entry.path)),
    )


def _slice(library: FrameworkLibrary) -> AppleSlice:
    part = library.inputs.slice
    return AppleSlice(
        identifier=part.identifier,
        platform=part.platform,
        variant=part.variant,
        minimum_os=library.inputs.minimum_os,
        targets=tuple(_target(each, library) for each in library.inputs.parts),
    )


def _target(part: ApplePart, library: FrameworkLibrary) -> AppleTarget:
    job = part.inputs.job
    image = next(each for each in library.facts.images if each.architecture == part.architecture)
    return AppleTarget(
        target=job.target.identifier,
        architecture=part.architecture,
        uuid=image.uuid,
        cross_built=job.toolchain.kind != APPLE_TOOLCHAIN,
        cpuinfo=has_cpuinfo(job),
        providers=part.apple.providers,
        arguments=job.arguments,
    )


SWIFT_PACKAGE: Final = "onnxruntime"
"""A local package is known by the name of its folder."""
DOCUMENTS: Final = (MANIFEST, SBOM, "LICENSE", "ThirdPartyNotices.txt")
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
    manifest: AppleManifest


def make_apple_package(
    inputs: AppleInputs, destination: Path, sign: Callable[[Path], None] | None = None
) -> ApplePackage:
    """Make the package's folder, `ortrim-<spec>-apple-<version>`, in the folder `destination`.

    The same inputs give the same bytes on any machine whose Python has the same zlib, unless the xcframework is signed:
    `sign` is given its path. The folder appears when it is complete and replaces an earlier one. Raises as
    `check_apple_inputs` and `apple_content` do, `PackageError`, and `StorageError`.
    """
    check_apple_inputs(inputs)
    folder = destination / inputs.name
    try:
        content = apple_content(inputs, sign)
        symbols = symbol_files(content.libraries, inputs.first.plan.ort_version)
        shutil.rmtree(folder, ignore_errors=True)
        publish_folder(folder, lambda temporary: _fill(temporary, inputs, content, symbols))
        return _package(inputs, folder, content, has_symbols=bool(symbols))
    except OSError as error:
        what = "the package cannot be written"
        raise StorageError("package-not-written", what, where=str(folder), why=str(error)) from error


def zip_name(inputs: AppleInputs) -> str:
    """Return the name of the xcframework's zip: with the runtime's version, which snippets of `fetch` read off it."""
    return f"onnxruntime-{inputs.first.plan.ort_version}.xcframework.zip"


def _package(inputs: AppleInputs, folder: Path, content: AppleContent, *, has_symbols: bool) -> ApplePackage:
    archive = folder / SWIFT_PACKAGE / zip_name(inputs)
    return ApplePackage(
        folder=folder,
        swift_package=folder / SWIFT_PACKAGE,
        xcframework=archive,
        checksum=sha256_of(archive),
        symbols=_symbols_zip(folder, inputs) if has_symbols else None,
        manifest=content.manifest,
    )


def _fill(folder: Path, inputs: AppleInputs, content: AppleContent, symbols: tuple[PackagedFile, ...]) -> None:
    archive = folder / SWIFT_PACKAGE / zip_name(inputs)
    write_zip(archive, content.files, content.links)
    if symbols:
        write_zip(_symbols_zip(folder, inputs), symbols)
    documents = [PackagedFile(path=name, content=content.content(name)) for name in DOCUMENTS]
    write_contents(folder, (*_swift_package(inputs, content, archive), *model_files(inputs.first), *documents), ())
    write_sums(folder)


def _swift_package(inputs: AppleInputs, content: AppleContent, archive: Path) -> tuple[PackagedFile, ...]:
    privacy = bool(content.manifest.required_reasons)
    text = package_swift(inputs, archive.name, sha256_of(archive), privacy=privacy)
    sources = (file for file in content.files if file.path.startswith(f"{OBJECTIVE_C}/"))
    return (
        PackagedFile(path=f"{SWIFT_PACKAGE}/Package.swift", content=text),
        *(PackagedFile(path=f"{SWIFT_PACKAGE}/{file.path}", content=file.content) for file in sources),
    )


def _symbols_zip(folder: Path, inputs: AppleInputs) -> Path:
    return folder / f"{inputs.name}-dSYMs.zip"
