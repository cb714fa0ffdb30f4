"""Models in ORT format that no converter writes: the smallest ones, and hostile ones."""

import struct
from collections.abc import Callable, Sequence

import flatbuffers


def flat(*fields: int | bytes) -> tuple[bytes, bytes]:
    offsets, table = [], b""
    for field in fields:
        offsets.append(4 + len(table) if field else 0)
        table += struct.pack("<I", field) if isinstance(field, int) and field else field or b""
    return struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), 4 + len(table), *offsets), table


def ort_model(kind: int, size: int, padding: int = 0) -> bytes:
    data = bytearray(struct.pack("<I", 0) + b"ORTM")

    def table(*slots: int) -> int:
        vtable, content = flat(*slots)
        data.extend(vtable)
        data.extend(bytes(-len(data) % 4))
        start = len(data)
        data.extend(struct.pack("<i", len(vtable) + (-len(vtable) % 4)) + content)
        return start

    def point(field: int, target: int) -> None:
        struct.pack_into("<I", data, field, target - field)

    session = table(0, 1)
    point(0, session)
    model_table = table(0, 0, 0, 0, 0, 0, 0, 1)
    point(session + 4, model_table)
    graph = table(1)
    point(model_table + 4, graph)
    vector = len(data)
    data.extend(struct.pack("<II", 1, 0))
    point(graph + 4, vector)
    tensor = table(1, 0, 0, kind, 1)
    point(vector + 4, tensor)
    point(tensor + 4, len(data))
    data.extend(struct.pack("<I", 1) + b"w\0\0\0")
    data.extend(bytes(padding))
    point(tensor + 12, len(data))
    data.extend(struct.pack("<I", size) + bytes(size))
    return bytes(data)


def ort_file(graph: Callable[[flatbuffers.Builder], int]) -> bytes:
    """Return a model in ORT format whose main graph `graph` writes and returns the place of."""
    builder = flatbuffers.Builder(1024)
    version, main = builder.CreateString("6"), graph(builder)
    model = ort_table(builder, {7: main})
    builder.Finish(ort_table(builder, {0: version, 1: model}), file_identifier=b"ORTM")
    return bytes(builder.Output())


def ort_table(builder: flatbuffers.Builder, places: dict[int, int], numbers: dict[int, int] | None = None) -> int:
    builder.StartObject(16)
    for slot, number in (numbers or {}).items():
        builder.PrependInt32Slot(slot, number, 0)
    for slot, place in places.items():
        builder.PrependUOffsetTRelativeSlot(slot, place, 0)
    return int(builder.EndObject())


def ort_vector(builder: flatbuffers.Builder, places: Sequence[int]) -> int:
    builder.StartVector(4, len(places), 4)
    for place in reversed(places):
        builder.PrependUOffsetTRelative(place)
    return int(builder.EndVector())


def nested_twice(depth: int) -> Callable[[flatbuffers.Builder], int]:
    """Return what writes graphs of one node with two branches, which are the same graph: 2 ** depth of them to read."""

    def graph(builder: flatbuffers.Builder) -> int:
        inner = ort_table(builder, {})
        for _ in range(depth):
            branch = ort_table(builder, {7: inner}, {2: 5})
            node = ort_table(builder, {10: ort_vector(builder, [branch, branch])})
            inner = ort_table(builder, {2: ort_vector(builder, [node])})
        return inner

    return graph


def shared(count: int, text: str = "x") -> Callable[[flatbuffers.Builder], int]:

    def graph(builder: flatbuffers.Builder) -> int:
        names = ort_vector(builder, [builder.CreateString(text)] * count)
        node = ort_table(builder, {5: builder.CreateString("Relu"), 8: names})
        return ort_table(builder, {2: ort_vector(builder, [node] * count)})

    return graph
