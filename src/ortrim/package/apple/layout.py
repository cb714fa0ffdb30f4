"""What an app team gets for Apple's systems: a folder with the Swift package, the xcframework in it, and proof."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.apple_package import AppleManifest
from ortrim.errors import StorageError
from ortrim.package.apple.inputs import OBJECTIVE_C, AppleInputs, check_apple_inputs
from ortrim.package.apple.swift_package import package_swift
from ortrim.package.apple.symbols import symbol_files
from ortrim.package.apple.xcframework import SBOM, AppleContent, apple_content
from ortrim.package.contents import PackagedFile, write_contents, write_sums
from ortrim.package.manifest import MANIFEST
from ortrim.package.models import model_files
from ortrim.package.zips import write_zip
from ortrim.storage.files import sha256_of
from ortrim.storage.folders import publish_folder

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
    `check_apple_inputs` and `apple_content` do, `PackageError` (`symbols-differ`), and `StorageError`
    (`package-not-written`).
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
