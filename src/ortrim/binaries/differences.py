"""What tells two libraries apart, in the terms in which one is promised to be the other."""

from pathlib import Path
from typing import Final

from ortrim.binaries.elf import read_bytes, read_library
from ortrim.binaries.macho import diagnosed, is_macho
from ortrim.binaries.macho_image import unwritten_bytes
from ortrim.binaries.macho_layout import is_thin
from ortrim.binaries.macho_library import read_apple_library
from ortrim.binaries.sizes import library_size
from ortrim.core.library_facts import LibraryFacts, LibrarySize
from ortrim.storage.files import sha256_of

OTHER_BYTES: Final = "the same sizes, exports and needs, but other bytes"


def differences(first: Path, second: Path) -> tuple[str, ...]:
    """Return in words how two shared libraries differ in size, sections, exports and needs; none when in nothing.

    Of libraries for Macs segments are told in the place of sections. Bytes that differ within sections of the same
    sizes are one difference of their own. Raises `BinaryError`.
    """
    (one_facts, one_size), (other_facts, other_size) = _read(first), _read(second)
    facts, sizes = (one_facts, other_facts), (one_size, other_size)
    if sha256_of(first) == sha256_of(second):
        return ()
    pairs = (
        ("file bytes", *(size.file_bytes for size in sizes)),
        *(
            (f"section {name} bytes", *(_sections(size).get(name, 0) for size in sizes))
            for name in sorted({name for size in sizes for name in _sections(size)})
        ),
        ("exported symbols", *(fact.exported for fact in facts)),
        ("needed libraries", *(fact.needed for fact in facts)),
        ("needed versions", *(fact.symbol_versions for fact in facts)),
    )
    found = tuple(f"{name}: {one} and {other}" for name, one, other in pairs if one != other)
    return found or (OTHER_BYTES,)


def differs_in_order_alone(found: tuple[str, ...], first_map: Path, second_map: Path) -> bool:
    """Whether two libraries with the differences `found` are the same but for the order of the linker's own tables.

    They are when the maps of both links put the same sections of the same objects at the same addresses. lld orders the
    entries of `.got`, and the relocations that fill them, as it first reads each name, in members of archives that it
    does not take as well; on x86-64 it does without most of those entries. Raises `OSError`.
    """
    return found == (OTHER_BYTES,) and first_map.read_bytes() == second_map.read_bytes()


def differs_in_what_was_not_written(found: tuple[str, ...], first: Path, second: Path) -> bool:
    """Whether two libraries for Macs with the differences `found` are the same but for what the linker did not write.

    Raises `BinaryError`.
    """
    one, other = read_bytes(first), read_bytes(second)
    if found != (OTHER_BYTES,) or not (is_thin(one) and is_thin(other)):
        return False
    with diagnosed(str(first)):
        places = unwritten_bytes(one)
        return places == unwritten_bytes(other) and _without(one, places) == _without(other, places)


def _without(data: bytes, places: tuple[range, ...]) -> bytes:
    rest = bytearray(data)
    for place in places:
        rest[place.start : place.stop] = bytes(len(place))
    return bytes(rest)


def _read(library: Path) -> tuple[LibraryFacts, LibrarySize]:
    if is_macho(read_bytes(library)):
        return read_apple_library(library)
    return read_library(library), library_size(library, None)


def _sections(size: LibrarySize) -> dict[str, int]:
    return {component.component: component.size_bytes for component in size.components}
