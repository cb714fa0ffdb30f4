"""The AAR: all that goes into it, the manifest and the bill of materials of that."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.binaries.android_elf import read_native_library
from ortrim.core.aar import AarLibraries, AarManifest
from ortrim.core.android import PAGE_BYTES
from ortrim.core.plan import digest
from ortrim.core.serialization import to_json
from ortrim.core.sums import FileEntry
from ortrim.package.android.classes import classes_jar
from ortrim.package.android.inputs import AarInputs, AarPart
from ortrim.package.android.prefab import prefab_files
from ortrim.package.contents import PackagedFile, check_paths
from ortrim.package.manifest import has_cpuinfo
from ortrim.package.models import model_files
from ortrim.package.notices import notices_text, plain_text
from ortrim.package.privacy import refuse_machine_paths
from ortrim.package.templates import rendered
from ortrim.tools.javac import Jdk

OWN_FOLDER: Final = "META-INF/ortrim"
"""What Android Gradle Plugin does not know of in an AAR it leaves alone; nothing of it gets into an app."""
METADATA: Final = "META-INF/com/android/build/gradle/aar-metadata.properties"
METADATA_TEXT: Final = b"""\
aarFormatVersion=1.0
aarMetadataVersion=1.0
minCompileSdk=1
minCompileSdkExtension=0
minAndroidGradlePluginVersion=1.0.0
"""
KEEP_RULES: Final = b"""\
# The JNI library looks for these classes, their constructors and their fields by name.
-keep class ai.onnxruntime.** { *; }
"""


@dataclass(frozen=True, kw_only=True)
class AarContent:
    """The files of an AAR, and what it says of itself."""

    files: tuple[PackagedFile, ...]
    manifest: AarManifest

    def content(self, path: str) -> bytes | Path:
        """Return one file's content. Raises StopIteration for a path that is not there."""
        return next(file.content for file in self.files if file.path == path)


def aar_content(inputs: AarInputs, jdk: Jdk) -> AarContent:
    """Return all that goes into an AAR.

    Raises `PackageError` (`bad-package-path`, `machine-path`, `java-sources-missing`), `BuildError` for classes that do
    not compile, `BinaryError` for a library that cannot be read.
    """
    payload = _payload(inputs, classes_jar(jdk, inputs.java))
    check_paths(file.path for file in payload)
    for part in inputs.parts:
        refuse_machine_paths(part.inputs, payload)
    return _described(inputs, jdk, payload)


def _payload(inputs: AarInputs, classes: bytes) -> tuple[PackagedFile, ...]:
    first, headers = inputs.first, inputs.first.headers
    models = model_files(first, "assets/models") if inputs.models_as_assets else ()
    return (
        PackagedFile(
            path="AndroidManifest.xml", content=rendered("android/AndroidManifest.xml.j2", {"api": inputs.api})
        ),
        PackagedFile(path="R.txt", content=b""),
        PackagedFile(path="classes.jar", content=classes),
        PackagedFile(path="proguard.txt", content=KEEP_RULES),
        PackagedFile(path=METADATA, content=METADATA_TEXT),
        *(
            PackagedFile(path=f"jni/{part.abi}/{name}", content=path)
            for part in inputs.parts
            for name, path in part.libraries
        ),
        *(PackagedFile(path=f"headers/{path.name}", content=path) for path in headers),
        *prefab_files(inputs, headers),
        *models,
        PackagedFile(path=f"{OWN_FOLDER}/LICENSE", content=plain_text(first.licence)),
        PackagedFile(path=f"{OWN_FOLDER}/ThirdPartyNotices.txt", content=notices_text(first.notices, first.licences)),
    )


def _described(inputs: AarInputs, jdk: Jdk, payload: tuple[PackagedFile, ...]) -> AarContent:
    """Add the bill of materials, and the manifest that covers it."""
    from ortrim.package.sbom import sbom_text, subject_of  # noqa: PLC0415 - cyclonedx is slow to import

    first = inputs.first
    entries: tuple[FileEntry, ...] = tuple(file.entry for file in payload)
    bill = PackagedFile(
        path=f"{OWN_FOLDER}/sbom.cdx.json", content=sbom_text(subject_of(first, inputs.name), entries).encode()
    )
    manifest = _manifest(inputs, jdk, (*entries, bill.entry))
    listing = PackagedFile(path=f"{OWN_FOLDER}/manifest.json", content=to_json(manifest).encode())
    return AarContent(files=(*payload, bill, listing), manifest=manifest)


def _manifest(inputs: AarInputs, jdk: Jdk, files: tuple[FileEntry, ...]) -> AarManifest:
    plan, job = inputs.first.plan, inputs.first.job
    return AarManifest(
        name=inputs.name,
        coordinates=str(inputs.coordinates(jdk.version)),
        ort_version=plan.ort_version,
        ortrim_version=plan.ortrim_version,
        plan_digest=digest(plan),
        api_level=inputs.api,
        page_bytes=PAGE_BYTES,
        ndk=inputs.ndk,
        stl=inputs.parts[0].android.stl,
        profile=job.profile,
        exceptions=job.exceptions,
        compiler=f"{job.toolchain.kind} {job.toolchain.version}",
        tools=tuple(sorted((*job.tools, ("javac", jdk.version)))),
        abis=tuple(_libraries(part) for part in inputs.parts),
        operators=inputs.first.operators,
        models=plan.models,
        sources=job.sources,
        files=tuple(sorted(files, key=lambda entry: entry.path)),
    )


def _libraries(part: AarPart) -> AarLibraries:
    read = (
        (name, read_native_library(path.read_bytes(), f"jni/{part.abi}/{name}", 0, 0)) for name, path in part.libraries
    )
    job = part.inputs.job
    return AarLibraries(
        abi=part.abi,
        target=job.target.identifier,
        build_ids=tuple((name, library.build_id) for name, library in read),
        cpuinfo=has_cpuinfo(job),
        providers=part.android.providers,
        arguments=job.arguments,
    )
