"""The software bill of materials, CycloneDX 1.6; a function of the package's content and nothing else."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from ortrim.core.plan import SourcePin
from ortrim.core.sums import FileEntry
from ortrim.package.archive import SOURCE_DATE_EPOCH
from ortrim.package.inputs import ComponentLicence, PackageInputs

NAMESPACE: Final = UUID("0f5f2f5c-6d0a-5f3e-9c55-6f1f3f7b1d21")
"""Ours alone: serial numbers are made in it from the digests of a package's files."""
SHA256: Final = re.compile(r"[0-9a-f]{64}")
FILE, DATA = ComponentType.FILE, ComponentType.DATA
ARTIFACTS: Final = {
    "lib": FILE, "jni": FILE, "classes.jar": FILE, "onnxruntime.xcframework": FILE, "models": DATA, "assets": DATA,
}  # fmt: skip
"""What a bill lists of a package's files, by the first folder: libraries and classes as files, models as data."""
LISTED: Final = re.compile(
    r"lib/[^/]+|jni/.+|classes\.jar|(models|assets)/.+\.ort"
    r"|onnxruntime\.xcframework/.+\.framework/(Versions/A/)?onnxruntime"
)
"""The folders below `lib` hold what leads to the library."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a bill is of: the package's name, the runtime's version, and the sources and licences of what is inside."""

    name: str
    version: str
    sources: tuple[SourcePin, ...]
    licences: tuple[ComponentLicence, ...]


def subject_of(inputs: PackageInputs, name: str) -> Subject:
    """Return what the bill of a package of that name is of: its only target's inputs, or those of its first."""
    job = inputs.job
    return Subject(name=name, version=job.ort_version, sources=job.sources, licences=inputs.licences)


def sbom_text(subject: Subject, files: tuple[FileEntry, ...]) -> str:
    """Return the bill of materials as JSON: sources with digests and licences, runtimes of the compiler, models.

    The serial number is made from the files' digests and the timestamp is that of all packages, so that the same
    package has the same bill.
    """
    product = _product(subject)
    moment = datetime.fromtimestamp(SOURCE_DATE_EPOCH, UTC)
    parts = [*_sources(subject), *_runtimes(subject), *_artifacts(subject, files)]
    bill = Bom(
        serial_number=uuid5(NAMESPACE, _fingerprint(subject.name, files)),
        metadata=BomMetaData(component=product, timestamp=moment),
        components=parts,
    )
    bill.register_dependency(product, parts)
    return JsonV1Dot6(bill).output_as_string(indent=2) + "\n"


def _fingerprint(name: str, files: Iterable[FileEntry]) -> str:
    lines = sorted(f"{entry.sha256}  {entry.path}" for entry in files)
    return hashlib.sha256("\n".join([name, *lines]).encode()).hexdigest()


def _product(subject: Subject) -> Component:
    kind, name = ComponentType.LIBRARY, subject.name
    return Component(type=kind, name=name, version=subject.version, bom_ref=f"package:{name}")


def _sources(subject: Subject) -> list[Component]:
    texts = {licence.component: licence.identifier for licence in subject.licences}
    return [_source(pin, pin.licence or texts.get(pin.name, "")) for pin in subject.sources]


def _source(pin: SourcePin, licence: str) -> Component:
    is_sha256 = SHA256.fullmatch(pin.digest) is not None
    qualifiers = {"checksum": f"sha256:{pin.digest}"} if is_sha256 else None
    pinned = [] if is_sha256 else [Property(name="ortrim:pin", value=pin.digest)]
    return Component(
        type=ComponentType.LIBRARY,
        name=pin.name,
        version=pin.version,
        bom_ref=f"source:{pin.name}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=pin.digest)] if is_sha256 else [],
        licenses=_licences(licence),
        purl=PackageURL(type="generic", name=pin.name, version=pin.version, qualifiers=qualifiers),
        properties=[Property(name="ortrim:source-kind", value=pin.kind), *pinned],
    )


def _runtimes(subject: Subject) -> list[Component]:
    """Return the components with a licence but no source of their own: the compiler's libraries."""
    pinned = {pin.name for pin in subject.sources}
    found = {text.component: text.identifier for text in subject.licences if text.component not in pinned}
    kind = ComponentType.LIBRARY
    return [
        Component(type=kind, name=name, bom_ref=f"runtime:{name}", licenses=_licences(identifier))
        for name, identifier in sorted(found.items())
    ]


def _artifacts(subject: Subject, files: tuple[FileEntry, ...]) -> list[Component]:
    """Return the libraries as files and the models as data, each with its digest."""
    return [
        Component(
            type=ARTIFACTS[entry.path.split("/")[0]],
            name=entry.path,
            version=subject.version,
            bom_ref=f"file:{entry.path}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry.sha256)],
        )
        for entry in files
        if LISTED.fullmatch(entry.path)
    ]


def _licences(expression: str) -> list[License]:
    """Return an SPDX identifier, expression, or a plain name as CycloneDX has it."""
    return [LicenseFactory().make_from_string(expression)] if expression else []
