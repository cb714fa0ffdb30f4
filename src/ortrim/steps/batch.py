"""The first dimension of inputs and outputs."""

from collections.abc import Iterator

import onnx

from ortrim.core.step_specs import Batch
from ortrim.steps.dimensions import Dimension, fed_inputs, inferred_anew, named
from ortrim.steps.graph_wiring import Wiring, is_onnx
from ortrim.steps.isolation import step_failed
from ortrim.steps.stepped import Stepped, Workplace


def set_batch(model: onnx.ModelProto, options: Batch, place: Workplace) -> Stepped:
    """Set the batch of the values that the options name, of all without names, and infer all shapes anew.

    Raises `ModelError` (`step-failed`) for unknown values, and for an output whose size does not follow.
    """
    values = _chosen(model, options)
    before = {dimension.dim_value for _, dimension in values if dimension.HasField("dim_value")}
    for _, dimension in values:
        for each in list(named(model, dimension.dim_param)) if dimension.dim_param else (dimension,):
            _set(each, options.size)
    names = {name for name, _ in values}
    made = inferred_anew(model, place)
    _require_followed(made, options, names)
    fixed = tuple(_fixing(made.graph, before)) if isinstance(options.size, str) else ()
    notes = (f"shapes that are constants begin with the old size, look at: {', '.join(fixed)}",) if fixed else ()
    return Stepped(model=made, notes=notes)


def _chosen(model: onnx.ModelProto, options: Batch) -> list[tuple[str, Dimension]]:
    values = {value.name: value for value in (*fed_inputs(model), *model.graph.output)}
    unknown = [name for name in options.of if name not in values]
    if unknown:
        hint = f"it has: {', '.join(values)}"
        raise step_failed(f"the model has no input or output '{unknown[0]}'", hint=hint)
    shapes = {name: values[name].type.tensor_type.shape.dim for name in options.of or values}
    return [(name, dimensions[0]) for name, dimensions in shapes.items() if dimensions]


def _set(dimension: Dimension, size: int | str) -> None:
    if isinstance(size, int):
        dimension.dim_value = size
    else:
        dimension.dim_param = size


def _require_followed(model: onnx.ModelProto, options: Batch, names: set[str]) -> None:
    """Refuse a model whose own operators give an output another batch than it was given."""
    for value in model.graph.output:
        if value.name in names and value.type.tensor_type.shape.dim:
            first = value.type.tensor_type.shape.dim[0]
            found = first.dim_value if first.HasField("dim_value") else first.dim_param
            if found != options.size and (isinstance(options.size, int) or isinstance(found, int)):
                what = f"the first dimension of output '{value.name}' stays {found}"
                hint = "a constant shape inside fixes it: export the model with a dynamic batch"
                raise step_failed(what, hint=hint)


def _fixing(graph: onnx.GraphProto, sizes: set[int]) -> Iterator[str]:
    """Yield the nodes that reshape to a constant shape which begins with one of the sizes."""
    wiring = Wiring(graph)
    for node in graph.node:
        shape = wiring.constant(node.input[1]) if is_onnx(node, "Reshape") and len(node.input) > 1 else None
        if shape is not None and shape.size and int(shape.reshape(-1)[0]) in sizes:
            yield node.name or node.output[0]
