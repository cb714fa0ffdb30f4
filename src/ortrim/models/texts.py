"""Texts in a model that are none: protobuf's old syntax lets any bytes stand for a name."""

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ortrim.errors import ModelError


def require_texts(message: Message, where: str) -> None:
    """Raise `ModelError` `not-onnx` for a name that is not UTF-8; tensors' contents are not looked into."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            _require(value, field.name, where)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in (value,) if isinstance(value, Message) else value:
                require_texts(each, where)


def _require(value: object, field: str, where: str) -> None:
    """Refuse bytes, in which protobuf hands over what is not UTF-8, in a text or a list of texts."""
    texts = (value,) if isinstance(value, str | bytes) else value
    if any(isinstance(text, bytes) for text in texts):  # type: ignore[attr-defined]  # a list of protobuf's own kind
        what, hint = f"a text in the model, '{field}', is not UTF-8", "export or download the model again"
        raise ModelError("not-onnx", what, where=where, hint=hint)
