"""Several architectures in one file, as `lipo -create` joins them. Source of the format: Apple's mach-o/fat.h."""

import struct
from collections.abc import Mapping
from typing import Final

from ortrim.binaries.macho_layout import FAT_MAGIC

PROCESSORS: Final = {"x86_64": (0x01000007, 3, 12), "arm64": (0x0100000C, 0, 14)}
"""Architecture -> Apple's numbers of it (processor and subtype), and the power of two that is its page."""
HEADER: Final = struct.Struct(">4sI")
ENTRY: Final = struct.Struct(">iiIII")
LARGEST: Final = 0xFFFFFFFF
"""Offsets have 32 bits; files beyond that need another format, which older systems do not read."""


def universal_file(parts: Mapping[str, bytes]) -> bytes:
    """Return one file of several architectures: libraries, or static libraries, each as it is and on a page of its own.

    The same parts give the same bytes, in whatever order they come. What has one architecture stays thin. Raises
    KeyError for an architecture that Apple's systems of today do not run on, ValueError for files that are too large.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    ordered = sorted(parts, key=lambda name: (PROCESSORS[name][2], name))  # lipo's order: the smallest pages first
    position, entries, content = HEADER.size + ENTRY.size * len(ordered), [], bytearray()
    for name in ordered:
        processor, subtype, power = PROCESSORS[name]
        padding = -(position + len(content)) % (1 << power)
        content += bytes(padding)
        start = position + len(content)
        if start + len(parts[name]) > LARGEST:
            raise ValueError(f"{name} would end beyond 4 GiB")
        entries.append(ENTRY.pack(processor, subtype, start, len(parts[name]), power))
        content += parts[name]
    return HEADER.pack(FAT_MAGIC, len(ordered)) + b"".join(entries) + bytes(content)
