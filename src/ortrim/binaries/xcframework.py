"""Xcframeworks and frameworks of any origin: a folder, or a zip archive that holds one."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ortrim.binaries.frameworks import SUFFIX as FRAMEWORK
from ortrim.binaries.frameworks import framework_binary, read_framework
from ortrim.binaries.macho import macho_of
from ortrim.binaries.property_lists import read_plist
from ortrim.core.xcframework import BundleLink, SliceFacts, XcframeworkFacts
from ortrim.errors import BinaryError
from ortrim.storage.bundles import Bundle, inside, open_bundle
from ortrim.storage.files import sha256_of

SUFFIX: Final = ".xcframework"
INFO: Final = "Info.plist"
LIBRARIES: Final = "AvailableLibraries"
PATHS: Final = ("BinaryPath", "HeadersPath", "DebugSymbolsPath")
"""Keys of an entry that name something in the slice's folder, beside the library itself."""
MOST_SLICES: Final = 32
DOUBLE: Final = re.compile(r"(^|/)(__MACOSX/|\._|\.DS_Store$)")
"""What Finder and its archives put beside files."""
SYMBOLS: Final = re.compile(r"(^|/)(dSYMs|BCSymbolMaps)/|\.dSYM/")
"""Debug symbols of a slice, which no app gets."""
OTHER_FOLDERS: Final = frozenset({"_CodeSignature", "dSYMs"})
"""What an xcframework may have that is no slice: the signature of the whole."""


def read_xcframework(path: Path) -> XcframeworkFacts:
    """Return what is in an xcframework, or in a framework by itself: its folder, or a folder or zip that holds one.

    Raises `BinaryError` (`not-an-xcframework`, `several-xcframeworks`, `plist-damaged`, and as `macho_of` does) and
    `StorageError` as `open_bundle` does.
    """
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
            links=tuple(_links(bundle)),
        )


def holds_framework(names: Iterable[str]) -> bool:
    """Whether the paths of files tell of an xcframework or a framework."""
    return any(f"{suffix}/" in name for name in names for suffix in (SUFFIX, FRAMEWORK))


def _root(bundle: Bundle, path: Path) -> str:
    """Return the folder of what is to be read, empty when it is all."""
    if path.is_dir() and path.suffix in {SUFFIX, FRAMEWORK}:
        return ""
    for suffix in (SUFFIX, FRAMEWORK):
        found = sorted({folder for name in bundle.files for folder in _outermost(name, suffix)})
        if len(found) > 1:
            what = f"holds {len(found)} of what it should hold one: {', '.join(found[:5])}"
            hint = "name the folder of one; Swift's package manager wants one in an archive, too"
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
    is_framework = name.endswith(FRAMEWORK)
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
    """Return the bytes of what ships of a folder."""
    return sum(bundle.files[name] for name in bundle.below(folder) if not SYMBOLS.search(name))


def _word(entry: dict[str, Any], key: str) -> str:
    """Return a value that should be a word; empty when it is none."""
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _unlisted(bundle: Bundle, root: str, slices: tuple[SliceFacts, ...]) -> tuple[str, ...]:
    names = (PurePosixPath(name).relative_to(root).parts for name in bundle.below(root))
    folders = {parts[0] for parts in names if len(parts) > 1}
    return tuple(sorted(folders - {each.identifier for each in slices} - OTHER_FOLDERS))


def _links(bundle: Bundle) -> Iterator[BundleLink]:
    for path, target in sorted(bundle.links.items()):
        yield BundleLink(path=path, target=target, leads=bundle.found(path) is not None)


def _version(slices: tuple[SliceFacts, ...]) -> str:
    plists = (each.framework.plist for each in slices if each.framework and each.framework.plist)
    said = (plist.get("CFBundleShortVersionString") for plist in plists)
    own = (image.version for each in slices for image in each.images)
    return next((version for version in (*said, *own) if isinstance(version, str) and version), "")


def _none(path: Path, why: str) -> BinaryError:
    hint = "inspect takes the folder *.xcframework or *.framework, or a zip archive with one"
    return BinaryError("not-an-xcframework", "this is not an xcframework", where=str(path), why=why, hint=hint)
