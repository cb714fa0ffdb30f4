"""The load commands of a 64-bit Mach-O file whose header `macho_layout` has checked."""

import struct
from collections.abc import Iterator
from typing import Final

MAGIC: Final = b"\xcf\xfa\xed\xfe"
HEADER_BYTES: Final = 32
COUNT_FIELD: Final = 16


def load_commands(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the kind and the place of each load command. Raises ValueError for a file that is not of 64 bits."""
    if data[:4] != MAGIC:
        raise ValueError("it is not of 64 bits")
    (count,) = struct.unpack_from("<I", data, COUNT_FIELD)
    start = HEADER_BYTES
    for _ in range(count):
        kind, size = struct.unpack_from("<II", data, start)
        yield kind, start
        start += size
