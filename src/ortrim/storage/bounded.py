"""Reading compressed streams without trusting how far they go."""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Final, cast

DAMAGE: Final = (
    tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error,
    ValueError, OverflowError, RuntimeError,
)  # fmt: skip
"""What Python's readers raise on bytes that are no archive. bz2 and gzip add an OSError without a number;
zipfile says RuntimeError of an encrypted member and NotImplementedError of an unknown method."""

ZIP_ENTRY: Final = b"PK\x01\x02"
"""What every entry of a zip archive's directory begins with."""
LARGEST_READ: Final = 4 << 20
OPENERS: Final[dict[bytes, Callable[[IO[bytes]], Any]]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


class TooLarge(Exception):
    """More came out of an archive than was agreed to."""


class BoundedStream:
    """A readable, seekable stream that refuses to go beyond `limit` bytes or to hand over much at once.

    tarfile reads an extended header in one piece of whatever size it claims, and passes over a member by
    seeking, which decompresses; both are bounded here.
    """

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = limit

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes; a negative or huge size is damage, since no honest header asks for it."""
        if not 0 <= size <= LARGEST_READ:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        self._check(self._stream.tell() + size - LARGEST_READ)
        return self._stream.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to an absolute position."""
        assert whence == 0
        self._check(position)
        return self._stream.seek(position)

    def tell(self) -> int:
        """Return the position in the decompressed stream."""
        return self._stream.tell()

    def drain(self) -> None:
        """Read to the end, so that a checksum that stands there is compared."""
        while self.read(LARGEST_READ):
            pass

    def _check(self, position: int) -> None:
        if position > self._limit:
            raise TooLarge


class _Directory:
    """A zip archive from which zipfile reads no directory of more than `most` entries, whatever its end claims.

    It makes an object of each entry before anyone can count them: 20 seconds for 200,000 on a slow machine.
    """

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._most = most
        self.listed = False

    def read(self, size: int = -1) -> bytes:
        """Read as the file does; the directory is read in one piece."""
        data = self._file.read(size)
        if not self.listed and data.count(ZIP_ENTRY) > self._most:
            raise TooLarge(f"more than {self._most:,} entries")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def bounded_zip(source: Path | IO[bytes], most_entries: int) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; raises `TooLarge` for one of more entries, and what zipfile does."""
    with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
        directory = _Directory(file, most_entries)
        with zipfile.ZipFile(cast(IO[bytes], directory)) as opened:
            directory.listed = True
            yield opened


@contextmanager
def bounded_stream(archive: Path, limit: int) -> Iterator[BoundedStream]:
    """Open a file, decompressing it when it is gzip, bzip2 or xz."""
    with archive.open("rb") as file:
        opener = OPENERS.get(file.read(2))
        file.seek(0)
        if opener is None:
            yield BoundedStream(file, limit)
            return
        with opener(file) as stream:
            yield BoundedStream(stream, limit)
