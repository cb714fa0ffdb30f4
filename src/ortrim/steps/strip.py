"""Strip: what no runtime reads leaves the model."""

from collections.abc import Iterable, Iterator
from typing import Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ortrim.core.step_specs import Strip
from ortrim.steps.graphs import graphs_in, nodes_in
from ortrim.steps.stepped import Stepped

PRODUCER: Final = ("producer_name", "producer_version", "domain")


def strip(model: onnx.ModelProto, options: Strip) -> Stepped:
    """Clear what the options name, in the graphs inside nodes and in functions, too."""
    notes = []
    if options.metadata:
        kept = [entry for entry in model.metadata_props if entry.key in options.keep]
        notes.append(_removed(_clear(_messages(model), "metadata_props") - len(kept), "metadata entries"))
        model.metadata_props.extend(kept)
    if options.documentation:
        notes.append(_removed(_clear(_messages(model), "doc_string"), "doc strings"))
    if options.shapes:
        notes.append(_removed(_clear(graphs_in(model), "value_info"), "shapes of values inside"))
    if options.node_names:
        notes.append(_removed(_clear(nodes_in(model), "name"), "names of nodes"))
    if options.producer:
        notes.append(_removed(sum(_clear([model], field) for field in PRODUCER), "texts about the producer"))
    return Stepped(model=model, notes=tuple(filter(None, notes)))


def _removed(count: int, what: str) -> str:
    return f"removed {count:,} {what}" if count else ""


def _clear(messages: Iterable[Message], name: str) -> int:
    """Clear a field of all messages that have it; return how many texts or entries there were."""
    count = 0
    for message in messages:
        if name in message.DESCRIPTOR.fields_by_name:
            found = getattr(message, name)
            count += bool(found) if isinstance(found, str | bytes) else len(found)
            message.ClearField(name)
    return count


def _messages(message: Message) -> Iterator[Message]:
    """Yield a message and all inside it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in (value,) if isinstance(value, Message) else value:
                yield from _messages(each)
