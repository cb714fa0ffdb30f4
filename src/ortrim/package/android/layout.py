"""What an app team gets for Android: a folder with the AAR, a Maven repository, plain libraries, symbols, and proof."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.aar import AarManifest
from ortrim.errors import StorageError
from ortrim.package.android.aar import OWN_FOLDER, AarContent, aar_content
from ortrim.package.android.inputs import AarInputs, Coordinates, check_aar_inputs
from ortrim.package.android.maven import repository_files
from ortrim.package.android.symbols import symbol_files
from ortrim.package.contents import PackagedFile, write_contents, write_sums
from ortrim.package.models import model_files
from ortrim.package.zips import write_zip
from ortrim.storage.folders import publish_folder
from ortrim.tools.javac import Jdk

REPOSITORY: Final = "maven"
DOCUMENTS: Final = ("manifest.json", "sbom.cdx.json", "LICENSE", "ThirdPartyNotices.txt")
"""What stands in the AAR as well, so that it can be read without opening that."""


@dataclass(frozen=True, kw_only=True)
class AndroidPackage:
    """A finished package: its folder, the AAR, the Maven repository, and the zip of plain libraries.

    `symbols` is the zip of unstripped libraries, None when no build left any.
    """

    folder: Path
    aar: Path
    repository: Path
    jni_libs: Path
    symbols: Path | None
    manifest: AarManifest


def make_android_package(inputs: AarInputs, jdk: Jdk, destination: Path) -> AndroidPackage:
    """Make the package's folder, `ortrim-<spec>-android-<version>`, in the folder `destination`.

    The same inputs and the same version of javac give the same bytes on any machine whose Python has the same zlib;
    with another of these, the AAR has other coordinates. The folder appears when it is complete and replaces an earlier
    one. Raises as `check_aar_inputs` and `aar_content` do, `PackageError` (`symbols-differ`), and `StorageError`
    (`package-not-written`).
    """
    check_aar_inputs(inputs)
    folder = destination / inputs.name
    try:
        content, symbols = aar_content(inputs, jdk), symbol_files(inputs)
        shutil.rmtree(folder, ignore_errors=True)
        coordinates = inputs.coordinates(jdk.version)
        publish_folder(folder, lambda temporary: _fill(temporary, inputs, coordinates, content, symbols))
    except OSError as error:
        what = "the package cannot be written"
        raise StorageError("package-not-written", what, where=str(folder), why=str(error)) from error
    return AndroidPackage(
        folder=folder,
        aar=folder / f"{inputs.name}.aar",
        repository=folder / REPOSITORY,
        jni_libs=folder / f"{inputs.name}-jniLibs.zip",
        symbols=folder / f"{inputs.name}-symbols.zip" if symbols else None,
        manifest=content.manifest,
    )


def _fill(
    folder: Path,
    inputs: AarInputs,
    coordinates: Coordinates,
    content: AarContent,
    symbols: tuple[PackagedFile, ...],
) -> None:
    aar = folder / f"{inputs.name}.aar"
    write_zip(aar, content.files)
    write_zip(folder / f"{inputs.name}-jniLibs.zip", _plain_files(inputs, content))
    if symbols:
        write_zip(folder / f"{inputs.name}-symbols.zip", symbols)
    (folder / REPOSITORY).mkdir()
    write_contents(folder / REPOSITORY, repository_files(inputs, coordinates, aar), ())
    documents = [PackagedFile(path=name, content=content.content(f"{OWN_FOLDER}/{name}")) for name in DOCUMENTS]
    write_contents(folder, (*model_files(inputs.first), *documents), ())
    write_sums(folder)


def _plain_files(inputs: AarInputs, content: AarContent) -> tuple[PackagedFile, ...]:
    """Return what a project that keeps its own `jniLibs` takes: libraries, classes, headers and the rules for R8."""
    return (
        *(
            PackagedFile(path=f"jniLibs/{part.abi}/{name}", content=path)
            for part in inputs.parts
            for name, path in part.libraries
        ),
        *(PackagedFile(path=f"include/{path.name}", content=path) for path in inputs.first.headers),
        PackagedFile(path="libs/onnxruntime.jar", content=content.content("classes.jar")),
        PackagedFile(path="proguard.txt", content=content.content("proguard.txt")),
        PackagedFile(path="LICENSE", content=content.content(f"{OWN_FOLDER}/LICENSE")),
        PackagedFile(path="ThirdPartyNotices.txt", content=content.content(f"{OWN_FOLDER}/ThirdPartyNotices.txt")),
    )
