"""Reading ORT format: a flatbuffer with the schema `onnxruntime/core/flatbuffers/schema/ort.fbs`.

Only the few fields that ortrim shows or rewrites are read, with every offset checked: the bindings in the
onnxruntime wheel trust the file, and importing them loads the whole runtime.
"""

import struct
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from ortrim.errors import ModelError
from ortrim.models.operators import ELEMENT_TYPES, FEW_BITS, NCHWC, ModelUses, OperatorId, OperatorUse

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

    def integer(self, slot: int, kind: str) -> int:
        """Return a scalar field, 0 when absent; `kind` is its `struct` letter."""
        place = self.place_of(slot)
        return read(self.data, place, kind) if place else 0

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

    def integers(self, slot: int) -> Iterator[int]:
        """Yield the numbers of a vector of 64-bit integers."""
        for element in self._elements(slot, 8):
            self.account.take(1)
            yield read(self.data, element, "q")

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

    def _elements(self, slot: int, size: int = 4) -> Iterator[int]:
        place = self.place_of(slot)
        if place:
            start = self._target(place)
            length = read(self.data, start, "I")
            if start + 4 + size * length > len(self.data):
                raise Damaged
            yield from range(start + 4, start + 4 + size * length, size)


def read(data: bytes, position: int, kind: str) -> int:
    """Return the little-endian number at a position. Raises `Damaged`."""
    if not 0 <= position <= len(data) - struct.calcsize("<" + kind):
        raise Damaged
    number: int = struct.unpack_from("<" + kind, data, position)[0]
    return number


def root_of(data: bytes, where: str) -> Table:
    """Return the root table, `InferenceSession`. Raises `ModelError` (`not-ort`)."""
    if data[4:8] != IDENTIFIER:
        hint = "a model in ORT format has the bytes 'ORTM' at offset 4; convert it with: invoke convert"
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
        if kind == GRAPH_ATTRIBUTE and (single := attribute.table(7)):
            yield single
        if kind == GRAPHS_ATTRIBUTE:
            yield from attribute.tables(12)


TENSOR: Final = 1
SEQUENCE: Final = 2
MAP: Final = 3
"""`TypeInfoValue`."""
BLOCK: Final = 8
"""Channels of a block in NCHWc layout, for the processors that all run it."""
DEEPEST_TYPE: Final = 16
"""Sequences and maps may hold each other; ONNX Runtime knows sequences of maps and no more."""


def read_uses(path: Path) -> ModelUses:
    """Return what a model in ORT format asks of a runtime, the graphs inside its nodes included.

    Source: upstream's schema `ort.fbs`. Raises `ModelError` (`model-missing`, `not-ort`).
    """
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", hint="check the path")
    data = path.read_bytes()
    try:
        return _uses(root_of(data, str(path)))
    except Damaged as error:
        raise _damaged(str(path)) from error


def _damaged(where: str) -> ModelError:
    return ModelError("not-ort", "the file is damaged or cut short", where=where, hint="convert the model again")


def _uses(session: Table) -> ModelUses:
    model = session.table(1)
    main = model.table(7) if model else None
    if main is None:
        raise Damaged
    graphs = tuple(graphs_of(main))
    _require_made(main)
    # A value that a graph takes from the one around it has its type there; no two that are visible have one name.
    everywhere = {name: kind for graph in graphs for name, kind in _types(graph).items()}
    found = [use for graph in graphs for use in _nodes(graph, ChainMap(_types(graph), everywhere))]
    weights = (weight for graph in graphs for weight in graph.tables(0) if _element_type(weight, 3) == "float")
    shapes = {weight.text(0): tuple(weight.integers(2)) for weight in weights}
    return ModelUses(
        format_version=session.text(0),
        uses=tuple(sorted({use: use for use in reversed(found)}.values())),
        saved=tuple(sorted({made for graph in graphs for made in _saved(graph)})),
        element_types=tuple(sorted({kind for graph in graphs for kind in _element_types(graph)})),
        sparse=any(True for graph in graphs for _ in graph.tables(7)),
        tiled=any(_is_tiled(node, shapes) for graph in graphs for node in graph.tables(2)),
        depthwise=any(_is_depthwise(node, shapes) for graph in graphs for node in graph.tables(2)),
        few_bits=tuple(
            sorted({_bits(node) for graph in graphs for node in graph.tables(2) if node.text(5) == FEW_BITS})
        ),
    )


def _bits(node: Table) -> tuple[int, int]:
    """Return a product's bits, 4 where it does not say, and its accuracy level."""
    of = {attribute.text(0): attribute.integer(4, "q") for attribute in node.tables(10)}
    return of.get("bits", 4), of.get("accuracy_level", 0)


def _is_tiled(node: Table, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a node is a convolution in NCHWc layout with three or five neighbouring places along an axis.

    As `HasTiles` in `resources/cmake/winograd.h` has it; filters of less than a block of channels are for others.
    """
    if (node.text(2), node.text(5)) != (NCHWC, "Conv"):
        return False
    shape, axes = _filters(node, shapes)
    return shape[1:2] >= (BLOCK,) and any(axis in {(3, 1, 1), (5, 1, 1)} for axis in axes)


def _is_depthwise(node: Table, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a node is a convolution in plain layout that `resources/cmake/depthwise_convolutions.h` may compute."""
    if node.text(2) == NCHWC or node.text(5) not in {"Conv", "FusedConv"}:
        return False
    groups = {attribute.text(0): attribute.integer(4, "q") for attribute in node.tables(10)}.get("group", 1)
    padded = any(any(attribute.integers(9)) for attribute in node.tables(10) if attribute.text(0) == "pads")
    shape, axes = _filters(node, shapes)
    square = len(axes) == 2 and len(set(axes)) == 1 and axes[0] in {(3, 1, 1), (3, 2, 1), (5, 1, 1), (5, 2, 1)}
    in_place = not padded and all(axis[:2] == (1, 1) for axis in axes)  # where MLAS multiplies the inputs as they lie
    line = shape[2:-1] in {(), (1,)} and axes[-1:] and axes[-1][1] <= 2 and not in_place
    return shape[:2] == (groups, 1) and bool(square or line)


def _filters(
    node: Table, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[int, ...], tuple[tuple[int, int, int], ...]]:
    """Return the shape of a convolution's filters, and of each axis the places, the stride and the dilation."""
    shape = next((shapes.get(name, ()) for name in tuple(node.texts(8))[1:2]), ())
    of = {attribute.text(0): tuple(attribute.integers(9)) for attribute in node.tables(10)}
    strides, dilations = (of.get(key) or (1,) * len(shape[2:]) for key in ("strides", "dilations"))
    return shape, tuple(zip(shape[2:], strides, dilations, strict=False))


def _require_made(graph: Table) -> None:
    """Refuse a graph without the nodes that its outputs come from: with its operators gone, it would fit anything."""
    made = {name for node in graph.tables(2) for name in node.texts(9)}
    given = {*graph.texts(5), *(weight.text(0) for weight in graph.tables(0))}
    sparse = {values.text(0) for weight in graph.tables(7) if (values := weight.table(0))}
    if not made | given | sparse >= set(graph.texts(6)):
        raise Damaged


def _nodes(graph: Table, types: Mapping[str, str]) -> Iterator[OperatorUse]:
    for node in graph.tables(2):
        yield OperatorUse(
            operator=OperatorId(domain=node.text(2) or "ai.onnx", opset=node.integer(3, "i"), name=node.text(5)),
            inputs=tuple(types.get(name, "") for name in node.texts(8)),
            outputs=tuple(types.get(name, "") for name in node.texts(9)),
            node=node.text(0),
        )


def _types(graph: Table) -> dict[str, str]:
    named = {}
    for value in graph.tables(1):
        kind = value.table(2)
        tensor = kind.table(2) if kind and kind.integer(1, "B") == TENSOR else None
        if tensor and value.text(0):
            named[value.text(0)] = ELEMENT_TYPES.get(tensor.integer(0, "i"), "")
    return named


def _element_types(graph: Table) -> Iterator[str]:
    for value in graph.tables(1):
        if value.text(0):
            yield from _parts(value.table(2))
    for weight in graph.tables(0):
        yield _element_type(weight, 3)


def _parts(kind: Table | None, depth: int = 0) -> Iterator[str]:
    """Yield the element types that a type is made of; an empty one for what is not known."""
    if depth > DEEPEST_TYPE:
        raise Damaged
    inner = kind.table(2) if kind else None
    tag = kind.integer(1, "B") if kind else 0
    if inner is None or tag not in {TENSOR, SEQUENCE, MAP}:
        yield ""
    elif tag == SEQUENCE:
        yield from _parts(inner.table(0), depth + 1)
    else:
        yield _element_type(inner, 0)
        if tag == MAP:
            yield from _parts(inner.table(1), depth + 1)


def _element_type(table: Table, slot: int) -> str:
    return ELEMENT_TYPES.get(table.integer(slot, "i"), "")


def _saved(graph: Table) -> Iterator[OperatorId]:
    """Yield the operators that saved optimizations make, each written `domain:operator:opset`."""
    saved = graph.table(8)
    for entry in saved.tables(0) if saved else ():
        for record in entry.tables(1):
            for text in record.texts(3):
                parts = text.split(":")
                if len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 10:
                    raise Damaged
                yield OperatorId(domain=parts[0] or "ai.onnx", opset=int(parts[2]), name=parts[1])


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
        for place, text in self.waiting:
            if text not in places:
                content = text.encode()
                places[text] = self._numbers("I", (len(content),))
                self.data += content + b"\0"
            self.point(place, places[text])

    def point(self, field: int, target: int) -> None:
        """Let a field point to what lies behind it."""
        struct.pack_into("<I", self.data, field, target - field)

    def _numbers(self, kind: str, numbers: tuple[int, ...]) -> int:
        """Append numbers at the next multiple of four and return their position."""
        self.data += bytes(-len(self.data) % 4)
        position = len(self.data)
        self.data += struct.pack(f"<{len(numbers)}{kind}", *numbers)
        return position


ELEMENT_BYTES: Final = {
    1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 4, 15: 8, 16: 2, 17: 1, 18: 1,
    19: 1, 20: 1,
}  # fmt: skip
"""By `TensorDataType`; a complex number has the alignment of its parts, and strings have no bytes of their own here."""
IN_PLACE_BYTES: Final = 128


@dataclass(frozen=True, kw_only=True)
class TensorPlace:
    """One initializer's data: the offset in the file, the bytes of all, and those of one element."""

    name: str
    offset: int
    size_bytes: int
    element_bytes: int

    @property
    def excess(self) -> int:
        """By how many bytes the data lies behind a multiple of its elements' size; 0 when it is aligned."""
        return self.offset % self.element_bytes

    @property
    def is_read_in_place(self) -> bool:
        """Whether ONNX Runtime may use the data where it is."""
        return self.size_bytes >= IN_PLACE_BYTES


def tensor_places(data: bytes, where: str) -> tuple[TensorPlace, ...]:
    """Return the places of all initializers, those of inner graphs too, in the file's order.

    Raises `ModelError` (`not-ort`).
    """
    try:
        model = root_of(data, where).table(1)
        graph = model.table(7) if model else None
        return tuple(chain.from_iterable(map(_initializers, graphs_of(graph)))) if graph else ()
    except Damaged as error:
        raise _damaged(where) from error


def misaligned_tensors(path: Path) -> tuple[str, ...]:
    """Return in words the initializers that ONNX Runtime may read in place and that are not aligned."""
    return misaligned(tensor_places(path.read_bytes(), str(path)))


def misaligned(places: tuple[TensorPlace, ...]) -> tuple[str, ...]:
    """Return in words those of the places that are read there and are not aligned."""
    misaligned = (place for place in places if place.is_read_in_place and place.excess)
    return tuple(f"{each.name} ({each.element_bytes}-byte elements at offset {each.offset})" for each in misaligned)


def _initializers(graph: Table) -> Iterator[TensorPlace]:
    dense = graph.tables(0)
    sparse = (tensor for entry in graph.tables(7) for tensor in (entry.table(0), entry.table(1)) if tensor)
    for tensor in chain(dense, sparse):
        element, found = ELEMENT_BYTES.get(tensor.integer(3, "i"), 0), tensor.bytes_at(4)
        if element and found is not None:
            yield TensorPlace(name=tensor.text(0), offset=found[0], size_bytes=found[1], element_bytes=element)
