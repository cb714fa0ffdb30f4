"""The texts that travel in an ONNX model without being needed to run it."""

from collections.abc import Iterator

import onnx

from ortrim.core.graph_facts import TextFacts
from ortrim.models.onnx_reading import graphs_of


def texts_of(model: onnx.ModelProto) -> tuple[TextFacts, ...]:
    """Return what people and exporters wrote into a model, in order; empty texts are left out."""
    return tuple(_texts(model))


def _texts(model: onnx.ModelProto) -> Iterator[TextFacts]:
    texts = [("doc_string of the model", model.doc_string), ("doc_string of the graph", model.graph.doc_string)]
    texts += [(f"metadata '{entry.key}'", entry.value) for entry in model.metadata_props]
    texts += [text for node in model.graph.node for text in _node_texts(node)]
    for function in model.functions:
        texts.append((f"doc_string of function '{function.name}'", function.doc_string))
        texts += [text for node in function.node for text in _node_texts(node)]
    texts += [(f"doc_string of weight '{tensor.name}'", tensor.doc_string) for tensor in model.graph.initializer]
    yield from (TextFacts(place=place, text=text) for place, text in texts if text)


def _node_texts(node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    yield f"name of {node.op_type}", node.name
    yield f"doc_string of node '{node.name or node.op_type}'", node.doc_string
    for entry in node.metadata_props:
        yield f"metadata '{entry.key}' of node '{node.name or node.op_type}'", entry.value
    for graph in graphs_of(node):
        for inner in graph.node:
            yield from _node_texts(inner)
