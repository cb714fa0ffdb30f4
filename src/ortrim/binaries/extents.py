"""Dividing a stretch of bytes among those who claim parts of it, so that each byte has exactly one owner. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Claim(Generic[T]):
    """The bytes from `start` to before `end`, and whose they are said to be."""

    start: int
    end: int
    owner: T


@dataclass(frozen=True, kw_only=True)
class Piece(Generic[T]):
    """The bytes from `start` to before `end`, and whose they are; None for those that nobody claims."""

    start: int
    end: int
    owner: T | None

    @property
    def size_bytes(self) -> int:
        """How many bytes it is, never none."""
        return self.end - self.start


def divided(start: int, end: int, claims: Iterable[Claim[T]]) -> Iterator[Piece[T]]:
    """Yield the pieces of `start` to before `end`, in order, none empty and without a gap.

    Where claims overlap, the one that begins first has the bytes, and of those that begin together the longer one;
    what a claim has beyond either end is nobody's.
    """
    position = start
    for claim in sorted(claims, key=lambda claim: (claim.start, -claim.end)):
        low, high = max(claim.start, position), min(claim.end, end)
        if low >= high:
            continue
        if low > position:
            yield Piece(start=position, end=low, owner=None)
        yield Piece(start=low, end=high, owner=claim.owner)
        position = high
    if position < end:
        yield Piece(start=position, end=end, owner=None)
