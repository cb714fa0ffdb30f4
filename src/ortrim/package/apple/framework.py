"""Frameworks: the files of one slice, flat for a phone, in a version with links to it for a Mac."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.binaries.macho import macho_of
from ortrim.binaries.universal import universal_file
from ortrim.core.macho import MachFile, MachKind
from ortrim.errors import PackageError
from ortrim.package.apple.inputs import ApplePart, AppleSliceInputs
from ortrim.package.apple.plists import BUNDLE, FRAMEWORK, XCFRAMEWORK, framework_plist, is_versioned
from ortrim.package.apple.reasons import PRIVACY_FILE
from ortrim.package.contents import PROGRAM_MODE, PackagedFile, PackagedLink
from ortrim.package.templates import rendered

VERSION: Final = "A"
CXX_HEADER: Final = "onnxruntime_cxx_api.h"
C_HEADERS: Final = ("onnxruntime_c_api.h", "coreml_provider_factory.h")
"""What can be imported as it is, from Swift too; the other headers are parts of these, or are included by name."""


@dataclass(frozen=True, kw_only=True)
class FrameworkLibrary:
    """The library of one slice: all its architectures in one file, and what was read from that."""

    inputs: AppleSliceInputs
    content: bytes
    facts: MachFile


def framework_library(whole: AppleSliceInputs) -> FrameworkLibrary:
    """Join the libraries of a slice's parts.

    Raises `BinaryError` for what cannot be read, `PackageError` (`wrong-architecture`, `wrong-kind`) for a library that
    does not belong into the slice.
    """
    content = universal_file({part.architecture: _checked(part) for part in whole.parts})
    return FrameworkLibrary(inputs=whole, content=content, facts=macho_of(content, whole.slice.identifier))


def framework_files(
    library: FrameworkLibrary, headers: tuple[Path, ...], version: str, privacy: bytes | None
) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    """Return the files and links of a slice's framework, with their paths from where the xcframework lies."""
    part = library.inputs.slice
    root = f"{XCFRAMEWORK}/{part.identifier}/{BUNDLE}"
    inner = f"{root}/Versions/{VERSION}" if is_versioned(part) else root
    resources = f"{inner}/Resources" if is_versioned(part) else root
    files = (
        PackagedFile(path=f"{inner}/{FRAMEWORK}", content=library.content, mode=PROGRAM_MODE),
        PackagedFile(path=f"{resources}/Info.plist", content=framework_plist(part, library.inputs.minimum_os, version)),
        PackagedFile(path=f"{inner}/Modules/module.modulemap", content=module_map(headers)),
        *(PackagedFile(path=f"{inner}/Headers/{path.name}", content=path) for path in headers),
        *([] if privacy is None else [PackagedFile(path=f"{resources}/{PRIVACY_FILE}", content=privacy)]),
    )
    return files, tuple(_links(root)) if is_versioned(part) else ()


def module_map(headers: tuple[Path, ...]) -> bytes:
    """Return what makes `import onnxruntime` work in Swift and in C."""
    names = {path.name for path in headers}
    plain = [name for name in C_HEADERS if name in names]
    return rendered("apple/module.modulemap.j2", {"headers": plain, "cxx_header": CXX_HEADER})


def _links(root: str) -> Iterator[PackagedLink]:
    """Yield what leads from a Mac's framework into its version; `codesign` refuses one whose layout is another."""
    yield PackagedLink(path=f"{root}/Versions/Current", target=VERSION)
    for name in ("Headers", "Modules", "Resources", FRAMEWORK):
        yield PackagedLink(path=f"{root}/{name}", target=f"Versions/Current/{name}")


def _checked(part: ApplePart) -> bytes:
    """Return a part's library when it is one that can be joined with the others of its slice."""
    content, where = part.library.read_bytes(), part.inputs.job.target.identifier
    facts = macho_of(content, where)
    if facts.architectures != (part.architecture,):
        why = f"it is for {', '.join(facts.architectures)}"
        raise PackageError("wrong-architecture", "the library is for another processor", where=where, why=why)
    (image,) = facts.images
    expected = MachKind.LIBRARY if part.inputs.job.linkage == "shared" else MachKind.ARCHIVE
    if image.kind is not expected:
        what, why = f"the framework should hold a {expected}", f"the file is a {image.kind}"
        raise PackageError("wrong-kind", what, where=where, why=why)
    return content
