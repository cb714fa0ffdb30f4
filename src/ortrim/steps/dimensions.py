"""Dimensions of inputs and outputs: fixed or named."""

from collections.abc import Iterable, Iterator

import onnx

from ortrim.core.step_specs import FixDimensions, NameDimensions
from ortrim.errors import ModelError
from ortrim.steps.graphs import graphs_in
from ortrim.steps.isolation import step_failed
from ortrim.steps.onnx_tools import inferred
from ortrim.steps.stepped import Stepped, Workplace

Dimension = onnx.TensorShapeProto.Dimension


def fix_dimensions(model: onnx.ModelProto, options: FixDimensions, place: Workplace) -> Stepped:
    """Give dimensions a size, and infer all shapes anew. Raises `ModelError` (`step-failed`) for unknown ones."""
    places = places_of(fed_inputs(model))
    for key, size in options.sizes.items():
        for dimension in list(_named_or_at(model, key, places)):
            if dimension.HasField("dim_value") and dimension.dim_value not in {size, -1}:
                raise _is_fixed(key, dimension.dim_value)
            dimension.dim_value = size
    return Stepped(model=inferred_anew(model, place))


def name_dimensions(model: onnx.ModelProto, options: NameDimensions) -> Stepped:
    """Give dynamic dimensions names. Raises `ModelError` (`step-failed`) for unknown ones and for fixed sizes."""
    places = places_of((*fed_inputs(model), *model.graph.output))
    found = [(key, name, list(_named_or_at(model, key, places))) for key, name in options.names.items()]
    for key, name, dimensions in found:
        for dimension in dimensions:
            if dimension.HasField("dim_value") and dimension.dim_value >= 0:
                raise _is_fixed(key, dimension.dim_value)
            dimension.dim_param = name
    return Stepped(model=model)


def fed_inputs(model: onnx.ModelProto) -> tuple[onnx.ValueInfoProto, ...]:
    """Return the inputs that no initializer provides."""
    provided = {tensor.name for tensor in model.graph.initializer}
    return tuple(value for value in model.graph.input if value.name not in provided)


def places_of(values: Iterable[onnx.ValueInfoProto]) -> dict[str, Dimension]:
    """Return the dimensions of values by `NAME:AXIS`."""
    return {
        f"{value.name}:{axis}": dimension
        for value in values
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim)
    }


def named(model: onnx.ModelProto, name: str) -> Iterator[Dimension]:
    """Yield all dimensions of a name, wherever in the model."""
    for graph in graphs_in(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield from (each for each in value.type.tensor_type.shape.dim if each.dim_param == name)


def inferred_anew(model: onnx.ModelProto, place: Workplace) -> onnx.ModelProto:
    """Return a model whose shapes inside are inferred from those of its inputs alone."""
    for graph in graphs_in(model):
        graph.ClearField("value_info")
    return inferred(model, place)


def _named_or_at(model: onnx.ModelProto, key: str, places: dict[str, Dimension]) -> Iterable[Dimension]:
    """Return the dimensions of a name; or the one at a place, with those of the same name."""
    if any(each.dim_param == key for each in places.values()):
        return named(model, key)
    if key not in places:
        names = list(dict.fromkeys(each.dim_param or at for at, each in places.items() if not _is_size(each)))
        what = f"the model has no dynamic dimension '{key}'"
        raise step_failed(what, hint=f"it has: {', '.join(names) or 'none'}")
    return named(model, places[key].dim_param) if places[key].dim_param else (places[key],)


def _is_size(dimension: Dimension) -> bool:
    return dimension.HasField("dim_value") and dimension.dim_value >= 0


def _is_fixed(key: str, size: int) -> ModelError:
    what = f"the dimension '{key}' has the fixed size {size}"
    return step_failed(what, hint="leave it out; the step 'batch' makes first dimensions dynamic")
