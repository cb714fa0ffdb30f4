"""Xcframeworks, frameworks and what lies around them: what one of any origin holds. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ortrim.core.macho import MachFile, MachImage

Plist = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class BundleLink:
    """A symbolic link: its path from the root, what it says, and whether that leads to something inside."""

    path: str
    target: str
    leads: bool


@dataclass(frozen=True, kw_only=True)
class FrameworkFacts:
    """A folder `<name>.framework`. All paths are from the root of what was read.

    `inner` is the folder that holds its binary, `<name>.framework/Versions/A` in a framework with versions. `plist` and
    `privacy`, the privacy manifest, are None where there is none. `module_map` is its text, empty without; `headers`
    are file names. `entries` are what lies directly in the folder, links included; `other_binaries` the Mach-O files
    and static libraries beside the binary.
    """

    path: str
    name: str
    inner: str
    plist_path: str
    plist: Plist | None
    module_map: str
    headers: tuple[str, ...]
    privacy: Plist | None
    entries: tuple[str, ...]
    other_binaries: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SliceFacts:
    """A library for one platform: an entry of an xcframework, or a framework by itself, which has no `identifier`.

    `platform`, `variant` and `architectures` are what the entry says; a framework by itself says it in its binary
    alone. `library` is the path of the framework or library file; `binary` is None where there is none at
    `binary_path`. `size_bytes` is that of all files that belong to it, debug symbols left out. `astray` are the keys of
    the entry that name a path where nothing is.
    """

    identifier: str
    platform: str
    variant: str
    architectures: tuple[str, ...]
    library: str
    binary_path: str
    binary: MachFile | None
    framework: FrameworkFacts | None
    size_bytes: int
    astray: tuple[str, ...] = ()

    @property
    def images(self) -> tuple[MachImage, ...]:
        """The architectures of its binary, none without one."""
        return self.binary.images if self.binary else ()

    @property
    def kind(self) -> str:
        """The platform and its variant in one word: `ios`, `ios-simulator`."""
        return f"{self.platform}-{self.variant}" if self.variant else self.platform

    @property
    def on_mac(self) -> bool:
        """Whether it runs on Macs, where frameworks have versions; Catalyst does."""
        return self.platform == "macos" or self.variant == "maccatalyst"


@dataclass(frozen=True, kw_only=True)
class XcframeworkFacts:
    """What an xcframework holds, or a framework by itself, which has no `plist`.

    `root` is the path of its folder in what was read, a folder or a zip archive; `digest` is the archive's SHA-256,
    empty for a folder. `version` is the library's own by its `Info.plist` or load command, empty when neither says.
    `unlisted` are the folders that no entry names; `doubles` the files that Finder leaves beside others in archives.
    """

    file: str
    root: str
    size_bytes: int
    digest: str
    version: str
    plist: Plist | None
    slices: tuple[SliceFacts, ...]
    unlisted: tuple[str, ...]
    doubles: tuple[str, ...]
    links: tuple[BundleLink, ...]

    @property
    def images(self) -> tuple[tuple[SliceFacts, MachImage], ...]:
        """Each architecture of each slice."""
        return tuple((each, image) for each in self.slices for image in each.images)
