"""The software bill of materials, CycloneDX 1.6; a function of the package's content and nothing else."""

import hashlib
import re
from collections.abc import Iterable
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

from ortrim.core.artifacts import FileEntry
from ortrim.core.plan import SourcePin
from ortrim.package.archive import SOURCE_DATE_EPOCH
from ortrim.package.inputs import PackageInputs

NAMESPACE: Final = UUID("0f5f2f5c-6d0a-5f3e-9c55-6f1f3f7b1d21")
"""Ours alone: serial numbers are made in it from the digests of a package's files."""
SHA256: Final = re.compile(r"[0-9a-f]{64}")


def sbom_text(inputs: PackageInputs, files: tuple[FileEntry, ...]) -> str:
    """Return the bill of materials as JSON: sources with digests and licences, runtimes of the compiler, models.

    The serial number is made from the files' digests and the timestamp is that of all packages, so that the same
    package has the same bill.
    """
    product = _product(inputs)
    moment = datetime.fromtimestamp(SOURCE_DATE_EPOCH, UTC)
    parts = [*_sources(inputs), *_runtimes(inputs), *_artifacts(inputs, files)]
    bill = Bom(
        serial_number=uuid5(NAMESPACE, _fingerprint(inputs.name, files)),
        metadata=BomMetaData(component=product, timestamp=moment),
        components=parts,
    )
    bill.register_dependency(product, parts)
    return JsonV1Dot6(bill).output_as_string(indent=2) + "\n"


def _fingerprint(name: str, files: Iterable[FileEntry]) -> str:
    lines = sorted(f"{entry.sha256}  {entry.path}" for entry in files)
    return hashlib.sha256("\n".join([name, *lines]).encode()).hexdigest()


def _product(inputs: PackageInputs) -> Component:

    version = inputs.job.ort_version
    return Component(type=ComponentType.LIBRARY, name=inputs.name, version=version, bom_ref=f"package:{inputs.name}")


def _sources(inputs: PackageInputs) -> list[Component]:
    texts = {licence.component: licence.identifier for licence in inputs.licences}
    return [_source(pin, pin.licence or texts.get(pin.name, "")) for pin in inputs.job.sources]


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


def _runtimes(inputs: PackageInputs) -> list[Component]:
    """Return the components with a licence but no source of their own: the compiler's libraries."""
    pinned = {pin.name for pin in inputs.job.sources}
    found = {text.component: text.identifier for text in inputs.licences if text.component not in pinned}
    kind = ComponentType.LIBRARY
    return [
        Component(type=kind, name=name, bom_ref=f"runtime:{name}", licenses=_licences(identifier))
        for name, identifier in sorted(found.items())
    ]


def _artifacts(inputs: PackageInputs, files: tuple[FileEntry, ...]) -> list[Component]:
    """Return the library as a file and the models as data, each with its digest."""
    kinds = {"lib": ComponentType.FILE, "models": ComponentType.DATA}
    return [
        Component(
            type=kinds[entry.path.split("/")[0]],
            name=entry.path,
            version=inputs.job.ort_version,
            bom_ref=f"file:{entry.path}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry.sha256)],
        )
        for entry in files
        if re.fullmatch(r"lib/[^/]+|models/.+", entry.path)
    ]


def _licences(expression: str) -> list[License]:
    """Return an SPDX identifier, expression, or a plain name as CycloneDX has it."""
    return [LicenseFactory().make_from_string(expression)] if expression else []
