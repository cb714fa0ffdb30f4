"""What no output of a model needs."""

from collections.abc import Iterable

import onnx

from ortrim.steps.graph_wiring import replace_nodes
from ortrim.steps.graphs import bodies_of, graphs_below, graphs_in, nodes_in, read_names


def remove_dead_nodes(graph: onnx.GraphProto) -> int:
    """Remove the nodes whose results no output of the graph needs, inner graphs' too; return how many.

    Nodes may stand in any order, as ONNX Runtime takes them.
    """
    needed = _needed(graph)
    dead = len(graph.node) - len(needed)
    if dead:
        replace_nodes(graph, [graph.node[index] for index in sorted(needed)])
    return dead + sum(remove_dead_nodes(body) for node in graph.node for body in bodies_of(node))


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
    return sum(_remove_unread(graph) for graph in graphs_in(model))


def _remove_unread(graph: onnx.GraphProto) -> int:
    read = {*read_names(graph.node), *(value.name for value in graph.output)}
    dead = [tensor for tensor in graph.initializer if tensor.name not in read]
    dead_sparse = [tensor for tensor in graph.sparse_initializer if tensor.values.name not in read]
    names = {tensor.name for tensor in dead} | {tensor.values.name for tensor in dead_sparse}
    listed = [value for value in graph.input if value.name in names]
    for tensor in dead:
        graph.initializer.remove(tensor)
    for sparse in dead_sparse:
        graph.sparse_initializer.remove(sparse)
    for value in listed:
        graph.input.remove(value)
    return len(dead) + len(dead_sparse)


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
            to_follow += list(nodes_in(alone))
    dead = [each for key, each in bodies.items() if key not in called]
    for function in dead:
        model.functions.remove(function)
    return len(dead)
