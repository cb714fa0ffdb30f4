"""What a program prints on several streams at once, up to a limit."""

import os
import selectors
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Final, Self

CHUNK_BYTES: Final = 1 << 16


class TooMuchOutput(Exception):
    """A program printed more than it may."""


class Captured:
    """Reads streams to their ends, whichever has something first, `most_bytes` of all together; None: any number."""

    def __init__(self, streams: Sequence[IO[str]], most_bytes: int | None) -> None:
        self._parts = {stream.fileno(): bytearray() for stream in streams}
        self._most_bytes = most_bytes
        self._selector = selectors.DefaultSelector()
        for number in self._parts:
            self._selector.register(number, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()

    def read(self, seconds: float | None) -> bool:
        """Read what comes first, within `seconds`; return whether all streams have ended. Raises `TooMuchOutput`."""
        if not self._selector.get_map():
            return True
        for key, _ in self._selector.select(seconds):
            chunk = os.read(key.fd, CHUNK_BYTES)
            self._parts[key.fd] += chunk
            if not chunk:
                self._selector.unregister(key.fd)
        if self._most_bytes is not None and self.size_bytes > self._most_bytes:
            raise TooMuchOutput
        return not self._selector.get_map()

    @property
    def size_bytes(self) -> int:
        """How much was read so far, of all streams together."""
        return sum(map(len, self._parts.values()))

    def texts(self) -> tuple[str, ...]:
        """Return what was read of each stream, with replacement characters for what is not UTF-8."""
        return tuple(_text(part) for part in self._parts.values())


def _text(part: bytearray) -> str:
    # As text streams read: a line may end in any of three ways.
    return part.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
