"""Remove what no output of a model needs and no runtime reads, and all but one of constants that are equal."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ortrim.buildspec.step_specs import RemoveDead, ShareConstants, Strip
from ortrim.models.graph import replace_nodes
from ortrim.models.graph_facts import tensor_digest
from ortrim.models.onnx_files import graphs_below, graphs_in, graphs_of, nodes_of, read_names
from ortrim.steps.step import Stepped, only, step_failed


def remove_dead_nodes(graph: onnx.GraphProto) -> int:
    """Remove the nodes whose results no output of the graph needs, inner graphs' too; return how many.

    Nodes may stand in any order, as ONNX Runtime takes them.
    """
    needed = _needed(graph)
    dead = len(graph.node) - len(needed)
    if dead:
        replace_nodes(graph, [graph.node[index] for index in sorted(needed)])
    return dead + sum(remove_dead_nodes(body) for node in graph.node for body in graphs_of(node))


def _needed(graph: onnx.GraphProto) -> set[int]:
    """Return the numbers of nodes that outputs need; one without results has effects that nothing is known of."""
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    needed = {index for index, node in enumerate(graph.node) if not node.output}
    to_follow = [*needed, *_made(makers, (value.name for value in graph.output))]
    while to_follow:
        index = to_follow.pop()
        needed.add(index)
        to_follow += [each for each in _made(makers, read_names([graph.node[index]])) if each not in needed]
    return needed


def _made(makers: dict[str, int], names: Iterable[str]) -> list[int]:
    return [makers[name] for name in names if name in makers]


def remove_dead_initializers(model: onnx.ModelProto) -> int:
    """Remove initializers that nothing reads, those listed as inputs too; return how many."""
    count = 0
    for graph in graphs_in(model):
        read = {*read_names(graph.node), *(value.name for value in graph.output)}
        dead = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in read}
        sparse = {each.values.name: each for each in graph.sparse_initializer if each.values.name not in read}
        for listed in [value for value in graph.input if value.name in {*dead, *sparse}]:
            graph.input.remove(listed)
        for tensor in dead.values():
            graph.initializer.remove(tensor)
        for other in sparse.values():
            graph.sparse_initializer.remove(other)
        count += len(dead) + len(sparse)
    return count


def remove_dead_functions(model: onnx.ModelProto) -> int:
    """Remove functions that no node calls, nor a function that is called; return how many."""
    bodies = {(each.domain, each.name): each for each in model.functions}
    called: set[tuple[str, str]] = set()
    to_follow = [node for graph in graphs_below(model.graph) for node in graph.node]
    while to_follow:
        node = to_follow.pop()
        key = (node.domain, node.op_type)
        if key in bodies and key not in called:
            called.add(key)
            alone = onnx.ModelProto()
            alone.functions.append(bodies[key])
            to_follow += list(nodes_of(alone))
    dead = [each for key, each in bodies.items() if key not in called]
    for function in dead:
        model.functions.remove(function)
    return len(dead)


def remove_dead(model: onnx.ModelProto, options: RemoveDead) -> Stepped:
    """Remove dead nodes, then the initializers and functions that only they used.

    Raises `ModelError` (`step-failed`) when all inputs would go.
    """
    removed = (
        (remove_dead_nodes(model.graph), "nodes"),
        (remove_dead_initializers(model), "initializers"),
        (remove_dead_functions(model), "functions"),
    )
    notes = [f"removed {count:,} {what}" for count, what in removed if count]
    read = {*read_names(model.graph.node), *(value.name for value in model.graph.output)}
    unread = [value for value in model.graph.input if value.name not in read] if options.inputs else []
    if not unread:
        return Stepped(model=model, notes=tuple(notes))
    for value in unread:
        model.graph.input.remove(value)
    kept = frozenset(value.name for value in model.graph.input)
    if not kept:
        raise step_failed("no output needs any input: the model is a constant")
    notes.append("removed inputs: " + ", ".join(value.name for value in unread))
    return Stepped(model=model, notes=tuple(notes), feeding=only(kept))


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
        notes.append(_removed(_clear(nodes_of(model), "name"), "names of nodes"))
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
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in (value,) if isinstance(value, Message) else value:
                yield from _messages(each)


Contents = Mapping[str, str]
"""Names of constants that a graph sees, by the digest of what they hold."""


def share_constants(model: onnx.ModelProto, options: ShareConstants) -> Stepped:  # noqa: ARG001 - it has none
    """Let nodes that read equal initializers, or Constant nodes, read the first of them.

    Inner graphs share with those around them. An initializer that is an input, whose value a run may replace, and one
    that is an output stay as they are.
    """
    saved: list[int] = []
    _share(model.graph, {}, {}, saved)
    notes = (f"{len(saved):,} constants were equal to others, {sum(saved):,} bytes",) if saved else ()
    return Stepped(model=model, notes=notes)


def _share(graph: onnx.GraphProto, outer: Contents, renamed: Mapping[str, str], saved: list[int]) -> None:
    """Share the constants of one graph, then of its inner ones; `renamed` are those gone from the graphs around."""
    seen, own = dict(outer), dict(renamed)
    fixed = {value.name for value in (*graph.input, *graph.output)}
    gone: list[int] = []
    for index, tensor in enumerate(graph.initializer):
        if tensor.name not in fixed and _is_double(tensor, tensor.name, seen, own, saved):
            gone.append(index)
    for index in reversed(gone):
        del graph.initializer[index]
    # Inner graphs see initializers alone: a Constant may stand behind the node that they are in.
    initializers = dict(seen)
    kept = [node for node in graph.node if not _is_double_node(node, fixed, seen, own, saved)]
    if len(kept) < len(graph.node):
        replace_nodes(graph, kept)
    for node in graph.node:
        for position, name in enumerate(node.input):
            node.input[position] = own.get(name, name)
        for body in graphs_of(node):
            _share(body, initializers, own, saved)
    for value in graph.output:
        value.name = renamed.get(value.name, value.name)


def _is_double(
    tensor: onnx.TensorProto, name: str, seen: dict[str, str], renamed: dict[str, str], saved: list[int]
) -> bool:
    """Note a constant; whether an equal one was seen before, which then stands for it."""
    content = tensor_digest(tensor)
    first = seen.setdefault(content, name)
    if first == name:
        return False
    renamed[name] = first
    saved.append(tensor.ByteSize())
    return True


def _is_double_node(
    node: onnx.NodeProto, fixed: set[str], seen: dict[str, str], renamed: dict[str, str], saved: list[int]
) -> bool:
    tensors = [each.t for each in node.attribute if each.name == "value" and each.HasField("t")]
    if node.op_type != "Constant" or node.domain not in {"", "ai.onnx"} or not tensors or len(node.output) != 1:
        return False
    return node.output[0] not in fixed and _is_double(tensors[0], node.output[0], seen, renamed, saved)
