"""The files beside a model that hold its larger tensors."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

import onnx
from onnx.external_data_helper import uses_external_data

from ortrim.errors import ModelError
from ortrim.models.copies import FACTS_FILE, MODEL_FILE
from ortrim.models.onnx_reading import graphs_of

TAKEN_NAMES: Final = (MODEL_FILE, FACTS_FILE)
"""Names that our own copy uses itself."""


def external_files(model: onnx.ModelProto, where: str) -> tuple[str, ...]:
    """Return the files that a model refers to, relative to its folder, sorted.

    Raises `ModelError` (`unsafe-external-data`) for a reference that leaves the model's folder.
    """
    names = {_location(tensor) for tensor in _tensors(model) if uses_external_data(tensor)}
    for name in sorted(names):
        _check_location(name, where)
    return tuple(sorted(names))


def _location(tensor: onnx.TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _check_location(name: str, where: str) -> None:
    """Refuse what is not a plain relative path; where links lead, `refuse_links` looks on the disk."""
    path = PurePosixPath(name)
    escapes = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name
    if escapes or not path.parts or name in TAKEN_NAMES:
        what = f"the model refers to weights in '{name}'"
        hint = "only files inside the model's folder are read; export the model again with its data beside it"
        raise ModelError("unsafe-external-data", what, where=where, hint=hint)


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _node_tensors(node)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _node_tensors(node)


def _node_tensors(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
    for graph in graphs_of(node):
        yield from _graph_tensors(graph)
