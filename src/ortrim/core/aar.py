"""AARs: what one holds, and the manifest of those that ortrim makes."""

from dataclasses import dataclass
from typing import Literal

from ortrim.core.android import JavaClasses, NativeLibrary
from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import PlannedModel, SourcePin
from ortrim.core.sums import FileEntry


@dataclass(frozen=True, kw_only=True)
class AarLibraries:
    """An ABI of `manifest.json`: its target, how its library was built, and the build-id of each library by name.

    `cpuinfo` says whether the library pytorch/cpuinfo is compiled in; `providers` are the execution providers beside
    the CPU's; `arguments` are those of upstream's build script.
    """

    abi: str
    target: str
    build_ids: tuple[tuple[str, str], ...]
    cpuinfo: bool
    providers: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AarManifest:
    """`manifest.json` of an AAR: what is in it and what it was made from; `page_bytes` is what it is aligned for."""

    schema: Literal["ortrim-aar/1"] = "ortrim-aar/1"
    name: str
    coordinates: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    api_level: int
    page_bytes: int
    ndk: str
    stl: str
    profile: str
    exceptions: bool
    linkage: Literal["shared"] = "shared"
    compiler: str
    tools: tuple[tuple[str, str], ...]
    abis: tuple[AarLibraries, ...]
    operators: RequiredOperators
    models: tuple[PlannedModel, ...]
    sources: tuple[SourcePin, ...]
    files: tuple[FileEntry, ...]


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

    `attributes` are those of the manifest's `application` element; `manifest` is None when ortrim did not make it.
    `asset_bytes` is compressed; `members` counts all files.
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
        """What each ABI takes.

        An app bundle gives a device the libraries of its ABI alone. They lie uncompressed in the APK, and the whole APK
        is compressed for the download; bundletool's `get-size` estimates that with gzip, and so does this: deflated
        libraries, classes and assets. R8 makes the classes smaller than that.
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
