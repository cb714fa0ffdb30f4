"""AARs of any origin: libraries, classes, rules and metadata, read without unpacking and without trusting anything."""

import io
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from ortrim.binaries.android_elf import read_native_library
from ortrim.binaries.android_manifest import MANIFEST, read_android_manifest
from ortrim.binaries.java_classes import read_class
from ortrim.core.aar import AarFacts, AarManifest
from ortrim.core.android import JavaClasses, NativeLibrary
from ortrim.core.serialization import from_json
from ortrim.errors import BinaryError
from ortrim.storage.zips import Zip, open_zip

CLASSES: Final = "classes.jar"
METADATA: Final = "META-INF/com/android/build/gradle/aar-metadata.properties"
OWN_MANIFEST: Final = "META-INF/ortrim/manifest.json"
KEEP_RULES: Final = "proguard.txt"
RUNTIME: Final = "libonnxruntime.so"
LARGEST_TEXT: Final = 16 << 20


def read_aar(path: Path) -> AarFacts:
    """Return what an AAR holds.

    Raises `BinaryError` (`not-an-aar`, `bad-android-manifest`, `corrupt-class`, `corrupt-elf`, `not-elf`, ...) and
    `StorageError` as `open_zip` does.
    """
    with open_zip(path, str(path)) as archive:
        if MANIFEST not in archive.members:
            hint = "an AAR is a zip archive with AndroidManifest.xml at its top"
            raise BinaryError("not-an-aar", f"has no {MANIFEST}", where=str(path), hint=hint)
        return _facts(archive, path)


def _facts(archive: Zip, path: Path) -> AarFacts:
    about = read_android_manifest(_text(archive, MANIFEST, path), f"{path}: {MANIFEST}")
    libraries = tuple(_library(archive, name) for name in sorted(archive.members) if _is_library(name))
    assets = _below(archive, "assets")
    return AarFacts(
        file=path.name,
        size_bytes=path.stat().st_size,
        version=next((library.version for library in libraries if library.name == RUNTIME), ""),
        package=about.package,
        minimum_api=about.minimum_api,
        attributes=about.application,
        metadata=tuple(_pair(line) for line in _lines(archive, METADATA, path)),
        libraries=libraries,
        classes=_classes(archive, path) if CLASSES in archive.members else None,
        keep_rules=_lines(archive, KEEP_RULES, path),
        prefab=_below(archive, "prefab"),
        headers=_below(archive, "headers"),
        assets=assets,
        asset_bytes=sum(archive.members[name].compress_size for name in assets),
        members=len(archive.members),
        manifest=_own_manifest(archive, path),
    )


def _is_library(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return len(parts) == 3 and parts[0] == "jni" and name.endswith(".so")


def _library(archive: Zip, name: str) -> NativeLibrary:
    entry, data = archive.members[name], archive.read(name)
    deflated = entry.compress_type == zipfile.ZIP_DEFLATED
    download = entry.compress_size if deflated else len(zlib.compress(data, 9))
    return read_native_library(data, name, entry.compress_size, download)


def _classes(archive: Zip, path: Path) -> JavaClasses:
    data, where = archive.read(CLASSES), f"{path}: {CLASSES}"
    with open_zip(io.BytesIO(data), where) as jar:
        names = [name for name in jar.members if name.endswith(".class") and not name.endswith("module-info.class")]
        classes = [read_class(jar.read(name), f"{where}: {name}") for name in names]
    return JavaClasses(
        count=len(classes),
        class_version=max((each.version for each in classes), default=0),
        size_bytes=len(data),
        compressed_bytes=archive.members[CLASSES].compress_size,
        native_methods=tuple(method for each in classes for method in each.native_methods),
    )


def _own_manifest(archive: Zip, path: Path) -> AarManifest | None:
    if OWN_MANIFEST not in archive.members:
        return None
    try:
        return from_json(AarManifest, _text(archive, OWN_MANIFEST, path))
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(str(part) for part in first['loc']) or 'the whole'}: {first['msg']}"
        hint = "it was edited, cut off, or made by an incompatible version of ortrim"
        what = f"{OWN_MANIFEST} is not a manifest"
        raise BinaryError("manifest-damaged", what, where=str(path), why=why, hint=hint) from error


def _below(archive: Zip, folder: str) -> tuple[str, ...]:
    return tuple(sorted(name for name in archive.members if name.startswith(f"{folder}/")))


def _lines(archive: Zip, name: str, path: Path) -> tuple[str, ...]:
    """Return the lines of a text that need not be there, blank ones and comments left out."""
    if name not in archive.members:
        return ()
    lines = (line.strip() for line in _text(archive, name, path).decode("utf-8", errors="replace").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key.strip(), value.strip()


def _text(archive: Zip, name: str, path: Path) -> bytes:
    if archive.members[name].file_size > LARGEST_TEXT:
        what = f"{name} is larger than {LARGEST_TEXT:,} bytes"
        raise BinaryError("not-an-aar", what, where=str(path), hint="no AAR's texts are that large")
    return archive.read(name)
