"""If nodes whose condition is known: the branch that is always taken, in the place of the node."""

from collections.abc import Iterator, Mapping
from typing import Any

import onnx


def take_branches(graph: onnx.GraphProto, values: Mapping[str, Any]) -> bool:
    """Put the branches that `values`, arrays by name, decide for into a graph; return whether there were any."""
    decided = [_branch(node, values) for node in graph.node]
    if not any(decided):
        return False
    nodes = [
        each
        for node, branch in zip(graph.node, decided, strict=True)
        for each in (_nodes_of(node, branch) if branch is not None else [node])
    ]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    for branch in filter(None, decided):
        graph.initializer.extend(branch.initializer)
        graph.value_info.extend(branch.value_info)
    graph.ClearField("node")
    graph.node.extend(copies)
    return True


def _branch(node: onnx.NodeProto, values: Mapping[str, Any]) -> onnx.GraphProto | None:
    condition = values.get(node.input[0]) if node.op_type == "If" and node.input else None
    if condition is None or condition.size != 1:
        return None
    wanted = "then_branch" if condition.item() else "else_branch"
    branch = next((each.g for each in node.attribute if each.name == wanted and each.HasField("g")), None)
    return branch if branch is not None and len(branch.output) == len(node.output) else None


def _nodes_of(node: onnx.NodeProto, branch: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    yield from branch.node
    for inner, outer in zip(branch.output, node.output, strict=True):
        yield onnx.helper.make_node("Identity", [inner.name], [outer])
