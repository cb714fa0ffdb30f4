"""Share constants: one of those that are equal stays."""

import hashlib
from collections.abc import Mapping

import onnx

from ortrim.core.step_specs import ShareConstants
from ortrim.steps.graph_wiring import replace_nodes
from ortrim.steps.graphs import bodies_of
from ortrim.steps.stepped import Stepped

Contents = Mapping[bytes, str]
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
        for body in bodies_of(node):
            _share(body, initializers, own, saved)
    for value in graph.output:
        value.name = renamed.get(value.name, value.name)


def _is_double(
    tensor: onnx.TensorProto, name: str, seen: dict[bytes, str], renamed: dict[str, str], saved: list[int]
) -> bool:
    """Note a constant; whether an equal one was seen before, which then stands for it."""
    content = _content(tensor)
    first = seen.setdefault(content, name)
    if first == name:
        return False
    renamed[name] = first
    saved.append(tensor.ByteSize())
    return True


def _is_double_node(
    node: onnx.NodeProto, fixed: set[str], seen: dict[bytes, str], renamed: dict[str, str], saved: list[int]
) -> bool:
    tensors = [each.t for each in node.attribute if each.name == "value" and each.HasField("t")]
    if node.op_type != "Constant" or node.domain not in {"", "ai.onnx"} or not tensors or len(node.output) != 1:
        return False
    return node.output[0] not in fixed and _is_double(tensors[0], node.output[0], seen, renamed, saved)


def _content(tensor: onnx.TensorProto) -> bytes:
    """Return a digest of what a tensor holds, without its name and what describes it."""
    plain = onnx.TensorProto()
    plain.CopyFrom(tensor)
    for field in ("name", "doc_string", "metadata_props"):
        plain.ClearField(field)
    return hashlib.sha256(plain.SerializeToString(deterministic=True)).digest()
