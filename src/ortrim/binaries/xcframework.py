"""Xcframeworks and frameworks of any origin: a folder, or a zip archive; and which APIs that need a reason they use."""

import plistlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from ortrim.base.archives import Bundle, inside, open_bundle
from ortrim.base.files import sha256_of
from ortrim.binaries.macho.files import MachFile, MachImage, is_binary, macho_of
from ortrim.errors import BinaryError

Plist = Mapping[str, Any]


class BundleLink(NamedTuple):
    """A symbolic link: its path from the root, what it says, and whether that leads to something inside."""

    path: str
    target: str
    leads: bool


@dataclass(frozen=True, kw_only=True)
class FrameworkFacts:
    """A folder `<name>.framework`. All paths are from the root of what was read.

    `module_map` is its text, empty without. `entries` are what lies directly in the folder, links included;
    `other_binaries` the Mach-O files and static libraries beside the binary.
    """

    path: str
    name: str
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

    `platform`, `variant` and `architectures` are what the entry says, else the binary. `binary` is None where there is
    none at `binary_path`. `size_bytes` leaves debug symbols out. `astray` are the keys of the entry whose path leads
    nowhere.
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

    `root` is the path of its folder in what was read; `digest` is an archive's SHA-256, empty for a folder. `version`
    is by `Info.plist` or load command. `unlisted` are the folders that no entry names; `doubles` what Finder leaves.
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


LARGEST: Final = 256 << 10
MOST_VALUES: Final = 50_000
"""A list of 256 KB as XML has fewer; in a binary one a value may be named many times, so that it unfolds to more."""
MOST_DEPTH: Final = 50


def read_plist(data: bytes, where: str) -> dict[str, Any]:
    """Return the table in a property list."""
    if len(data) > LARGEST:
        raise _damaged(where, f"it has {len(data):,} bytes")
    try:
        content = plistlib.loads(data)
    except Exception as error:  # expat's, plistlib's own, and what damaged binary ones make Python raise
        raise _damaged(where, f"{type(error).__name__}: {str(error)[:200]}") from error
    if not isinstance(content, dict):
        raise _damaged(where, f"it holds a {type(content).__name__}")
    if why := _unbounded(content):
        raise _damaged(where, why)
    return {str(key): value for key, value in content.items()}


def _unbounded(content: Any) -> str:
    waiting, seen = [(content, 1)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > MOST_DEPTH:
            return f"it has more than {MOST_DEPTH} levels"
        if seen > MOST_VALUES:
            return f"it has more than {MOST_VALUES:,} values"
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting.extend((each, depth + 1) for each in inner)
    return ""


def _damaged(where: str, why: str) -> BinaryError:
    hint = "make it again, as XML or binary, with a dictionary at its top; on a Mac, `plutil -lint` says more"
    return BinaryError("plist-damaged", "this is not a property list", where=where, why=why, hint=hint)


FRAMEWORK_SUFFIX: Final = ".framework"
PRIVACY: Final = "PrivacyInfo.xcprivacy"
MODULE_MAP: Final = "Modules/module.modulemap"
LARGEST_TEXT: Final = 1 << 20


def framework_binary(bundle: Bundle, path: str, name: str, said: str) -> str:
    """Return where the binary of the framework at `path` is, or would be: where it is `said` to be, or by its name.

    In a framework with versions whose links are lost it is in the version.
    """
    stem = name.removesuffix(FRAMEWORK_SUFFIX)
    plain = inside(path, stem)
    versions = [each for each in bundle.below(inside(path, "Versions")) if PurePosixPath(each).name == stem]
    candidates = (
        *([said] if said else []),
        plain,
        *(each for each in versions if each.count("/") == plain.count("/") + 2),
    )
    return next((found for found in map(bundle.file, candidates) if found), said or plain)


def read_framework(bundle: Bundle, path: str, name: str, binary: str) -> FrameworkFacts:
    """Return what is in the framework at `path`, whose binary, a file or what would be one, is at `binary`."""
    inner = inside(str(PurePosixPath(binary).parent), "")
    plist_path = _first(bundle, path, inner, INFO)
    start = f"{path}/" if path else ""
    below = (name.removeprefix(start) for name in (*bundle.files, *bundle.links) if name.startswith(start))
    return FrameworkFacts(
        path=path,
        name=name.removesuffix(FRAMEWORK_SUFFIX),
        plist_path=plist_path or inside(path, INFO),
        plist=_plist(bundle, plist_path),
        module_map=_text(bundle, _first(bundle, path, inner, MODULE_MAP)),
        headers=_headers(bundle, path) or _headers(bundle, inner),
        privacy=_plist(bundle, _first(bundle, path, inner, PRIVACY)),
        entries=tuple(sorted({name.split("/")[0] for name in below})),
        other_binaries=tuple(name for name in bundle.below(path) if name != binary and is_binary(bundle.head(name, 8))),
    )


def _first(bundle: Bundle, path: str, inner: str, name: str) -> str:
    """Return a file of a framework, wherever it has its resources; links are followed. Empty when it is nowhere."""
    folders = (path, inside(path, "Resources"), inside(inner, "Resources"), inner)
    return next((found for folder in folders if (found := bundle.file(inside(folder, name)))), "")


def _plist(bundle: Bundle, path: str) -> dict[str, Any] | None:
    return read_plist(bundle.read(path), f"{bundle.where}: {path}") if path else None


def _text(bundle: Bundle, path: str) -> str:
    if not path or bundle.files[path] > LARGEST_TEXT:
        return ""
    return bundle.read(path).decode("utf-8", errors="replace")


def _headers(bundle: Bundle, folder: str) -> tuple[str, ...]:
    found = bundle.found(inside(folder, "Headers"))
    return tuple(name.removeprefix(f"{found}/") for name in bundle.below(found)) if found else ()


SUFFIX: Final = ".xcframework"
INFO: Final = "Info.plist"
LIBRARIES: Final = "AvailableLibraries"
PATHS: Final = ("BinaryPath", "HeadersPath", "DebugSymbolsPath")
"""Keys of an entry that name something in the slice's folder, beside the library itself."""
MOST_SLICES: Final = 32
DOUBLE: Final = re.compile(r"(^|/)(__MACOSX/|\._|\.DS_Store$)")  # what Finder and its archives put beside files
SYMBOLS: Final = re.compile(r"(^|/)(dSYMs|BCSymbolMaps)/|\.dSYM/")  # Debug symbols of a slice, which no app gets
OTHER_FOLDERS: Final = frozenset({"_CodeSignature", "dSYMs"})
"""What an xcframework may have that is no slice: the signature of the whole."""


def read_xcframework(path: Path) -> XcframeworkFacts:
    """Return what is in an xcframework, or in a framework by itself: its folder, or a folder or zip that holds one."""
    with open_bundle(path) as bundle:
        root = _root(bundle, path)
        plist = _own_plist(bundle, root) if (root or path.name).endswith(SUFFIX) else None
        slices = (_alone(bundle, root, path),) if plist is None else tuple(_slices(bundle, root, plist))
        return XcframeworkFacts(
            file=path.name,
            root=root,
            size_bytes=sum(bundle.files.values()) if path.is_dir() else path.stat().st_size,
            digest="" if path.is_dir() else sha256_of(path),
            version=_version(slices),
            plist=plist,
            slices=slices,
            unlisted=() if plist is None else _unlisted(bundle, root, slices),
            doubles=tuple(sorted(name for name in bundle.files if DOUBLE.search(name))),
            links=tuple(
                BundleLink(path, target, bundle.found(path) is not None)
                for path, target in sorted(bundle.links.items())
            ),
        )


def holds_framework(names: Iterable[str]) -> bool:
    """Whether paths are those of an xcframework or a framework."""
    return any(f"{suffix}/" in name for name in names for suffix in (SUFFIX, FRAMEWORK_SUFFIX))


def _root(bundle: Bundle, path: Path) -> str:
    """Return the folder of what is to be read, empty when it is all."""
    if path.is_dir() and path.suffix in {SUFFIX, FRAMEWORK_SUFFIX}:
        return ""
    for suffix in (SUFFIX, FRAMEWORK_SUFFIX):
        found = sorted({folder for name in bundle.files for folder in _outermost(name, suffix)})
        if len(found) > 1:
            what = f"holds {len(found)} of what it should hold one: {', '.join(found[:5])}"
            hint = "give the folder of one xcframework; Swift Package Manager needs one per archive, too"
            raise BinaryError("several-xcframeworks", what, where=str(path), hint=hint)
        if found:
            return found[0]
    raise _none(path, "there is no folder called *.xcframework or *.framework in it")


def _outermost(name: str, suffix: str) -> Iterator[str]:
    """Yield the outermost folder with a suffix that a file is in, if there is one; what Finder adds is left out."""
    parts = PurePosixPath(name).parts[:-1]
    number = next((number for number, part in enumerate(parts) if part.endswith(suffix)), None)
    if number is not None and not DOUBLE.search(name):
        yield "/".join(parts[: number + 1])


def _own_plist(bundle: Bundle, root: str) -> dict[str, Any]:
    where = Path(bundle.where, root)
    name = bundle.file(inside(root, INFO))
    if name is None:
        raise _none(where, f"it has no {INFO}")
    plist = read_plist(bundle.read(name), f"{bundle.where}: {name}")
    entries = plist.get(LIBRARIES)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _none(where, f"its {INFO} has no list of {LIBRARIES}")
    if len(entries) > MOST_SLICES:
        raise _none(where, f"its {INFO} lists {len(entries):,} libraries")
    return plist


def _slices(bundle: Bundle, root: str, plist: dict[str, Any]) -> Iterator[SliceFacts]:
    for entry in plist[LIBRARIES]:
        identifier, said = _word(entry, "LibraryIdentifier"), _word(entry, "BinaryPath")
        folder = inside(root, identifier)
        library = inside(folder, _word(entry, "LibraryPath"))
        architectures = entry.get("SupportedArchitectures")
        yield replace(
            _library(bundle, library, PurePosixPath(library).name, inside(folder, said) if said else ""),
            identifier=identifier,
            platform=_word(entry, "SupportedPlatform"),
            variant=_word(entry, "SupportedPlatformVariant"),
            architectures=tuple(map(str, architectures)) if isinstance(architectures, list) else (),
            size_bytes=_size(bundle, folder),
            astray=tuple(key for key in PATHS if _word(entry, key) and not _leads(bundle, folder, _word(entry, key))),
        )


def _leads(bundle: Bundle, folder: str, said: str) -> bool:
    """Whether something is where an entry says, in the slice's own folder."""
    found = bundle.found(inside(folder, said))
    return found is not None and found.startswith(f"{folder}/")


def _alone(bundle: Bundle, root: str, path: Path) -> SliceFacts:
    """Return a framework that is in no xcframework: what it is for is what its binary says."""
    whole = _library(bundle, root, PurePosixPath(root or path.name).name, "")
    builds = [build for image in whole.images for build in image.builds]
    architectures = whole.binary.architectures if whole.binary else ()
    if not builds:
        return replace(whole, architectures=architectures)
    return replace(whole, platform=builds[0].platform, variant=builds[0].variant, architectures=architectures)


def _library(bundle: Bundle, path: str, name: str, said: str) -> SliceFacts:
    """Return the library file or the framework at `path`, which is called `name`; its binary is `said` to be there."""
    is_framework = name.endswith(FRAMEWORK_SUFFIX)
    binary = framework_binary(bundle, path, name, said) if is_framework else bundle.file(path) or path
    has_binary = binary in bundle.files
    return SliceFacts(
        identifier="",
        platform="",
        variant="",
        architectures=(),
        library=path,
        binary_path=binary,
        binary=macho_of(bundle.read(binary), f"{bundle.where}: {binary}") if has_binary else None,
        framework=read_framework(bundle, path, name, binary) if is_framework and bundle.below(path) else None,
        size_bytes=_size(bundle, path),
    )


def _size(bundle: Bundle, folder: str) -> int:
    return sum(bundle.files[name] for name in bundle.below(folder) if not SYMBOLS.search(name))


def _word(entry: dict[str, Any], key: str) -> str:
    """Return a value that should be a word; empty when it is none."""
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _unlisted(bundle: Bundle, root: str, slices: tuple[SliceFacts, ...]) -> tuple[str, ...]:
    names = (PurePosixPath(name).relative_to(root).parts for name in bundle.below(root))
    folders = {parts[0] for parts in names if len(parts) > 1}
    return tuple(sorted(folders - {each.identifier for each in slices} - OTHER_FOLDERS))


def _version(slices: tuple[SliceFacts, ...]) -> str:
    plists = (each.framework.plist for each in slices if each.framework and each.framework.plist)
    said = (plist.get("CFBundleShortVersionString") for plist in plists)
    own = (image.version for each in slices for image in each.images)
    return next((version for version in (*said, *own) if isinstance(version, str) and version), "")


def _none(path: Path, why: str) -> BinaryError:
    hint = "inspect takes the folder *.xcframework or *.framework, or a zip archive with one"
    return BinaryError("not-an-xcframework", "this is not an xcframework", where=str(path), why=why, hint=hint)


@dataclass(frozen=True, kw_only=True)
class Category:
    """A category of the API: Apple's name of it, its symbols without the underscore, and our reasons to use it."""

    name: str
    reasons: tuple[str, ...]
    symbols: tuple[str, ...]


@cache
def categories() -> tuple[Category, ...]:
    """Return Apple's list, as far as it shows in undefined symbols."""
    text = (files("ortrim") / "resources" / "package" / "apple" / "required-reasons.toml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Category, ...]).validate_python(tomllib.loads(text)["categories"])


def used_categories(undefined: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names of the categories that symbols belong to, each with those symbols in order of their names."""
    names = {plain_name(name) for name in undefined}
    found = {category.name: tuple(sorted(names & set(category.symbols))) for category in categories()}
    return {name: symbols for name, symbols in found.items() if symbols}


def plain_name(symbol: str) -> str:
    """Return a symbol's name without its variant: `stat$INODE64` is what `stat` is on Macs with Intel's processors."""
    return symbol if symbol.startswith("OBJC_") else symbol.partition("$")[0]
