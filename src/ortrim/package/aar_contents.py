"""AARs of any origin: libraries, classes, rules and metadata, read without unpacking and without trusting anything."""

import io
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

from ortrim.base.archives import Zip, open_zip
from ortrim.base.json import read_json
from ortrim.binaries.android import JavaClasses, NativeLibrary
from ortrim.binaries.android_libraries import read_class, read_native_library
from ortrim.compiling.plan import PackagedLibrary, PackageManifest
from ortrim.errors import BinaryError


@dataclass(frozen=True, kw_only=True)
class AarLibraries(PackagedLibrary):
    """An ABI of `manifest.json`, with the build-id of each library by name."""

    abi: str
    build_ids: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class AarManifest(PackageManifest):
    """`manifest.json` of an AAR; `page_bytes` is what it is aligned for, `java` whether the Java API is in it."""

    schema: Literal["ortrim-aar/1"] = "ortrim-aar/1"
    coordinates: str
    api_level: int
    page_bytes: int
    ndk: str
    stl: str
    java: bool = True
    abis: tuple[AarLibraries, ...]


@dataclass(frozen=True, kw_only=True)
class AbiSize:
    """Bytes of one ABI: of its libraries as they are, in the AAR, and of a download (classes and assets included)."""

    abi: str
    library_bytes: int
    compressed_bytes: int
    download_bytes: int


@dataclass(frozen=True, kw_only=True)
class AarFacts:
    """What an AAR holds. `version` is the runtime's own, read from its library; empty when it does not say.

    `attributes` are the `application` element's; `manifest` is None when ortrim did not make it; `asset_bytes` is
    compressed.
    """

    file: str
    size_bytes: int
    version: str
    package: str
    minimum_api: int | None
    attributes: tuple[tuple[str, str], ...]
    metadata: tuple[tuple[str, str], ...]
    libraries: tuple[NativeLibrary, ...]
    classes: JavaClasses | None
    keep_rules: tuple[str, ...]
    prefab: tuple[str, ...]
    headers: tuple[str, ...]
    assets: tuple[str, ...]
    asset_bytes: int
    members: int
    manifest: AarManifest | None

    @property
    def abis(self) -> tuple[str, ...]:
        """The ABIs that have libraries, in order of their names."""
        return tuple(sorted({library.abi for library in self.libraries}))

    def of_abi(self, abi: str) -> tuple[NativeLibrary, ...]:
        """Return the libraries of one ABI."""
        return tuple(library for library in self.libraries if library.abi == abi)

    @property
    def sizes(self) -> tuple[AbiSize, ...]:
        """What each ABI takes: its libraries lie uncompressed in the APK, which is compressed for the download.

        bundletool's `get-size` estimates that with gzip, and so does this: libraries, classes (smaller after R8) and
        assets.
        """
        shared = self.asset_bytes + (self.classes.compressed_bytes if self.classes else 0)
        return tuple(self._size(abi, shared) for abi in self.abis)

    def _size(self, abi: str, shared: int) -> AbiSize:
        libraries = self.of_abi(abi)
        return AbiSize(
            abi=abi,
            library_bytes=sum(library.size_bytes for library in libraries),
            compressed_bytes=sum(library.compressed_bytes for library in libraries),
            download_bytes=shared + sum(library.download_bytes for library in libraries),
        )


MANIFEST: Final = "AndroidManifest.xml"
ANDROID: Final = "{http://schemas.android.com/apk/res/android}"
BINARY_XML: Final = b"\x03\x00\x08\x00"


@dataclass(frozen=True, kw_only=True)
class AndroidManifest:
    """The manifest of a library: its package, the least API level it asks for, the attributes of `application`."""

    package: str
    minimum_api: int | None
    application: tuple[tuple[str, str], ...]


def read_android_manifest(data: bytes, where: str) -> AndroidManifest:
    """Return what a library's manifest says."""
    if data.startswith(BINARY_XML):
        hint = "give the AAR, not an app's APK"
        raise BinaryError("not-an-aar", "this manifest is compiled, as in an APK", where=where, hint=hint)
    try:
        return _manifest(xml_root(data))
    except (ET.ParseError, LookupError, ValueError) as error:
        what = "is not an Android manifest"
        raise BinaryError("bad-android-manifest", what, where=where, why=str(error)) from error


def _manifest(root: ET.Element) -> AndroidManifest:
    if root.tag != "manifest":
        raise ValueError(f"its first element is {root.tag[:100]!r}")
    sdk, application = root.find(".//uses-sdk"), root.find(".//application")
    minimum = None if sdk is None else sdk.get(f"{ANDROID}minSdkVersion")
    attributes = {} if application is None else application.attrib
    return AndroidManifest(
        package=root.get("package", ""),
        minimum_api=None if minimum is None else int(minimum),
        application=tuple(sorted((name.removeprefix(ANDROID), value) for name, value in attributes.items())),
    )


class _WithoutDoctype(ET.TreeBuilder):
    def doctype(self, *_: object) -> None:
        raise ValueError("it declares a document type, with whose entities a few bytes can become very many")


def xml_root(data: bytes) -> ET.Element:
    """Return the first element of what is XML without a document type. Raises `ParseError` and `ValueError`."""
    return ET.fromstring(data, ET.XMLParser(target=_WithoutDoctype()))  # noqa: S314 - it has no entities


CLASSES: Final = "classes.jar"
METADATA: Final = "META-INF/com/android/build/gradle/aar-metadata.properties"
OWN_MANIFEST: Final = "META-INF/ortrim/manifest.json"
KEEP_RULES: Final = "proguard.txt"
RUNTIME: Final = "libonnxruntime.so"
LIBRARY: Final = re.compile(r"jni/[^/]+/[^/]*\.so")
LARGEST_TEXT: Final = 16 << 20


def read_aar(path: Path) -> AarFacts:
    """Return what an AAR holds."""
    with open_zip(path, str(path)) as archive:
        if MANIFEST not in archive.members:
            hint = "an AAR is a zip archive with AndroidManifest.xml at its top"
            raise BinaryError("not-an-aar", f"has no {MANIFEST}", where=str(path), hint=hint)
        return _facts(archive, path)


def _facts(archive: Zip, path: Path) -> AarFacts:
    about = read_android_manifest(_text(archive, MANIFEST, path), f"{path}: {MANIFEST}")
    libraries = tuple(_library(archive, name) for name in sorted(archive.members) if LIBRARY.fullmatch(name))
    assets = _below(archive, "assets")
    pairs = (line.partition("=") for line in _lines(archive, METADATA, path))
    return AarFacts(
        file=path.name,
        size_bytes=path.stat().st_size,
        version=next((library.version for library in libraries if library.name == RUNTIME), ""),
        package=about.package,
        minimum_api=about.minimum_api,
        attributes=about.application,
        metadata=tuple((key.strip(), value.strip()) for key, _, value in pairs),
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
    hint = "it was edited, truncated, or made by an incompatible version of ortrim"
    damaged = BinaryError("manifest-damaged", f"{OWN_MANIFEST} is not a manifest", where=str(path), hint=hint)
    return read_json(AarManifest, _text(archive, OWN_MANIFEST, path), damaged)


def _below(archive: Zip, folder: str) -> tuple[str, ...]:
    return tuple(sorted(name for name in archive.members if name.startswith(f"{folder}/")))


def _lines(archive: Zip, name: str, path: Path) -> tuple[str, ...]:
    """Return the lines of a text that need not be there, blank ones and comments left out."""
    if name not in archive.members:
        return ()
    lines = (line.strip() for line in _text(archive, name, path).decode("utf-8", errors="replace").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _text(archive: Zip, name: str, path: Path) -> bytes:
    if archive.members[name].file_size > LARGEST_TEXT:
        what = f"{name} is larger than {LARGEST_TEXT:,} bytes"
        raise BinaryError("not-an-aar", what, where=str(path), hint="text files of an AAR are not that large")
    return archive.read(name)
