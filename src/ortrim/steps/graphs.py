"""Walking through all of a model: its graph, the graphs inside nodes, and its functions."""

from collections.abc import Iterable, Iterator

import onnx


def graphs_in(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the model's graph and every graph inside a node, outer ones first."""
    yield from graphs_below(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _of_node(node)


def nodes_in(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node, those of functions too."""
    for graph in graphs_in(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds itself, such as the branches of If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs_below(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and every one inside its nodes, outer ones first."""
    yield graph
    for node in graph.node:
        yield from _of_node(node)


def _of_node(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for body in bodies_of(node):
        yield from graphs_below(body)


def read_names(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield the values that nodes read, those that their inner graphs take from outside among them."""
    for node in nodes:
        yield from filter(None, node.input)
        for body in bodies_of(node):
            yield from captured(body)


def captured(graph: onnx.GraphProto) -> frozenset[str]:
    """Return the values that a graph reads from outside."""
    made = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
    made |= {tensor.name for tensor in graph.initializer}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    outputs = (value.name for value in graph.output)
    return frozenset({*read_names(graph.node), *outputs}) - made
