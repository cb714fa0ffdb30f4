"""The package of one target: a folder that an application can build against, and the archive of it."""

import shutil
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import Manifest, Package
from ortrim.core.serialization import to_json
from ortrim.core.sums import SUMS, FileEntry, sums_text
from ortrim.errors import Diagnostic, StorageError
from ortrim.package.archive import write_archive
from ortrim.package.contents import PackagedFile, PackagedLink, check_paths, write_contents
from ortrim.package.inputs import PackageInputs, check_inputs
from ortrim.package.libraries import library_files
from ortrim.package.manifest import MANIFEST, make_manifest
from ortrim.package.models import model_files
from ortrim.package.notices import notices_text, plain_text
from ortrim.package.privacy import refuse_machine_paths
from ortrim.package.sums import check_sums
from ortrim.storage.files import disk_full, ran_out_of_space, require_space
from ortrim.storage.folders import publish_folder

SBOM: Final = "sbom.cdx.json"


def make_package(inputs: PackageInputs, destination: Path) -> Package:
    """Make the package's folder, `ortrim-<spec>-<target>-<version>`, and its `.tar.gz` in the folder `destination`.

    The same inputs give the same bytes on any machine. Folder and archive appear when they are complete; a folder
    that is there already is kept when it is exactly what would be made, else replaced. Raises `PackageError`
    (`package-input-missing`, `model-changed`, `bad-package-path`, `bad-soname`, `machine-path`), `BinaryError` for a
    library that cannot be read, `StorageError` (`package-not-written`, `disk-full`).
    """
    check_inputs(inputs)
    try:
        return _make(inputs, destination)
    except OSError as error:
        if ran_out_of_space(error, destination):
            raise disk_full("there is no space left", destination, why=str(error)) from error
        what = "the package cannot be written"
        raise StorageError("package-not-written", what, where=str(destination), why=str(error)) from error


def _make(inputs: PackageInputs, destination: Path) -> Package:
    payload, links = _payload(inputs)
    refuse_machine_paths(inputs, payload)
    files, manifest = _described(inputs, payload)
    folder, archive = destination / inputs.name, destination / f"{inputs.name}.tar.gz"
    if folder.is_dir() and not _is_intact(folder, files, links):
        shutil.rmtree(folder)
    if not folder.is_dir():
        # The archive is smaller than the files, by how much is not known before.
        require_space(destination, sum(file.entry.size_bytes for file in files), "the package")
    publish_folder(folder, lambda temporary: write_contents(temporary, files, links))
    write_archive(folder, archive)
    return Package(archive=archive, folder=folder, manifest=manifest)


def _payload(inputs: PackageInputs) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    """Return what the package is for: library, headers, models and licences."""
    library, links = library_files(inputs)
    files = (
        *library,
        *(PackagedFile(path=f"include/onnxruntime/{path.name}", content=path) for path in inputs.headers),
        *model_files(inputs),
        PackagedFile(path="LICENSE", content=plain_text(inputs.licence)),
        PackagedFile(path="ThirdPartyNotices.txt", content=notices_text(inputs.notices, inputs.licences)),
    )
    check_paths((*(file.path for file in files), *(link.path for link in links)))
    return files, links


def _described(inputs: PackageInputs, payload: tuple[PackagedFile, ...]) -> tuple[tuple[PackagedFile, ...], Manifest]:
    """Add the bill of materials, the manifest that covers it, and the sums that cover both."""
    from ortrim.package.sbom import sbom_text, subject_of  # noqa: PLC0415 - cyclonedx is slow to import, needed only when packaging

    entries: tuple[FileEntry, ...] = tuple(file.entry for file in payload)
    bill = PackagedFile(path=SBOM, content=sbom_text(subject_of(inputs, inputs.name), entries).encode())
    manifest = make_manifest(inputs, (*entries, bill.entry))
    listing = PackagedFile(path=MANIFEST, content=to_json(manifest).encode())
    sums = PackagedFile(path=SUMS, content=sums_text((*manifest.files, listing.entry)).encode())
    return (*payload, bill, listing, sums), manifest


def _is_intact(folder: Path, files: tuple[PackagedFile, ...], links: tuple[PackagedLink, ...]) -> bool:
    """Whether a folder made earlier holds exactly these files and links."""
    sums = next(file.content for file in files if file.path == SUMS)
    try:
        check_sums(folder)
    except Diagnostic:
        return False
    kept = (folder / SUMS).read_bytes() == sums
    return kept and all((folder / link.path).is_symlink() for link in links)
