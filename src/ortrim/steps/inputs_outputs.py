"""Inputs, outputs and dimensions of a model: fixed, named, added, dropped, extracted, and fed to another model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import compose

from ortrim.buildspec.step_specs import Batch, Extract, FixDimensions, Merge, NameDimensions, Outputs, Rename
from ortrim.errors import ModelError
from ortrim.models.graph import Wiring, is_onnx, rename_values, value_names
from ortrim.models.onnx_files import graphs_below, graphs_in
from ortrim.steps.remove import remove_dead_functions, remove_dead_initializers, remove_dead_nodes
from ortrim.steps.runtime_tools import by_onnx, inferred
from ortrim.steps.step import Appended, Feeding, Stepped, Workplace, only, step_failed

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
        open_ones = ((at, each) for at, each in places.items() if not each.HasField("dim_value") or each.dim_value < 0)
        names = list(dict.fromkeys(each.dim_param or at for at, each in open_ones))
        what = f"the model has no dynamic dimension '{key}'"
        raise step_failed(what, hint=f"it has: {', '.join(names) or 'none'}")
    return named(model, places[key].dim_param) if places[key].dim_param else (places[key],)


def _is_fixed(key: str, size: int) -> ModelError:
    what = f"the dimension '{key}' has the fixed size {size}"
    return step_failed(what, hint="leave it out; the step 'batch' makes first dimensions dynamic")


def set_batch(model: onnx.ModelProto, options: Batch, place: Workplace) -> Stepped:
    """Set the batch of the values that the options name, of all without names, and infer all shapes anew.

    Raises `ModelError` (`step-failed`) for unknown values, and for an output whose size does not follow.
    """
    values = _chosen(model, options)
    before = {dimension.dim_value for _, dimension in values if dimension.HasField("dim_value")}
    for _, dimension in values:
        for each in list(named(model, dimension.dim_param)) if dimension.dim_param else (dimension,):
            if isinstance(options.size, int):
                each.dim_value = options.size
            else:
                each.dim_param = options.size
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


def with_outputs(
    model: onnx.ModelProto, names: Iterable[str], shapes: onnx.ModelProto
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return a copy with these values among its outputs, and those that are none yet; `shapes` knows their types.

    Raises `ModelError` (`step-failed`) for a value that the model does not have.
    """
    made = deepcopy(model)
    outputs = {value.name for value in model.graph.output}
    added = tuple(name for name in dict.fromkeys(names) if name not in outputs)
    known = {value.name: value for value in (*shapes.graph.value_info, *shapes.graph.input)}
    there = {name for node in model.graph.node for name in node.output} | {value.name for value in model.graph.input}
    for name in added:
        if not name or name not in there:
            hint = "invoke inspect and netron show its values; those of inner graphs cannot be taken"
            raise step_failed(f"the model has no value '{name}'", hint=hint)
        made.graph.output.append(known.get(name, onnx.ValueInfoProto(name=name)))
    return made, added


def change_outputs(model: onnx.ModelProto, options: Outputs, place: Workplace) -> Stepped:
    """Add and drop outputs. Raises `ModelError` (`step-failed`) for unknown ones, and when none is left."""
    _require_known("output", options.drop, [value.name for value in model.graph.output])
    observed, added = with_outputs(model, options.add, inferred(model, place)) if options.add else (None, ())
    made = deepcopy(observed or model)
    for value in [each for each in made.graph.output if each.name in options.drop]:
        made.graph.output.remove(value)
    if not made.graph.output:
        raise step_failed("no output is left", hint="leave one of them")
    removed = remove_dead_nodes(made.graph) if options.drop else 0
    if removed:
        remove_dead_initializers(made)
        remove_dead_functions(made)
    notes = (f"removed {removed:,} nodes that only dropped outputs needed",) if removed else ()
    return Stepped(model=made, notes=notes, observed=observed if added else None)


def extract(model: onnx.ModelProto, options: Extract, place: Workplace) -> Stepped:
    """Extract by onnx's own tool; what the values are in the whole model is what the part is fed and compared with.

    Raises `ModelError` (`step-failed`), for values that are not there among others.
    """
    shapes = inferred(model, place)
    own_inputs = {value.name for value in model.graph.input}
    observed, _ = with_outputs(model, (*options.outputs, *(set(options.inputs) - own_inputs)), shapes)
    names = {"inputs": list(options.inputs), "outputs": list(options.outputs)}
    made = by_onnx(shapes, "extract", place, **names)
    remove_dead_initializers(made)
    remove_dead_functions(made)
    return Stepped(model=made, observed=observed, feeding=only(options.inputs))


def rename(model: onnx.ModelProto, options: Rename) -> Stepped:
    """Rename what the options name, wherever it is read. Raises `ModelError` (`step-failed`) for unknown or taken."""
    _require_known("input", options.inputs, [value.name for value in model.graph.input])
    _require_known("output", options.outputs, [value.name for value in model.graph.output])
    values = {**options.inputs, **options.outputs}
    _require_free(values, model)
    for graph in graphs_below(model.graph):  # the names in functions are their own
        rename_values(graph, values)
    nodes = _rename_nodes(model, options)
    feeding = Feeding(forward=lambda feeds: {options.inputs.get(each, each): feeds[each] for each in feeds})
    notes = (f"renamed {nodes:,} nodes",) if nodes else ()
    outputs = {new: old for old, new in options.outputs.items()}
    return Stepped(model=model, notes=notes, outputs=outputs, feeding=feeding if options.inputs else None)


def _require_known(kind: str, names: Iterable[str], known: list[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        what = f"the model has no {kind} '{unknown[0]}'"
        raise step_failed(what, hint=f"its {kind}s are: {', '.join(known) or 'none'}")


def _require_free(values: Mapping[str, str], model: onnx.ModelProto) -> None:
    """Refuse new names that something else has, or that two are to have."""
    taken = value_names(model) - set(values)
    twice = [name for name, count in Counter(values.values()).items() if count > 1]
    clashes = [name for name in values.values() if name in taken]
    if twice or clashes:
        what = f"the name '{(*twice, *clashes)[0]}' is taken by another value of the model"
        raise step_failed(what, hint="choose another name")


def _rename_nodes(model: onnx.ModelProto, options: Rename) -> int:
    nodes = [node for graph in graphs_below(model.graph) for node in graph.node]
    _require_known("node", options.nodes, [node.name for node in nodes])
    numbers: Counter[str] = Counter()
    count = 0
    for node in nodes:
        numbers[node.op_type] += 1
        numbered = f"{node.op_type}_{numbers[node.op_type]}" if options.number_nodes else node.name
        name = options.nodes.get(node.name, numbered)
        count += name != node.name
        node.name = name
    return count


def merge(model: onnx.ModelProto, options: Merge, place: Workplace) -> Stepped:
    """Append by onnx.compose; outputs that feed the other model are none any more.

    Raises `ModelError` (`step-failed`): for inputs of the other model that nothing feeds, names that both have, and
    opsets that differ.
    """
    other = _read_other(place.base / options.path, place.where)
    sources = {given: source for source, given in options.connect.items()}
    unfed = [value.name for value in fed_inputs(other) if value.name not in sources]
    if unfed:
        raise step_failed(f"nothing feeds the input '{unfed[0]}' of '{options.path}'", hint="name it in 'connect'")
    appended = deepcopy(other)
    model.ir_version = other.ir_version = max(model.ir_version, other.ir_version)
    pairs = [(source, given) for given, source in sources.items()]
    try:
        made = compose.merge_models(model, other, pairs, prefix2=options.prefix or None)
    except ValueError as error:
        hint = "give it a 'prefix' for names that both have; give this model the other's opset by a step before"
        raise step_failed(f"'{options.path}' cannot be appended", place.where, why=str(error), hint=hint) from error
    return Stepped(model=made, appended=Appended(model=appended, connect=sources, prefix=options.prefix))


def _read_other(path: Path, where: str) -> onnx.ModelProto:
    try:
        return onnx.load_model(path, format="protobuf")
    except (OSError, DecodeError, ValueError, onnx.checker.ValidationError) as error:
        what = f"'{path}' cannot be read as an ONNX model"
        raise ModelError("step-failed", what, where=where, why=str(error)) from error
