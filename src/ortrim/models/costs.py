"""Cost: what one inference of an ONNX model takes, by its shapes alone. Nothing is run and no weight is read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from ortrim.core.model_cost import ModelCost, by_operator
from ortrim.models.graph_costs import GraphCost, Scope, graph_cost
from ortrim.models.inlining import inlined
from ortrim.models.onnx_reading import facts_of, read_onnx
from ortrim.models.static_shapes import Shapes, Sizes, dynamic_dimensions, open_kinds, with_shapes
from ortrim.storage.files import sha256_of

Inputs = tuple[tuple[str, tuple[int | None, ...] | None], ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """For which inputs to count: sizes by the names of dimensions, shapes by those of inputs; `case` is for people."""

    dimensions: Sizes = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)
    case: str = ""


def cost_of(path: Path, asked: Asked, *, name: str, where: str) -> ModelCost:
    """Return the cost of a model.

    Raises `ModelError` as `read_onnx` and `facts_of` do, and `functions-too-deep`, `shapes-not-inferred`.
    """
    model = inlined(read_onnx(path, where), where)
    facts = facts_of(model, sha256_of(path), path.stat().st_size, where)
    given = tuple(info.name for info in facts.inputs)
    weights = {tensor.name for tensor in model.graph.initializer}
    kinds = open_kinds(model, where) if dynamic_dimensions(model) else None
    inferred, values = with_shapes(model, where, dimensions=asked.dimensions, shapes=asked.shapes)
    scope = Scope(model=inferred, counted=set(), no_parameters=values, kinds=kinds)
    cost = graph_cost(inferred.graph, scope, given=given, weights=weights)
    inputs, dynamic = _inputs(inferred.graph, given), dynamic_dimensions(inferred)
    return _model_cost(cost, name=name, sha256=facts.sha256, asked=asked, inputs=inputs, dynamic=dynamic)


def open_dimensions(path: Path, where: str) -> tuple[str, ...]:
    """Return the names of the dimensions that a model's inputs leave open. Raises `ModelError` as `read_onnx` does."""
    return dynamic_dimensions(read_onnx(path, where))


def _model_cost(
    cost: GraphCost, *, name: str, sha256: str, asked: Asked, inputs: Inputs, dynamic: tuple[str, ...]
) -> ModelCost:
    unknown = (*cost.unknown, *_open_words(inputs, dynamic))
    return ModelCost(
        model=name,
        sha256=sha256,
        case=asked.case,
        inputs=inputs,
        macs=sum(node.macs for node in cost.nodes),
        operations=sum(node.operations for node in cost.nodes),
        parameters=sum(node.parameters for node in cost.nodes),
        parameter_bytes=sum(node.parameter_bytes for node in cost.nodes),
        peak=cost.peak,
        memory=cost.memory,
        constant_nodes=cost.constant_nodes,
        at_least=bool(unknown) or any(node.unknown for node in cost.nodes),
        unknown=unknown,
        operators=by_operator(cost.nodes),
        nodes=cost.nodes,
    )


def _inputs(graph: onnx.GraphProto, given: tuple[str, ...]) -> Inputs:
    """Return the inputs with their shapes, None for what is open."""
    shapes = {value.name: _open_shape(value.type.tensor_type) for value in graph.input}
    return tuple((name, shapes.get(name)) for name in given)


def _open_shape(tensor: onnx.TypeProto.Tensor) -> tuple[int | None, ...] | None:
    if not tensor.HasField("shape"):
        return None
    return tuple(each.dim_value if each.HasField("dim_value") else None for each in tensor.shape.dim)


def _open_words(inputs: Inputs, dynamic: tuple[str, ...]) -> Iterator[str]:
    if dynamic:
        yield f"the inputs leave dimensions open: give {' '.join(f'--dim {name}=...' for name in dynamic)}"
    yield from (f"input '{name}' may have any number of dimensions" for name, shape in inputs if shape is None)
