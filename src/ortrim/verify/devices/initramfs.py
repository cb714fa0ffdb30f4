"""Archives in cpio's `newc` form, which Linux unpacks at start and busybox writes. Pure: entries to bytes and back.

The form is described in the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`: a header of the
magic `070701` and thirteen numbers of eight hexadecimal digits, the name with a zero byte, the content; name and
content are padded to four bytes, and an entry `TRAILER!!!` ends the archive. Equal entries give equal bytes.
"""

import gzip
import stat
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"070701"
HEADER_BYTES: Final = 110
FIELDS: Final = 13
TRAILER: Final = "TRAILER!!!"
LARGEST_CONTENT: Final = 2**32 - 1
LONGEST_NAME: Final = 4095
COMPRESSION: Final = 6


class BadArchive(ValueError):
    """The bytes are not an archive in this form, or not all of one."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file, folder or link: `mode` holds type and permissions; a link's content is where it leads.

    `name` is relative, with slashes.
    """

    name: str
    mode: int
    content: bytes = b""

    @property
    def is_regular(self) -> bool:
        """Whether it is a file."""
        return stat.S_ISREG(self.mode)


def folder(name: str) -> Entry:
    """Return a folder."""
    return Entry(name=name, mode=stat.S_IFDIR | 0o755)


def regular(name: str, content: bytes, *, executable: bool = False) -> Entry:
    """Return a file."""
    return Entry(name=name, mode=stat.S_IFREG | (0o755 if executable else 0o644), content=content)


def link(name: str, target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(name=name, mode=stat.S_IFLNK | 0o777, content=target.encode())


def with_folders(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries with every folder that they lie in, sorted, so that folders come before what is in them."""
    given = {entry.name: entry for entry in entries}
    parts = (entry.name.split("/") for entry in given.values())
    needed = {"/".join(words[:length]) for words in parts for length in range(1, len(words))}
    missing = {name: folder(name) for name in needed if name not in given}
    return tuple(entry for _, entry in sorted({**missing, **given}.items()))


def write_archive(entries: Sequence[Entry]) -> bytes:
    """Return the archive; inode numbers are the entries' own, times, owners and devices are 0.

    Raises `ValueError` for a name or a content that the form cannot hold.
    """
    parts = [_written(entry, number) for number, entry in enumerate(entries, start=1)]
    return b"".join([*parts, _written(Entry(name=TRAILER, mode=0), 0, trailer=True)])


def compress(archive: bytes) -> bytes:
    """Return the archive as gzip, without a time or a name."""
    return gzip.compress(archive, COMPRESSION, mtime=0)


def read_archive(data: bytes) -> tuple[Entry, ...]:
    """Return the entries of an archive; what follows its end is padding and is not looked at.

    Raises `BadArchive` for anything else.
    """
    entries: list[Entry] = []
    at = 0
    while True:
        entry, at = _read(data, at)
        if entry.name == TRAILER:
            return tuple(entries)
        entries.append(entry)


def _written(entry: Entry, number: int, *, trailer: bool = False) -> bytes:
    name = entry.name.encode(errors="surrogateescape")
    wrong = not name or b"\0" in name or name.startswith(b"/") or len(name) > LONGEST_NAME
    if (wrong or entry.name == TRAILER) and not trailer:
        raise ValueError(f"an archive cannot hold the name {entry.name[:100]!r}")
    if len(entry.content) > LARGEST_CONTENT:
        raise ValueError(f"an archive cannot hold {len(entry.content)} bytes in one file")
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (number, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, 0, 0, len(name) + 1, 0)
    header = MAGIC + b"".join(b"%08X" % value for value in numbers)
    return _padded(header + name + b"\0") + _padded(entry.content)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)


def _read(data: bytes, at: int) -> tuple[Entry, int]:
    """Return the entry that begins at a position, and the position after it."""
    header = data[at : at + HEADER_BYTES]
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        raise BadArchive(f"there is no header at byte {at}")
    try:
        fields = bytes.fromhex(header[len(MAGIC) :].decode("ascii"))
        numbers = struct.unpack(f">{FIELDS}I", fields)
    except (ValueError, struct.error) as error:
        raise BadArchive(f"the header at byte {at} is damaged") from error
    mode, size, name_size = numbers[1], numbers[6], numbers[11]
    name_end = at + HEADER_BYTES + name_size
    start = name_end + -name_end % 4
    end = start + size
    name = data[at + HEADER_BYTES : name_end]
    if not 2 <= name_size <= LONGEST_NAME + 1 or end > len(data) or name[-1:] != b"\0" or b"\0" in name[:-1]:
        raise BadArchive(f"the entry at byte {at} is cut short or damaged")
    entry = Entry(name=name[:-1].decode(errors="surrogateescape"), mode=mode, content=data[start:end])
    return entry, end + -end % 4
