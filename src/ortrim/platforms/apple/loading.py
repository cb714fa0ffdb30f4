"""How dyld, codesign and App Store Connect want a library to lie; each function says what is wrong with one, if it is.

Read in dyld-1378 (`mach_o/UnsafeHeader.cpp`, `mach_o/Image.cpp`), in cctools (`libstuff/checkout.c`) and in Security
(`macho++.cpp`). dyld demands some of it only of what was linked with newer SDKs; here all of it is demanded of all.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Final

from ortrim.binaries.macho.files import PAGE_BYTES, MachImage, MachKind
from ortrim.binaries.macho.layout import LINKEDIT, MachSegment
from ortrim.verify.gates import some

TEXT: Final = "__TEXT"
CONSTANTS: Final = "__DATA_CONST"
RIGHTS: Final = {TEXT: "r-x", LINKEDIT: "r--", "__DATA": "rw-", CONSTANTS: "rw-"}
OPCODES: Final = frozenset({"rebase opcodes", "bind opcodes", "weak bind opcodes", "lazy bind opcodes", "exports trie"})
"""Parts of LC_DYLD_INFO, between which codesign allows gaps."""
ROUNDED: Final = {"names": 8, "signature": 16}
"""What may lie at the next multiple of so many bytes."""


def is_loaded(image: MachImage) -> bool:
    """Whether dyld maps a file, as it does not map an object or a static library."""
    return image.layout is not None and image.kind in {MachKind.LIBRARY, MachKind.BUNDLE}


def disordered_linkedit(image: MachImage) -> str:
    """Return which part of `__LINKEDIT` does not follow the one before, or does not end the file.

    codesign_allocate moves nothing, and so can append a signature only to parts in its own order.
    """
    linkedit = next((each.file for each in image.segments if each.name == LINKEDIT), None)
    if image.layout is None or linkedit is None:
        return f"there is no {LINKEDIT}"
    end, before = linkedit.start, f"the start of {LINKEDIT}"
    for part in image.layout.parts:
        start, rounding = part.file.start, ROUNDED.get(part.name, 1)
        gap = part.name in OPCODES and before in OPCODES
        if start < end or (start > -(-end // rounding) * rounding and not gap):
            return f"{part.name} at byte {start:,}, {before} ends at {end:,}"
        end, before = part.file.stop, part.name
    if not end == linkedit.stop == image.size_bytes:
        return f"{before} ends at byte {end:,}, {LINKEDIT} at {linkedit.stop:,}, the file at {image.size_bytes:,}"
    return ""


def misaligned_linkedit(image: MachImage) -> str:
    """Return which parts of `__LINKEDIT` do not lie at a multiple of their elements."""
    parts = image.layout.parts if image.layout else ()
    return some(f"{part.name} at byte {part.file.start:,}" for part in parts if part.file.start % part.alignment)


def disordered_symbols(image: MachImage) -> str:
    """Return how the symbol table differs from local, then defined, then undefined symbols, which fill it."""
    if image.layout is None:
        return ""
    everything, *groups = image.layout.symbols
    ends = [0, *(group.stop for group in groups)]
    if [*(group.start for group in groups), everything.stop] == ends:
        return ""
    told = ", ".join(f"{group.start:,} to {group.stop:,}" for group in groups)
    return f"local, defined and undefined symbols are {told} of {everything.stop:,}"


def mixed_fixups(image: MachImage) -> str:
    """Return the ways in which the library says which pointers to change, when there are several."""
    layout = image.layout
    if layout is None:
        return ""
    found = (
        ("LC_DYLD_INFO", layout.dyld_info),
        ("LC_DYLD_CHAINED_FIXUPS", layout.chained_fixups),
        (f"{layout.relocations:,} relocations", bool(layout.relocations)),
    )
    names = [name for name, there in found if there]
    return f"it has {', '.join(names)}" if len(names) > 1 else ""


def wrong_rights(image: MachImage) -> str:
    """Return the segments that are mapped with other rights than dyld allows."""
    shareable = image.layout is not None and image.layout.shareable
    return some(filter(None, (_wrong_rights(each, shareable=shareable) for each in image.segments)))


def _wrong_rights(segment: MachSegment, *, shareable: bool) -> str:
    wanted = RIGHTS.get(segment.name, segment.rights)
    if segment.rights != wanted:
        return f"{segment.name} is {segment.rights}, not {wanted}"
    writable = segment.name == CONSTANTS and not segment.read_only and not shareable
    return f"{segment.name} is not marked as read-only (SG_READ_ONLY)" if writable else ""


def misplaced_segments(image: MachImage) -> str:
    """Return which segments the loader could not map as their load commands say."""
    page, segments = PAGE_BYTES.get(image.architecture, 1), image.segments
    return some((*(why for each in segments for why in _misplaced(each, page)), *_disordered(segments)))


def _misplaced(segment: MachSegment, page: int) -> Iterator[str]:
    if segment.memory.start % page or (segment.file_bytes and segment.file.start % page):
        yield f"{segment.name} does not start on a page of {page:,} bytes"
    if segment.file_bytes > segment.memory_bytes:
        yield f"{segment.name} has more bytes in the file than in memory"
    for name, memory in segment.sections:
        if memory.start < segment.memory.start or memory.stop > segment.memory.stop:
            yield f"{name} lies outside of {segment.name}"


def _disordered(segments: tuple[MachSegment, ...]) -> Iterator[str]:
    if not segments or (segments[0].name, segments[0].file.start) != (TEXT, 0):
        yield f"{TEXT} is not first"
    for one, other in combinations(segments, 2):
        if one.name == other.name:
            yield f"{one.name} is there twice"
        if _overlap(one.memory, other.memory) or _overlap(one.file, other.file):
            yield f"{one.name} and {other.name} overlap"
    for one, other in pairwise(segments):
        if other.memory.start < one.memory.start or (other.file_bytes and other.file.start < one.file.start):
            yield f"{other.name} lies before {one.name}"


def _overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def needed_twice(image: MachImage) -> str:
    """Return the libraries that more than one load command names."""
    return some(name for name, count in Counter(need.name for need in image.needed).items() if count > 1)


def not_encryptable(image: MachImage) -> str:
    """Return why App Store Connect could not encrypt the code for a device."""
    device = any((build.platform, build.variant) == ("ios", "") for build in image.builds)
    if not device or image.layout is None:
        return ""
    encrypted, text = image.layout.encrypted, image.segments[0].file if image.segments else range(0)
    if encrypted is None:
        return "there is no LC_ENCRYPTION_INFO_64"
    page = PAGE_BYTES.get(image.architecture, 1)
    inside = image.layout.commands_end <= encrypted.start < encrypted.stop <= text.stop
    if encrypted.start % page or not inside:
        return f"it would encrypt bytes {encrypted.start:,} to {encrypted.stop:,}, {TEXT} ends at {text.stop:,}"
    return ""
