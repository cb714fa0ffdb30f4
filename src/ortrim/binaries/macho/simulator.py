"""A phone's library as that of the simulators on Macs with Apple's processors, which run the same code.

What differs: the platform, the UUID, the place of what the App Store encrypts, which only a phone's has, and the ad hoc
signature, without which such a Mac loads nothing. Source of the format: Apple's mach-o/loader.h and cs_blobs.h.
"""

import struct
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from ortrim.base.files import storage_errors
from ortrim.binaries.macho.exports import DIRECTORY_MAGIC, LC_CODE_SIGNATURE, SHA256, SIGNATURE_MAGIC, with_digests
from ortrim.binaries.macho.files import checked_header, diagnosed, load_commands

LC_SEGMENT_64, LC_UUID, LC_ENCRYPTION_INFO_64, LC_BUILD_VERSION = 0x19, 0x1B, 0x2C, 0x32
PHONE, SIMULATOR = 2, 7
COMMANDS: Final = 32  # where load commands begin
PAGE_SHIFT: Final = 14
DIRECTORY: Final = struct.Struct(">9I4B4I4Q")
VERSION, LINKER_SIGNED = 0x20400, 0x20002  # CS_ADHOC and CS_LINKER_SIGNED: other tools sign over it


def make_simulators(library: Path) -> None:
    """Make a phone's library the simulators', and its symbols beside it; see `for_simulator`."""
    symbols = library.with_name(f"{library.name}.dwarf")
    with storage_errors(library):
        library.write_bytes(for_simulator(library.read_bytes(), library.name, str(library)))
        if symbols.exists():
            content = bytearray(symbols.read_bytes())
            _name_simulator(content)
            symbols.write_bytes(content)


def for_simulator(data: bytes, name: str, where: str = "") -> bytes:
    """Return a phone's library, which nobody has signed, as the simulators', signed as `name`."""
    with diagnosed(where):
        checked_header(data)
        content, places = bytearray(data), tuple(load_commands(data))
        text, *_, linkedit = (place for kind, place in places if kind == LC_SEGMENT_64)
        build, uuid, encrypted = (
            dict(places).get(kind, 0) for kind in (LC_BUILD_VERSION, LC_UUID, LC_ENCRYPTION_INFO_64)
        )
        (platform,) = struct.unpack_from("<I", data, build + 8)
        if not (build and uuid and encrypted) or platform != PHONE or LC_CODE_SIGNATURE in dict(places):
            raise ValueError("it is not a phone's, as zig links it")
        _name_simulator(content)
        start = _rounded(len(data), 16)
        (code,) = struct.unpack_from("<Q", data, text + 48)
        signature = unhashed_signature(start, code, name)
        (offset,) = struct.unpack_from("<Q", data, linkedit + 40)
        size = start + len(signature) - offset
        struct.pack_into("<3Q", content, linkedit + 32, _rounded(size, 1 << PAGE_SHIFT), offset, size)
        (length,) = struct.unpack_from("<I", data, 20)
        # The signature's command is eight bytes shorter than that of what is encrypted.
        after = content[encrypted + 24 : COMMANDS + length] + struct.pack(
            "<4I8x", LC_CODE_SIGNATURE, 16, start, len(signature)
        )
        content[encrypted : COMMANDS + length] = after
        struct.pack_into("<I", content, 20, length - 8)
        return with_digests(content.ljust(start, b"\0") + signature, start)


def _name_simulator(content: bytearray) -> None:
    """Write the simulators' platform and a UUID of their own into a file's load commands."""
    places = dict(load_commands(content))
    build, uuid = places[LC_BUILD_VERSION], places[LC_UUID]
    struct.pack_into("<I", content, build + 8, SIMULATOR)
    content[uuid + 8 : uuid + 24] = uuid5(UUID(bytes=bytes(content[uuid + 8 : uuid + 24])), "simulator").bytes


def unhashed_signature(covered: int, code: int, name: str) -> bytes:
    """Return an ad hoc signature of so many bytes as zig writes it, with zeros for the digests of their pages."""
    identifier, pages = name.encode() + b"\0", _rounded(covered, 1 << PAGE_SHIFT) >> PAGE_SHIFT
    digests = DIRECTORY.size + len(identifier)
    length = digests + 32 * pages
    fields = (DIRECTORY_MAGIC, length, VERSION, LINKER_SIGNED, digests, DIRECTORY.size, 0, pages, covered)
    directory = DIRECTORY.pack(*fields, 32, SHA256, 0, PAGE_SHIFT, 0, 0, 0, 0, 0, 0, code, 0)
    whole = struct.pack(">5I", SIGNATURE_MAGIC, 20 + length, 1, 0, 20) + directory + identifier + bytes(32 * pages)
    return whole.ljust(_rounded(len(whole), 8), b"\0")


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
