"""Static libraries: the members of an `ar` archive. Source: ar(5), in the variant of GNU and LLVM."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ortrim.binaries.elf import read_bytes
from ortrim.errors import BinaryError

MAGIC: Final = b"!<arch>\n"
HEADER_BYTES: Final = 60
INDICES: Final = ("/", "//", "/SYM64/")
"""The names of members that are not files but tables of symbols and of long names."""


def archive_members(path: Path) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a static library, each with its name as far as the header holds it.

    Raises `BinaryError` (`library-missing`, `not-an-archive`).
    """
    data = read_bytes(path)
    if not data.startswith(MAGIC):
        raise _bad(path, f"it begins with {data[:8]!r}")
    return tuple((name, content) for name, content in _members(data, path) if name not in INDICES)


def _members(data: bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    position = len(MAGIC)
    while position < len(data):
        header = data[position : position + HEADER_BYTES]
        size = header[48:58].decode("latin-1").strip()
        position += HEADER_BYTES
        if header[58:] != b"`\n" or not size.isdecimal() or position + int(size) > len(data):
            raise _bad(path, f"there is no member at byte {position - HEADER_BYTES}")
        name = header[:16].decode("latin-1").strip()
        yield name if name in INDICES else name.removesuffix("/"), data[position : position + int(size)]
        position += int(size) + int(size) % 2


def _bad(path: Path, why: str) -> BinaryError:
    hint = "it may be truncated: build it again"
    return BinaryError("not-an-archive", "this is not a static library", where=str(path), why=why, hint=hint)
