"""Rename inputs, outputs and nodes."""

from collections import Counter
from collections.abc import Mapping

import onnx

from ortrim.core.step_specs import Rename
from ortrim.errors import ModelError
from ortrim.steps.graphs import graphs_below
from ortrim.steps.isolation import step_failed
from ortrim.steps.stepped import Feeding, Feeds, Stepped


def rename(model: onnx.ModelProto, options: Rename) -> Stepped:
    """Rename what the options name, wherever it is read. Raises `ModelError` (`step-failed`) for unknown or taken."""
    _require_known("input", options.inputs, [value.name for value in model.graph.input])
    _require_known("output", options.outputs, [value.name for value in model.graph.output])
    values = {**options.inputs, **options.outputs}
    _require_free(values, model)
    for graph in graphs_below(model.graph):  # the names in functions are their own
        _rename_values(graph, values)
    nodes = _rename_nodes(model, options)
    back = {new: old for old, new in options.inputs.items()}
    feeding = Feeding(forward=lambda feeds: _renamed(feeds, options.inputs)) if back else None
    notes = (f"renamed {nodes:,} nodes",) if nodes else ()
    outputs = {new: old for old, new in options.outputs.items()}
    return Stepped(model=model, notes=notes, outputs=outputs, feeding=feeding)


def _renamed(feeds: Feeds, names: Mapping[str, str]) -> Feeds:
    return {names.get(name, name): array for name, array in feeds.items()}


def _require_known(kind: str, names: Mapping[str, str], known: list[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        what = f"the model has no {kind} '{unknown[0]}'"
        raise step_failed(what, hint=f"its {kind}s are: {', '.join(known) or 'none'}")


def _require_free(values: Mapping[str, str], model: onnx.ModelProto) -> None:
    """Refuse new names that something else has, or that two are to have."""
    taken = _value_names(model) - set(values)
    twice = [name for name, count in Counter(values.values()).items() if count > 1]
    clashes = [name for name in values.values() if name in taken]
    if twice or clashes:
        raise _clash((*twice, *clashes)[0])


def _clash(name: str) -> ModelError:
    return step_failed(f"the name '{name}' is taken by another value of the model", hint="choose another name")


def _value_names(model: onnx.ModelProto) -> set[str]:
    names: set[str] = set()
    for graph in graphs_below(model.graph):
        names.update(value.name for value in (*graph.input, *graph.output))
        names.update(tensor.name for tensor in graph.initializer)
        for node in graph.node:
            names.update((*node.input, *node.output))
    return names


def _rename_values(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    for node in graph.node:
        for listed in (node.input, node.output):
            for index, name in enumerate(listed):
                listed[index] = names.get(name, name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)


def _rename_nodes(model: onnx.ModelProto, options: Rename) -> int:
    """Rename nodes, and count those that have another name then."""
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
