"""The smallest models in ORT format, written by hand."""

import struct


def flat(*fields: int | bytes) -> tuple[bytes, bytes]:
    """Return a flatbuffer's list of offsets and table of fields of four bytes; 0 leaves a field out."""
    offsets, table = [], b""
    for field in fields:
        offsets.append(4 + len(table) if field else 0)
        table += struct.pack("<I", field) if isinstance(field, int) and field else field or b""
    return struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), 4 + len(table), *offsets), table


def ort_model(kind: int, size: int, padding: int = 0) -> bytes:
    """Return the smallest model with one initializer `w` of `size` bytes, written by hand, its data shifted."""
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
