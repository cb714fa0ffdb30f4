"""Reading ORT format: a flatbuffer with the schema `onnxruntime/core/flatbuffers/schema/ort.fbs`.

Only the few fields that ortrim shows or rewrites are read, with every offset checked: the bindings in the
onnxruntime wheel trust the file, and importing them loads the whole runtime.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ortrim.errors import ModelError

IDENTIFIER: Final = b"ORTM"
MAXIMUM_DEPTH: Final = 64
GRAPH_ATTRIBUTE: Final = 5
GRAPHS_ATTRIBUTE: Final = 10


STEPS_A_BYTE: Final = 1
TEXT_BYTES_A_STEP: Final = 64


class Damaged(Exception):
    """An offset or length leads out of the file, or to the same place again and again."""


@dataclass(kw_only=True)
class _Account:
    """How many places and pieces of text may still be read of a file.

    Many offsets may lead to one place, and places to each other, so that a small file could be read for years. One
    that a converter wrote takes a step for each 18 of its bytes, or fewer.
    """

    left: int

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Damaged


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a flatbuffer: the whole file's bytes and the table's position. Slots count fields from 0."""

    data: bytes
    position: int
    account: _Account = field(repr=False, compare=False)

    def integer(self, slot: int, kind: str, default: int = 0) -> int:
        """Return a scalar field; `kind` is its `struct` letter."""
        place = self.place_of(slot)
        return read(self.data, place, kind) if place else default

    def text(self, slot: int) -> str:
        """Return a string field; empty when absent."""
        place = self.place_of(slot)
        return self._text(self._target(place)) if place else ""

    def table(self, slot: int) -> "Table | None":
        """Return a table field."""
        place = self.place_of(slot)
        return self._at(self._target(place)) if place else None

    def tables(self, slot: int) -> "Iterator[Table]":
        """Yield the tables of a vector field."""
        for element in self._elements(slot):
            yield self._at(self._target(element))

    def texts(self, slot: int) -> Iterator[str]:
        """Yield the strings of a vector field."""
        for element in self._elements(slot):
            yield self._text(self._target(element))

    def bytes_at(self, slot: int) -> tuple[int, int] | None:
        """Return where the bytes of a vector of bytes begin in the file, and how many they are; None when absent."""
        place = self.place_of(slot)
        if not place:
            return None
        start = self._target(place)
        length = read(self.data, start, "I")
        if start + 4 + length > len(self.data):
            raise Damaged
        return start + 4, length

    @property
    def vtable(self) -> int:
        """Position of the table's list of field offsets."""
        return self.position - read(self.data, self.position, "i")

    def numbers_at(self, slot: int, width: int) -> range:
        """Return where in the file the numbers of a vector lie, each of `width` bytes; nowhere when it is absent."""
        place = self.place_of(slot)
        if not place:
            return range(0)
        start = self._target(place)
        end = start + 4 + width * read(self.data, start, "I")
        if end > len(self.data):
            raise Damaged
        return range(start + 4, end, width)

    def place_of(self, slot: int) -> int:
        """Return the position of a field; 0 when it is absent."""
        entry = 4 + 2 * slot
        if entry + 2 > read(self.data, self.vtable, "H"):
            return 0
        offset = read(self.data, self.vtable + entry, "H")
        return self.position + offset if offset else 0

    def _target(self, place: int) -> int:
        return place + read(self.data, place, "I")

    def _at(self, position: int) -> "Table":
        self.account.take(1)
        return Table(data=self.data, position=position, account=self.account)

    def _text(self, position: int) -> str:
        length = read(self.data, position, "I")
        if position + 4 + length > len(self.data):
            raise Damaged
        self.account.take(1 + length // TEXT_BYTES_A_STEP)
        return self.data[position + 4 : position + 4 + length].decode(errors="replace")

    def _elements(self, slot: int) -> Iterator[int]:
        place = self.place_of(slot)
        if place:
            start = self._target(place)
            length = read(self.data, start, "I")
            if start + 4 + 4 * length > len(self.data):
                raise Damaged
            yield from range(start + 4, start + 4 + 4 * length, 4)


def read(data: bytes, position: int, kind: str) -> int:
    """Return the little-endian number at a position. Raises `Damaged`."""
    if not 0 <= position <= len(data) - struct.calcsize("<" + kind):
        raise Damaged
    number: int = struct.unpack_from("<" + kind, data, position)[0]
    return number


def root_of(data: bytes, where: str) -> Table:
    """Return the root table, `InferenceSession`. Raises `ModelError` (`not-ort`)."""
    if data[4:8] != IDENTIFIER:
        hint = "a model in ORT format carries the bytes 'ORTM' at offset 4; convert with: invoke convert"
        raise ModelError("not-ort", "the file is not in ORT format", where=where, hint=hint)
    return Table(data=data, position=read(data, 0, "I"), account=_Account(left=STEPS_A_BYTE * len(data)))


def nodes_of(graph: Table) -> Iterator[Table]:
    """Yield every node of a graph and of the graphs inside its nodes. Raises `Damaged` when nested absurdly."""
    for each in graphs_of(graph):
        yield from each.tables(2)


def graphs_of(graph: Table, depth: int = 0) -> Iterator[Table]:
    """Yield a graph and the graphs inside its nodes, each before its own. Raises `Damaged` when nested absurdly."""
    if depth > MAXIMUM_DEPTH:
        raise Damaged
    yield graph
    for node in graph.tables(2):
        for inner in _inner_graphs(node):
            yield from graphs_of(inner, depth + 1)


def _inner_graphs(node: Table) -> Iterator[Table]:
    for attribute in node.tables(10):
        kind = attribute.integer(2, "i")
        single = attribute.table(7) if kind == GRAPH_ATTRIBUTE else None
        if single:
            yield single
        if kind == GRAPHS_ATTRIBUTE:
            yield from attribute.tables(12)
