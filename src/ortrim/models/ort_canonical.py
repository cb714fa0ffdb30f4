"""Writing ORT format so that the same model gives the same bytes.

ONNX Runtime lays out the kernel type strings in the order of a hash map whose seed differs in every process, so
that two conversions of one model differ in that part and only in that part. Here it is laid out anew in the
order in which the file lists it; the model itself, with its weights, stays as it is.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ortrim.models.ort_reading import IDENTIFIER, Damaged, Table, root_of

ALIGNMENT: Final = 64
"""What lies behind the rewritten part keeps its position modulo this, so that weights stay aligned."""

# Lists of field offsets (vtables) by kind of table: own size, table size, offset of each field.
ROOT: Final[tuple[int, ...]] = (12, 16, 4, 8, 0, 12)
RESOLVER: Final[tuple[int, ...]] = (6, 8, 4)
NAMED_LIST: Final[tuple[int, ...]] = (8, 12, 4, 8)
ARGUMENT: Final[tuple[int, ...]] = (8, 12, 8, 4)


def canonical(data: bytes) -> bytes:
    """Return the same model with the kernel type strings laid out in order.

    Only for what the converter has just written. Raises `Damaged` when it is not laid out as expected.
    """
    root = root_of(data, "converted model")
    model, resolver = root.table(1), root.table(3)
    if model is None or resolver is None:
        raise Damaged
    # The model is written before the kernel type strings, and flatbuffers grow downwards: it lies from here on.
    cut = min(model.position, model.vtable)
    head = _Head()
    model_field = head.root(root.text(0), resolver)
    head.data += bytes((cut - len(head.data)) % ALIGNMENT)
    head.point(model_field, len(head.data) + model.position - cut)
    return bytes(head.data) + data[cut:]


class _Head:
    """What comes before the model, written front to back, so that offsets point forward as they must."""

    def __init__(self) -> None:
        self.data = bytearray(4) + IDENTIFIER
        self.waiting: list[tuple[int, str]] = []
        self.vtables = {fields: self._numbers("H", fields) for fields in (ROOT, RESOLVER, NAMED_LIST, ARGUMENT)}

    def root(self, version: str, resolver: Table) -> int:
        """Write the root table and all but the model; return the position of the field for the model."""
        root = self.table(ROOT)
        self.point(0, root)
        self.waiting.append((root + 4, version))
        table = self.table(RESOLVER)
        self.point(root + 12, table)
        self.named_lists(table + 4, resolver.tables(0), depth=2)
        self.texts()
        return root + 8

    def named_lists(self, field: int, tables: Iterable[Table], depth: int) -> None:
        """Write a list of operators with their type strings, or a list of type strings with their arguments."""
        for slot, source in self.slots(field, tuple(tables)):
            table = self.table(NAMED_LIST)
            self.point(slot, table)
            self.waiting.append((table + 4, source.text(0)))
            if depth > 1:
                self.named_lists(table + 8, source.tables(1), depth - 1)
            else:
                self.arguments(table + 8, source.tables(1))

    def arguments(self, field: int, tables: Iterable[Table]) -> None:
        """Write a list of arguments: whether an input (0) or an output (1), and the index."""
        for slot, source in self.slots(field, tuple(tables)):
            table = self.table(ARGUMENT)
            self.point(slot, table)
            struct.pack_into("<Ib", self.data, table + 4, source.integer(1, "I"), source.integer(0, "b"))

    def slots(self, field: int, tables: tuple[Table, ...]) -> Iterator[tuple[int, Table]]:
        """Write a vector with room for as many tables; yield the place of each with its source."""
        start = self._numbers("I", (len(tables), *(0 for _ in tables)))
        self.point(field, start)
        yield from ((start + 4 + 4 * n, table) for n, table in enumerate(tables))

    def table(self, fields: tuple[int, ...]) -> int:
        """Write an empty table."""
        position = self._numbers("i", (0,) * (fields[1] // 4))
        struct.pack_into("<i", self.data, position, position - self.vtables[fields])
        return position

    def texts(self) -> None:
        """Write every string once, behind all that point to it."""
        places: dict[str, int] = {}
        for field, text in self.waiting:
            if text not in places:
                content = text.encode()
                places[text] = self._numbers("I", (len(content),))
                self.data += content + b"\0"
            self.point(field, places[text])

    def point(self, field: int, target: int) -> None:
        """Let a field point to what lies behind it."""
        struct.pack_into("<I", self.data, field, target - field)

    def _numbers(self, kind: str, numbers: tuple[int, ...]) -> int:
        """Append numbers at the next multiple of four and return their position."""
        self.data += bytes(-len(self.data) % 4)
        position = len(self.data)
        self.data += struct.pack(f"<{len(numbers)}{kind}", *numbers)
        return position
