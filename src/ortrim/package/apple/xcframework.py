"""The xcframework's zip: all that goes into it, the manifest and the bill of materials of that."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.apple_package import AppleManifest, AppleSlice, AppleTarget, RequiredReason
from ortrim.core.plan import digest
from ortrim.core.serialization import to_json
from ortrim.core.sums import FileEntry
from ortrim.package.apple.framework import FrameworkLibrary, framework_files, framework_library
from ortrim.package.apple.inputs import AppleInputs, ApplePart
from ortrim.package.apple.objective_c import objective_c_files
from ortrim.package.apple.plists import BUNDLE_IDENTIFIER, XCFRAMEWORK, xcframework_plist
from ortrim.package.apple.podspecs import HEADERS, podspec_files
from ortrim.package.apple.reasons import privacy_manifest, required_reasons
from ortrim.package.apple.signing import signed
from ortrim.package.contents import PackagedFile, PackagedLink, check_paths
from ortrim.package.manifest import MANIFEST, has_cpuinfo
from ortrim.package.notices import notices_text, plain_text
from ortrim.package.privacy import refuse_machine_paths

APPLE_TOOLCHAIN: Final = "xcode"
SBOM: Final = "sbom.cdx.json"


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

    Raises `PackageError` (`bad-package-path`, `machine-path`, `no-required-reason`, and those of `framework_library`),
    `BinaryError` for a library that cannot be read, and what `sign` raises.
    """
    libraries = tuple(framework_library(each) for each in inputs.slices)
    reasons = _reasons(libraries)
    files, links = _payload(inputs, libraries, privacy_manifest(reasons) if reasons else None)
    check_paths((*(file.path for file in files), *(link.path for link in links)))
    for part in inputs.parts:
        refuse_machine_paths(part.inputs, files)
    if sign is not None:
        files, links = signed(files, links, sign)
    return _described(inputs, libraries, reasons, (files, links))


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
        PackagedFile(path="ThirdPartyNotices.txt", content=notices_text(first.notices, first.licences)),
    )
    return files, tuple(link for _, links in frameworks for link in links)


def _described(
    inputs: AppleInputs,
    libraries: tuple[FrameworkLibrary, ...],
    reasons: tuple[RequiredReason, ...],
    payload: tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]],
) -> AppleContent:
    """Add the bill of materials, and the manifest that covers it."""
    from ortrim.package.sbom import sbom_text, subject_of  # noqa: PLC0415 - cyclonedx is slow to import

    first, (files, links) = inputs.first, payload
    entries: tuple[FileEntry, ...] = tuple(file.entry for file in files)
    bill = PackagedFile(path=SBOM, content=sbom_text(subject_of(first, inputs.name), entries).encode())
    manifest = _manifest(inputs, libraries, reasons, (*entries, bill.entry))
    listing = PackagedFile(path=MANIFEST, content=to_json(manifest).encode())
    return AppleContent(files=(*files, bill, listing), links=links, manifest=manifest, libraries=libraries)


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
