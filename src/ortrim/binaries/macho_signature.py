"""The ad hoc signature of a Mach-O file, without which no Apple processor of ARM runs it: digests of its pages.

Source of the format: Apple's kern/cs_blobs.h.
"""

import hashlib
import struct
from dataclasses import dataclass
from typing import Final

from ortrim.binaries.macho_commands import load_commands

LC_CODE_SIGNATURE: Final = 0x1D
SIGNATURE_MAGIC: Final = 0xFADE0CC0
DIRECTORY_MAGIC: Final = 0xFADE0C02
DIRECTORY_SLOT: Final = 0
SHA256: Final = 2


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The digests of a file's pages: where the first of `count` lies, and how many bytes of the file they cover."""

    place: int
    count: int
    page_bytes: int
    covered: int


def signed_anew(data: bytes) -> bytes:
    """Return a file of one architecture with the digests of its pages as they are; unchanged when it is not signed.

    Raises ValueError and struct.error for damage, and for digests that are not SHA-256.
    """
    pages = _pages(data)
    if pages is None:
        return data
    content = bytearray(data)
    for number, digest in enumerate(_digests(data, pages)):
        place = pages.place + number * len(digest)
        content[place : place + len(digest)] = digest
    return bytes(content)


def is_signature_true(data: bytes) -> bool:
    """Whether a file's digests are those of its pages; False when it is not signed. Raises as `signed_anew` does."""
    pages = _pages(data)
    if pages is None:
        return False
    return data[pages.place : pages.place + 32 * pages.count] == b"".join(_digests(data, pages))


def _digests(data: bytes, pages: Pages) -> tuple[bytes, ...]:
    starts = range(0, pages.count * pages.page_bytes, pages.page_bytes)
    return tuple(
        hashlib.sha256(data[start : min(start + pages.page_bytes, pages.covered)]).digest() for start in starts
    )


def _pages(data: bytes) -> Pages | None:
    place = dict(load_commands(data)).get(LC_CODE_SIGNATURE)
    if place is None:
        return None
    (start,) = struct.unpack_from("<I", data, place + 8)
    magic, _, count = struct.unpack_from(">III", data, start)
    slots = dict(struct.unpack_from(">II", data, start + 12 + 8 * number) for number in range(count))
    directory = start + slots.get(DIRECTORY_SLOT, 0)
    fields = struct.unpack_from(">9I4B", data, directory)
    if magic != SIGNATURE_MAGIC or fields[0] != DIRECTORY_MAGIC:
        raise ValueError("its signature is damaged")
    hashes, pages, covered, digest_bytes, kind, page_shift = (fields[n] for n in (4, 7, 8, 9, 10, 12))
    if (kind, digest_bytes) != (SHA256, 32):
        raise ValueError("its signature is not of SHA-256")
    found = Pages(place=directory + hashes, count=pages, page_bytes=1 << page_shift, covered=covered)
    if pages != -(-covered // found.page_bytes) or found.place + 32 * pages > len(data) or covered > start:
        raise ValueError("its signature is damaged")
    return found
