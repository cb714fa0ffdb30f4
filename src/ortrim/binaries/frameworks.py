"""What is in a framework's folder. Source: Apple's guide to the anatomy of framework bundles."""

from pathlib import PurePosixPath
from typing import Any, Final

from ortrim.binaries.archives import MAGIC as ARCHIVE_MAGIC
from ortrim.binaries.macho import is_macho
from ortrim.binaries.property_lists import read_plist
from ortrim.core.xcframework import FrameworkFacts
from ortrim.storage.bundles import Bundle, inside

SUFFIX: Final = ".framework"
INFO: Final = "Info.plist"
PRIVACY: Final = "PrivacyInfo.xcprivacy"
MODULE_MAP: Final = "Modules/module.modulemap"
LARGEST_TEXT: Final = 1 << 20


def framework_binary(bundle: Bundle, path: str, name: str, said: str) -> str:
    """Return where the binary of the framework at `path` is, or would be: where it is `said` to be, or by its name.

    `name` is the framework's, with its suffix. In a framework with versions whose links are lost it is in the version.
    """
    stem = name.removesuffix(SUFFIX)
    plain = inside(path, stem)
    versions = [each for each in bundle.below(inside(path, "Versions")) if PurePosixPath(each).name == stem]
    candidates = (
        *([said] if said else []),
        plain,
        *(each for each in versions if each.count("/") == plain.count("/") + 2),
    )
    return next((found for found in map(bundle.file, candidates) if found), said or plain)


def read_framework(bundle: Bundle, path: str, name: str, binary: str) -> FrameworkFacts:
    """Return what is in the framework at `path`, whose binary, a file or what would be one, is at `binary`.

    Raises `BinaryError` (`plist-damaged`) and as `Bundle.read` does.
    """
    inner = inside(str(PurePosixPath(binary).parent), "")
    plist_path = _first(bundle, path, inner, INFO)
    return FrameworkFacts(
        path=path,
        name=name.removesuffix(SUFFIX),
        inner=inner,
        plist_path=plist_path or inside(path, INFO),
        plist=_plist(bundle, plist_path),
        module_map=_text(bundle, _first(bundle, path, inner, MODULE_MAP)),
        headers=_headers(bundle, path) or _headers(bundle, inner),
        privacy=_plist(bundle, _first(bundle, path, inner, PRIVACY)),
        entries=_entries(bundle, path),
        other_binaries=tuple(each for each in bundle.below(path) if each != binary and _is_binary(bundle, each)),
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
    """Return the headers with their paths below the folder of headers."""
    found = bundle.found(inside(folder, "Headers"))
    return tuple(name.removeprefix(f"{found}/") for name in bundle.below(found)) if found else ()


def _entries(bundle: Bundle, path: str) -> tuple[str, ...]:
    start = f"{path}/" if path else ""
    below = (name.removeprefix(start) for name in (*bundle.files, *bundle.links) if name.startswith(start))
    return tuple(sorted({name.split("/")[0] for name in below}))


def _is_binary(bundle: Bundle, name: str) -> bool:
    head = bundle.head(name, 8)
    return is_macho(head) or head.startswith(ARCHIVE_MAGIC)
