"""Static archives, as `ar` writes them: their members. Source: ar(5), and Apple's long names."""

from collections.abc import Iterator
from typing import Final

from ortrim.errors import BinaryError

AR_MAGIC: Final = b"!<arch>\n"
HEADER_BYTES: Final = 60
INDICES: Final = ("/", "//", "/SYM64/")
"""The names of members that are not files but tables of symbols and of long names."""
APPLE_INDICES: Final = "__.SYMDEF"  # what begins the names of Apple's tables of symbols
APPLE_NAME: Final = "#1/"  # Apple puts a name before the content, and its length here


def members_of(data: bytes, where: str) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a static library in memory, each with its name; errors call it `where`."""
    if not data.startswith(AR_MAGIC):
        raise _not_an_ar(where, f"it begins with {data[:8]!r}")
    found = _members(data, where)
    return tuple(
        (name, content) for name, content in found if name not in INDICES and not name.startswith(APPLE_INDICES)
    )


def _members(data: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    position = len(AR_MAGIC)
    while position < len(data):
        header = data[position : position + HEADER_BYTES]
        size = header[48:58].decode("latin-1").strip()
        position += HEADER_BYTES
        if header[58:] != b"`\n" or not size.isdecimal() or position + int(size) > len(data):
            raise _not_an_ar(where, f"there is no member at byte {position - HEADER_BYTES}")
        name = header[:16].decode("latin-1").strip()
        short = name if name in INDICES else name.removesuffix("/")
        content = data[position : position + int(size)]
        yield _long_name(name, content, where) if name.startswith(APPLE_NAME) else (short, content)
        position += int(size) + int(size) % 2


def _long_name(name: str, content: bytes, where: str) -> tuple[str, bytes]:
    length = name.removeprefix(APPLE_NAME)
    if not length.isdecimal() or int(length) > len(content):
        raise _not_an_ar(where, f"a name of {length[:20]} bytes is longer than its member")
    return content[: int(length)].rstrip(b"\0").decode("utf-8", errors="backslashreplace"), content[int(length) :]


def _not_an_ar(where: str, why: str) -> BinaryError:
    hint = "it may be truncated: build it again"
    return BinaryError("not-an-archive", "this is not a static library", where=where, why=why, hint=hint)
