"""`manifest.json`, bill of materials (CycloneDX 1.6), delivery: what a package is made from, with no machine's path."""

import hashlib
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from ortrim.base.checksums import FileEntry
from ortrim.base.files import sha256_of
from ortrim.base.json import read_json, to_json
from ortrim.binaries.elf import build_id_of
from ortrim.compiling.plan import BuildJob, BuildPlan, JobResult, Manifest, digest
from ortrim.errors import PackageError
from ortrim.models.models import OrtModel
from ortrim.models.operators import RequiredOperators
from ortrim.pins.origins import Origin, origin_of
from ortrim.pins.runtime import SourcePin

SOURCE_DATE_EPOCH: Final = 315_532_800
"""1 January 1980, the earliest time that every archive format can hold; given to all files of all packages."""
FILE_MODE: Final = 0o644
BUILD_IDS: Final = ".build-id"


@dataclass(frozen=True, kw_only=True)
class PackagedFile:
    """A file of the package: its path inside it, and its content as bytes or as the file to copy."""

    path: str
    content: bytes | Path
    mode: int = FILE_MODE

    @property
    def data(self) -> bytes:
        """The content itself."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()

    @property
    def entry(self) -> FileEntry:
        """Size and digest of the file, as manifests record them."""
        if isinstance(self.content, bytes):
            digest = hashlib.sha256(self.content).hexdigest()
            return FileEntry(path=self.path, size_bytes=len(self.content), sha256=digest)
        return FileEntry(path=self.path, size_bytes=self.content.stat().st_size, sha256=sha256_of(self.content))


@dataclass(frozen=True, kw_only=True)
class ComponentLicence:
    """The licence of a component that is compiled in; `version` is of a part that the toolchain brings."""

    component: str
    identifier: str
    path: Path
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class PackageInputs:
    """All that a package of one target is made from.

    `licence` and `notices` are upstream's; `licences` are the texts of all components that are compiled in. `wheels`
    are those that models came in, `name==version` by the model's name.
    """

    plan: BuildPlan
    job: BuildJob
    result: JobResult
    models: tuple[OrtModel, ...]
    operators: RequiredOperators
    licence: Path
    notices: Path
    licences: tuple[ComponentLicence, ...]
    wheels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the package: of its folder, and of its archive without the suffix."""
        return f"ortrim-{self.plan.spec_name}-{self.job.target.identifier}-{self.plan.ort_version}"

    @property
    def symbols(self) -> PackagedFile | None:
        """The symbols of a shared library; those of a static one become the application's own."""
        built = self.result
        return None if built.symbols is None or built.archive else debug_file(built.library, built.symbols)

    @property
    def headers(self) -> tuple[Path, ...]:
        """Upstream's public headers, those of execution providers among them, in order of their names."""
        found = (path for path in self.result.headers.iterdir() if path.suffix in (".h", ".inc"))
        return tuple(sorted(path for path in found if path.is_file()))


def joined_inputs(parts: Iterable[PackageInputs]) -> PackageInputs:
    """Return the inputs of the first of several targets of one package, with all sources and licences."""
    first, *others = parts
    every = (first, *others)
    sources = {pin.name: pin for each in every for pin in each.job.sources}
    licences = {text.component: text for each in every for text in each.licences}
    job = replace(first.job, sources=tuple(sources.values()))
    return replace(first, job=job, licences=tuple(licences.values()))


def require_files(
    paths: Iterable[Path], what: str = "a file of the package does not exist", hint: str = "build the target again"
) -> None:
    """Refuse files for a package that are not there. Raises `PackageError` `package-input-missing`."""
    for path in paths:
        if not path.is_file():
            raise PackageError("package-input-missing", what, where=str(path), hint=hint)


def check_inputs(inputs: PackageInputs) -> None:
    """Refuse inputs that are absent or not those of the plan."""
    built = inputs.result
    files = [built.library, inputs.licence, inputs.notices, *(licence.path for licence in inputs.licences)]
    files += [built.headers / name for name in ("onnxruntime_c_api.h", "onnxruntime_cxx_api.h")]
    files += [built.archive] if built.archive is not None else []
    files += [model.path for model in inputs.models]
    require_files(files, hint="build again: a file of the package was removed or never made")
    planned = {model.name: model.ort_sha256 for model in inputs.plan.models_for(inputs.job.target)}
    given = {model.name: sha256_of(model.path) for model in inputs.models}
    for name in sorted(planned.keys() | given.keys()):
        if planned.get(name) != given.get(name):
            why = f"planned {planned.get(name, 'not at all')}\nactual  {given.get(name, 'not given')}"
            hint = "run the whole build: the runtime was made for another model"
            raise PackageError(
                "model-changed", "a model is not the one that was planned", where=name, why=why, hint=hint
            )


MANIFEST: Final = "manifest.json"
LARGEST_BYTES: Final = 16 << 20
MEMBERS_LIMIT: Final = 10_000
UNPACKED_LIMIT: Final = 8 << 30


def library_facts(job: BuildJob) -> dict[str, Any]:
    """Return what a manifest says of a target's library, by the fields of `PackagedLibrary`."""
    return {
        "target": job.target.identifier,
        "cpuinfo": "onnxruntime_ENABLE_CPUINFO=OFF" not in job.arguments,
        "providers": job.providers,
        "types_for_optimizers": job.types_for_optimizers,
        "arguments": job.arguments,
    }


def shared_facts(inputs: PackageInputs, files: Iterable[FileEntry]) -> dict[str, Any]:
    """Return what the manifest of every kind of package says, by the fields of `PackageManifest`."""
    plan, job = inputs.plan, inputs.job
    return {
        "ort_version": job.ort_version,
        "ortrim_version": plan.ortrim_version,
        "plan_digest": digest(plan),
        "profile": job.profile,
        "exceptions": job.exceptions,
        "linkage": job.linkage,
        "compiler": f"{job.toolchain.kind} {job.toolchain.version}",
        "tools": job.tools,
        "operators": inputs.operators,
        "models": plan.models_for(job.target),
        "sources": job.sources,
        "files": tuple(sorted(files, key=lambda entry: entry.path)),
    }


def make_manifest(inputs: PackageInputs, files: Iterable[FileEntry]) -> Manifest:
    """Return the manifest of a package with these files, itself and `SHA256SUMS` left out."""
    job = inputs.job
    return Manifest(
        **shared_facts(inputs, files),
        **library_facts(job),
        name=inputs.name,
        minimum_glibc=job.minimum_glibc,
        cpu=job.cpu,
        symbols=inputs.symbols.entry if inputs.symbols else None,
    )


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a package, given its folder, its archive, or `manifest.json` itself."""
    if not path.exists():
        raise PackageError("package-missing", "there is no such package", where=str(path))
    path = path / MANIFEST if path.is_dir() else path
    if path.name != MANIFEST:
        return _parsed(_archived_bytes(path), path)
    if not path.is_file():
        raise PackageError("manifest-missing", f"the package has no {MANIFEST}", where=str(path))
    with path.open("rb") as file:
        return _parsed(file.read(LARGEST_BYTES + 1), path)


def _archived_bytes(path: Path) -> bytes:
    try:
        with tarfile.open(path, "r:gz") as archive:
            content = _member_bytes(archive)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        what = "the archive cannot be read"
        hint = "download or build it again"
        raise PackageError("package-damaged", what, where=str(path), why=str(error), hint=hint) from error
    if content is None:
        raise PackageError("manifest-missing", f"the archive has no {MANIFEST}", where=str(path))
    return content


def _member_bytes(archive: tarfile.TarFile) -> bytes | None:
    """Return the manifest's bytes when the whole archive was read: the rest of a damaged one is no package."""
    unpacked, found = 0, None
    for number, member in enumerate(archive):
        unpacked += member.size
        if number >= MEMBERS_LIMIT or unpacked > UNPACKED_LIMIT:
            raise ValueError("it is larger than any package")
        if member.isreg() and member.name.count("/") == 1 and member.name.endswith(f"/{MANIFEST}"):
            content = archive.extractfile(member)
            assert content is not None
            found = content.read(LARGEST_BYTES + 1)
    assert archive.fileobj is not None
    archive.fileobj.read(tarfile.RECORDSIZE + 1)  # past the padding: at the end the checksum is compared
    return found


def _parsed(content: bytes, where: Path) -> Manifest:
    if len(content) > LARGEST_BYTES:
        raise _damaged(where, "it is larger than any manifest")
    return read_json(Manifest, content, _damaged(where, ""))


def _damaged(where: Path, why: str) -> PackageError:
    hint = "it was edited, truncated, or made by an incompatible version of ortrim"
    return PackageError("manifest-damaged", f"{MANIFEST} is not a manifest", where=str(where), why=why, hint=hint)


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


M = TypeVar("M")
SBOM: Final = "sbom.cdx.json"


def described(
    inputs: PackageInputs,
    name: str,
    files: tuple[PackagedFile, ...],
    manifest_of: Callable[[tuple[FileEntry, ...]], M],
    folder: str = "",
) -> tuple[tuple[PackagedFile, ...], M]:
    """Add to the files of a package its bill of materials, and the manifest that covers both, below `folder`."""
    entries = tuple(file.entry for file in files)
    bill = PackagedFile(path=f"{folder}{SBOM}", content=sbom_text(inputs, name, entries).encode())
    manifest = manifest_of((*entries, bill.entry))
    listing = PackagedFile(path=f"{folder}{MANIFEST}", content=to_json(manifest).encode())
    return (*files, bill, listing), manifest


def all_licences(inputs: PackageInputs) -> tuple[str, ...]:
    """Return the SPDX identifiers of all that is compiled in, that of ONNX Runtime first."""
    found = {one for each in _licence_of(inputs).values() for one in each.split(" AND ")}
    own = _licence_of(inputs)["onnxruntime"]
    return (own, *sorted(found - {own}))


def _licence_of(inputs: PackageInputs) -> dict[str, str]:
    given = {text.component: text.identifier for text in inputs.licences}
    return given | {pin.name: pin.licence for pin in inputs.job.sources if pin.licence}


def sbom_text(inputs: PackageInputs, name: str, files: tuple[FileEntry, ...]) -> str:
    """Return the bill of materials as JSON: sources with digests and licences, runtimes of the compiler, models.

    The serial number is made from the files' digests and the timestamp is that of all packages: the same package has
    the same bill.
    """
    version = inputs.job.ort_version
    product = Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        bom_ref=f"package:{name}",
        licenses=_licences(" AND ".join(all_licences(inputs))),
        purl=PackageURL(type="generic", name=name.removesuffix(f"-{version}"), version=version),
    )
    moment = datetime.fromtimestamp(SOURCE_DATE_EPOCH, UTC)
    licences = _licence_of(inputs)
    pinned = {pin.name for pin in inputs.job.sources}
    kind = inputs.job.toolchain.kind
    parts = [
        *(_source(pin, licences.get(pin.name, "")) for pin in inputs.job.sources),
        *(
            _part("runtime", text.component, origin_of(kind, text.component, text.version), text.identifier)
            for text in sorted(inputs.licences, key=lambda text: text.component)
            if text.component not in pinned
        ),
        *(_artifact(inputs, entry) for entry in files if LISTED.fullmatch(entry.path)),
    ]
    lines = sorted(f"{entry.sha256}  {entry.path}" for entry in files)
    bill = Bom(
        serial_number=uuid5(NAMESPACE, hashlib.sha256("\n".join([name, *lines]).encode()).hexdigest()),
        metadata=BomMetaData(component=product, timestamp=moment),
        components=parts,
    )
    bill.register_dependency(product, parts)
    return JsonV1Dot6(bill).output_as_string(indent=2) + "\n"


def _source(pin: SourcePin, licence: str) -> Component:
    part = _part("source", pin.name, origin_of("components", pin.name, pin.version), licence)
    part.properties.add(Property(name="ortrim:source-kind", value=pin.kind))
    if SHA256.fullmatch(pin.digest):
        part.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=pin.digest))
    else:
        part.properties.add(Property(name="ortrim:pin", value=pin.digest))
    return part


def _part(kind: str, name: str, origin: Origin, licence: str) -> Component:
    vcs = [ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(origin.repository))] if origin.repository else []
    return Component(
        type=ComponentType.LIBRARY,
        name=origin.name,
        version=origin.version,
        supplier=OrganizationalEntity(name=origin.supplier),
        bom_ref=f"{kind}:{name}",
        licenses=_licences(licence),
        purl=origin.purl,
        cpe=origin.cpe or None,
        external_references=vcs,
    )


def _artifact(inputs: PackageInputs, entry: FileEntry) -> Component:
    kind = ARTIFACTS[entry.path.split("/")[0]]
    # A model that came in no wheel has no version but its digest.
    wheel, _, version = inputs.wheels.get(PurePosixPath(entry.path).stem, "").partition("==")
    is_model = kind is ComponentType.DATA
    return Component(
        type=kind,
        name=entry.path,
        version=(version or None) if is_model else inputs.job.ort_version,
        bom_ref=f"file:{entry.path}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry.sha256)],
        purl=PackageURL(type="pypi", name=wheel, version=version) if is_model and wheel else None,
    )


def _licences(expression: str) -> list[License]:
    return [LicenseFactory().make_from_string(expression)] if expression else []


def refuse_machine_paths(inputs: PackageInputs, files: tuple[PackagedFile, ...]) -> None:
    """Look for the folders of the build and the sources in every file."""
    folders = sorted({str(path).encode() for path in _folders(inputs)})
    for file in files:
        content = file.data
        found = next((folder for folder in folders if folder in content), None)
        if found is not None:
            hint = "compile with -ffile-prefix-map, so that messages name source files without their folders"
            why = f"it contains {found.decode(errors='replace')}"
            raise PackageError(
                "machine-path", "a file names a folder of this machine", where=file.path, why=why, hint=hint
            )


def _folders(inputs: PackageInputs) -> Iterator[Path]:
    """Yield the folders that could be named, unless so short (`/tmp`, `/src`) that they could occur by chance."""
    texts = (inputs.licence, inputs.notices, *(licence.path for licence in inputs.licences))
    given = (inputs.result.folder, *(path.parent for path in texts), *(model.path.parent for model in inputs.models))
    for folder in given:
        for spelled in (folder, folder.resolve()):
            if spelled.is_absolute() and len(spelled.parts) > 2:
                yield spelled


FACTS: Final = "build.json"
FAILED: Final = "failed.txt"
"""What a delivery has that did not pass, or that nobody has verified to the end: the code of the error."""
PREFIX: Final = "delivered-"  # how the names of deliveries begin; what follows is the spec and the package
SYMBOLS: Final = "-symbols.tar.gz"
"""How the name of the archive ends that has a library's symbols, which lies beside the package."""
ATTESTED: Final = "attested-"
"""What stands before a delivery's name in that of the artifact with the `SHA256SUMS` that was attested."""
FOLDERS: Final = "-folders.zip"
"""How the name of a release's archive ends that holds what lies in folders of a delivery, and their `SHA256SUMS`."""
WORKFLOW: Final = "build.yml"
"""What makes deliveries on GitHub; of other workflows, only runs of those that call it have some."""


@checked_dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class DeliveryFacts:
    """The commit of this repository that a delivery was made of, empty where nobody knew."""

    schema: Literal["ortrim-delivery/1"] = "ortrim-delivery/1"
    commit: Annotated[str, Field(pattern=r"^([0-9a-f]{40}([0-9a-f]{24})?)?$")]


def debug_file(library: Path, symbols: Path) -> PackagedFile:
    """Return a library's symbols under `.build-id/ab/cdef.debug`, where gdb, lldb, perf and debuginfod look."""
    shipped, found = build_id_of(library), build_id_of(symbols)
    if not found or shipped != found:
        why = f"build-id {found or 'none'}; the library that ships has {shipped or 'none'}"
        hint = "build the target again: library and symbols must come from one link"
        what = "these are the symbols of another library"
        raise PackageError("symbols-differ", what, where=str(symbols), why=why, hint=hint)
    return PackagedFile(path=f"{BUILD_IDS}/{found[:2]}/{found[2:]}.debug", content=symbols)
