"""What reads crashes: a dSYM for each slice, apart from what ships, and found by its UUIDs."""

from ortrim.binaries.macho import macho_of
from ortrim.binaries.universal import universal_file
from ortrim.core.macho import MachFile
from ortrim.errors import PackageError
from ortrim.package.apple.framework import FrameworkLibrary
from ortrim.package.apple.inputs import ApplePart
from ortrim.package.apple.plists import BUNDLE, FRAMEWORK, symbols_plist
from ortrim.package.contents import PackagedFile


def symbol_files(libraries: tuple[FrameworkLibrary, ...], version: str) -> tuple[PackagedFile, ...]:
    """Return a dSYM for each slice whose parts all have symbols, as Xcode lays them; what is static becomes the app's.

    Raises `PackageError` (`symbols-differ`) for those of another link, and `BinaryError` for what cannot be read.
    """
    return tuple(file for library in libraries for file in _of_slice(library, version))


def _of_slice(library: FrameworkLibrary, version: str) -> tuple[PackagedFile, ...]:
    parts, contents = library.inputs.parts, f"{library.inputs.slice.identifier}/{BUNDLE}.dSYM/Contents"
    dynamic = [part for part in parts if part.symbols is not None and part.inputs.job.linkage == "shared"]
    found = {part.architecture: _checked(part, library.facts) for part in dynamic}
    if len(found) < len(parts):
        return ()
    return (
        PackagedFile(path=f"{contents}/Info.plist", content=symbols_plist(version)),
        PackagedFile(path=f"{contents}/Resources/DWARF/{FRAMEWORK}", content=universal_file(found)),
    )


def _checked(part: ApplePart, shipped: MachFile) -> bytes:
    assert part.symbols is not None
    content = part.symbols.read_bytes()
    (image,) = macho_of(content, str(part.symbols)).images
    library = next(each for each in shipped.images if each.architecture == part.architecture)
    if not image.uuid or (image.uuid, image.architecture) != (library.uuid, library.architecture):
        why = f"UUID {image.uuid or 'none'}; the library that ships has {library.uuid or 'none'}"
        what, hint = "these are the symbols of another library", "build the target again: both come from one link"
        raise PackageError("symbols-differ", what, where=str(part.symbols), why=why, hint=hint)
    return content
