"""What Mach-O files are made of: libraries, objects and archives for Apple's systems. Pure data."""

from dataclasses import dataclass
from enum import StrEnum


class MachKind(StrEnum):
    """What a Mach-O file is for; archives of objects included."""

    OBJECT = "object"
    PROGRAM = "program"
    LIBRARY = "dynamic library"
    BUNDLE = "bundle"
    SYMBOLS = "debug symbols"
    ARCHIVE = "static library"
    OTHER = "other"


class MachSignature(StrEnum):
    """How a file is signed: by nobody, by its linker without an identity (ad hoc), or by one who has a certificate."""

    NONE = "none"
    AD_HOC = "ad hoc"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, kw_only=True, order=True)
class MachBuild:
    """What a file says it was built for, in LC_BUILD_VERSION or the older LC_VERSION_MIN_*.

    `platform` and `variant` are an xcframework's words for it (`ios` and `simulator`); the platform is Apple's number
    where there is no word. Versions are written without zeros at the end, `15.1`; `sdk` is empty when nothing is said.
    """

    platform: str
    variant: str
    minimum_os: str
    sdk: str

    @property
    def words(self) -> str:
        """All of it in one line: `ios simulator 15.1 (SDK 18.5)`."""
        sdk = f"(SDK {self.sdk})" if self.sdk else ""
        return " ".join(filter(None, (self.platform, self.variant, self.minimum_os, sdk)))


@dataclass(frozen=True, kw_only=True)
class MachNeed:
    """A dynamic library that has to be there when this one is loaded, or, when `weak`, need not be."""

    name: str
    weak: bool


@dataclass(frozen=True, kw_only=True)
class MachSegment:
    """A segment: what it takes in the file and in memory, in bytes."""

    name: str
    file_bytes: int
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class MachSection:
    """A section, or a whole segment that has none: what is at `offset` of the file, unless it is `zeroed` memory."""

    segment: str
    name: str
    offset: int
    size_bytes: int
    zeroed: bool = False


@dataclass(frozen=True, kw_only=True)
class MachImage:
    """One architecture of a file.

    `builds` are all that its parts say, each once: two for a library of macOS and Catalyst together, as many as its
    objects differ in for an archive; `unmarked` counts the objects that say nothing. Names of symbols are C's: without
    the underscore that Mach-O puts before them. `exported` are those that others can link to, `undefined` those needed
    of others. `objects` counts those of an archive, 1 otherwise. `version` is the library's own, empty without.
    """

    architecture: str
    kind: MachKind
    size_bytes: int
    builds: tuple[MachBuild, ...]
    unmarked: int
    install_name: str
    version: str
    exported: tuple[str, ...]
    undefined: tuple[str, ...]
    needed: tuple[MachNeed, ...]
    segments: tuple[MachSegment, ...]
    bitcode: bool
    debug: bool
    uuid: str
    signature: MachSignature
    objects: int = 1


@dataclass(frozen=True, kw_only=True)
class MachFile:
    """A Mach-O file: thin or with several architectures, libraries or archives. `size_bytes` is the whole file's."""

    size_bytes: int
    images: tuple[MachImage, ...]

    @property
    def architectures(self) -> tuple[str, ...]:
        """The architectures in it, sorted, as Apple's tools call them."""
        return tuple(sorted(image.architecture for image in self.images))
