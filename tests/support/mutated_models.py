"""Models with something in them changed: a field to an odd value, a part left out or doubled."""

from collections.abc import Iterator
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

INTEGERS = (0, 1, -1, 2, 7, 16, 255, 2**31 - 1, -(2**31), 2**62, -(2**63))
TEXTS = (
    "", "x", "y", "input.1", "/home/a/b.py", "If", "Loop", "Reshape", "Einsum", "MatMul", "com.acme",
    "\u202e\x00", "n" * 300,
)  # fmt: skip
BYTES = (b"", b"\0", b"\xff\xfe", b"ij,jk->ik", bytes(64))


def mutated(content: bytes, random: Random, times: int) -> bytes:
    """Return a model with some changes, each at a place and of a kind drawn from `random`."""
    model = onnx.ModelProto.FromString(content)
    for _ in range(times):
        message = random.choice(tuple(_messages(model)))
        _change(message, random.choice(message.DESCRIPTOR.fields), random)
    made: bytes = model.SerializeToString()
    return made


def _messages(message: Message) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in (value,) if isinstance(value, Message) else value:
                yield from _messages(each)


def _change(message: Any, field: Any, random: Random) -> None:
    name, many = field.name, not isinstance(getattr(message, field.name), (str, bytes, int, float, Message))
    if random.random() < 0.2:
        message.ClearField(name)
    elif many:
        _change_many(getattr(message, name), field, random)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, name).SetInParent()
    else:
        setattr(message, name, _scalar(field, random))


def _change_many(values: Any, field: Any, random: Random) -> None:
    """Add one to repeated values, or double one of them."""
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        added = values.add()
        added.CopyFrom(random.choice(values))
    else:
        values.append(_scalar(field, random))


def _scalar(field: Any, random: Random) -> object:
    if field.type == FieldDescriptor.TYPE_STRING:
        return random.choice(TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.choice(BYTES)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return random.choice([value.number for value in field.enum_type.values])
    if field.type in {FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE}:
        return random.choice((0.0, -1.5, 1e30))
    small = field.type in {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT64}
    return random.choice([number for number in INTEGERS if not small or 0 <= number < 2**31])
