"""A Maven repository in a folder: an app adds its address, and names the AAR by its coordinates."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from ortrim.core.plan import digest
from ortrim.package.android.inputs import DIGEST_LETTERS, AarInputs, Coordinates
from ortrim.package.contents import PackagedFile
from ortrim.package.templates import rendered

DIGESTS: Final = ("md5", "sha1", "sha256", "sha512")
"""Maven checks the first two, Gradle all."""
VARIANTS: Final = (("releaseApiElements", "java-api"), ("releaseRuntimeElements", "java-runtime"))
ATTRIBUTES: Final = {
    "org.gradle.category": "library",
    "org.gradle.dependency.bundling": "external",
    "org.gradle.libraryelements": "aar",
}


def repository_files(inputs: AarInputs, coordinates: Coordinates, aar: Path) -> tuple[PackagedFile, ...]:
    """Return the files of the repository, by path from its top: the AAR, what describes it, and their digests.

    `.module` is Gradle's own description, to which the POM refers; `maven-metadata.xml` lists the one version.
    """
    top = f"{coordinates.group.replace('.', '/')}/{coordinates.artifact}"
    stem = f"{top}/{coordinates.version}/{coordinates.artifact}-{coordinates.version}"
    values = {
        "coordinates": coordinates,
        "ort_version": inputs.first.plan.ort_version,
        "spec_name": inputs.first.plan.spec_name,
        "plan_digest": digest(inputs.first.plan)[:DIGEST_LETTERS],
    }
    files = (
        PackagedFile(path=f"{stem}.aar", content=aar),
        PackagedFile(path=f"{stem}.pom", content=rendered("android/pom.xml.j2", values)),
        PackagedFile(path=f"{stem}.module", content=_module(coordinates, aar)),
        PackagedFile(path=f"{top}/maven-metadata.xml", content=rendered("android/maven-metadata.xml.j2", values)),
    )
    return (*files, *(checksum for file in files for checksum in _checksums(file)))


def _module(coordinates: Coordinates, aar: Path) -> bytes:
    """Return Gradle's module metadata; format: docs of Gradle, "Gradle Module Metadata specification", version 1.1."""
    name = f"{coordinates.artifact}-{coordinates.version}.aar"
    file = {"name": name, "url": name, "size": aar.stat().st_size, **_digests(aar)}
    content: dict[str, Any] = {
        "formatVersion": "1.1",
        "component": {
            "group": coordinates.group,
            "module": coordinates.artifact,
            "version": coordinates.version,
            "attributes": {"org.gradle.status": "release"},
        },
        "variants": [
            {"name": variant, "attributes": ATTRIBUTES | {"org.gradle.usage": usage}, "files": [file]}
            for variant, usage in VARIANTS
        ],
    }
    return (json.dumps(content, indent=2) + "\n").encode()


def _digests(content: bytes | Path) -> dict[str, str]:
    data = content if isinstance(content, bytes) else content.read_bytes()
    return {name: hashlib.new(name, data, usedforsecurity=False).hexdigest() for name in DIGESTS}


def _checksums(file: PackagedFile) -> tuple[PackagedFile, ...]:
    digests = _digests(file.content)
    return tuple(PackagedFile(path=f"{file.path}.{name}", content=digests[name].encode()) for name in DIGESTS)
