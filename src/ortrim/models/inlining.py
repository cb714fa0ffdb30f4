"""A model's own functions put in the place of their calls, as far as that does not make the model absurdly large."""

from collections.abc import Iterable
from typing import Final

import onnx
from onnx import inliner

from ortrim.errors import ModelError
from ortrim.models.onnx_reading import graphs_of

MOST_NODES: Final = 1_000_000
Name = tuple[str, str]


def inlined(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """Return the model without functions.

    Raises `ModelError` `functions-too-deep` when functions call themselves, or come to more than a million nodes.
    """
    if not model.functions:
        return model
    functions = {(function.domain, function.name): function for function in model.functions}
    sizes: dict[Name, int] = {}
    if _size(model.graph.node, functions, sizes, ()) > MOST_NODES:
        raise _too_deep(where)
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:
        what, hint = "the model's functions cannot be put in place", "export the model again without functions"
        raise ModelError("functions-too-deep", what, where=where, why=str(error), hint=hint) from error


def _size(
    nodes: Iterable[onnx.NodeProto],
    functions: dict[Name, onnx.FunctionProto],
    sizes: dict[Name, int],
    calls: tuple[Name, ...],
) -> int:
    """Count nodes with each call as large as what is called; what calls itself is too large."""
    total = 0
    for node in nodes:
        name = (node.domain, node.op_type)
        inner = sum(_size(graph.node, functions, sizes, calls) for graph in graphs_of(node))
        if name in functions and name not in sizes:
            recursive = name in calls or len(calls) > len(functions)
            sizes[name] = MOST_NODES + 1 if recursive else _size(functions[name].node, functions, sizes, (*calls, name))
        total += inner + sizes.get(name, 1)
    return total


def _too_deep(where: str) -> ModelError:
    what = f"the model's functions call themselves, or come to more than {MOST_NODES:,} nodes"
    return ModelError("functions-too-deep", what, where=where, hint="export the model again without functions")
