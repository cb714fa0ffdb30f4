"""A graph's values: who makes them, how often they are read, what they are when they are constant; and new names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from ortrim.errors import ModelError
from ortrim.models import onnx_files

Array = NDArray[Any]
Shapes = Mapping[str, tuple[int | str | None, ...]]
"""By the names of values; None is a size that nothing tells."""
DEFAULT_DOMAIN: Final = ("", "ai.onnx")
SKIP_HINT: Final = "leave the step out, or give it optional = true"
INITIALIZERS_ALONE: Final = 4
"""The IR version since which an initializer need not be an input, and one that is can be given another value."""


class Names:
    """All names of values and nodes in a model, those of its inner graphs among them, which see the outer ones."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._taken: set[str] = set()
        for graph in onnx_files.graphs_in(model):
            values = (*graph.input, *graph.output, *graph.value_info)
            self._taken.update(each.name for each in (*values, *graph.initializer, *graph.node))
            for node in graph.node:
                self._taken.update((*node.input, *node.output))

    def contain(self, text: str) -> bool:
        """Whether a text is a part of any."""
        return any(text in name for name in self._taken)

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has, beginning with `stem`."""
        name, number = stem, 1
        while not name or name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name


def value_names(model: onnx.ModelProto) -> set[str]:
    """Return the names of a model's values, an empty one among them where an input is left out; without functions'."""
    names: set[str] = set()
    for graph in onnx_files.graphs_below(model.graph):
        names.update(value.name for value in (*graph.input, *graph.output))
        names.update(tensor.name for tensor in graph.initializer)
        for node in graph.node:
            names.update((*node.input, *node.output))
    return names


def rename_values(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Give values of one graph other names, wherever it has them."""
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
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = names.get(entry.value, entry.value)


class Wiring:
    """What reads and makes the values of one graph, as it is when this is made; `outer` is that of the graph around."""

    def __init__(self, graph: onnx.GraphProto, outer: "Wiring | None" = None) -> None:
        self.makers: dict[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output if name}
        self.outputs = frozenset(value.name for value in graph.output)
        self._uses = Counter([*onnx_files.read_names(graph.node), *(value.name for value in graph.output)])
        overridable = {value.name for value in graph.input}
        self._tensors: dict[str, TensorProto] = dict(outer._tensors) if outer else {}  # noqa: SLF001 - its own kind
        self._tensors |= {each.name: each for each in graph.initializer if each.name not in overridable}
        self._tensors |= {name: value for name, node in self.makers.items() if (value := _constant(node)) is not None}

    def only_reader(self, name: str) -> bool:
        """Whether a value is read once, and not given out by the graph."""
        return self._uses[name] == 1 and name not in self.outputs

    def constant(self, name: str) -> Array | None:
        """Return the value of a constant that can be read; None for all else."""
        tensor = self._tensors.get(name)
        return None if tensor is None else onnx_files.array_of(tensor)

    def constant_rank(self, name: str) -> int | None:
        """Return how many dimensions a constant has."""
        tensor = self._tensors.get(name)
        return None if tensor is None else len(tensor.dims)


def free_initializers(model: onnx.ModelProto) -> None:
    """Take initializers out of the inputs of a model of an IR version before 4, where they had to be listed."""
    if model.ir_version < INITIALIZERS_ALONE:
        given = {tensor.name for tensor in model.graph.initializer}
        for value in [each for each in model.graph.input if each.name in given]:
            model.graph.input.remove(value)
        model.ir_version = INITIALIZERS_ALONE


def wired_graphs(model: onnx.ModelProto) -> Iterator[tuple[onnx.GraphProto, Wiring]]:
    """Yield a model's graph and all inner ones with their wiring, each made when it is asked for."""
    free_initializers(model)
    yield from _wired(model.graph, None)


def _wired(graph: onnx.GraphProto, outer: Wiring | None) -> Iterator[tuple[onnx.GraphProto, Wiring]]:
    # The inner graphs come first: changing a graph gives it copies of its nodes, whose inner graphs are others.
    wiring = Wiring(graph, outer)
    for node in graph.node:
        for inner in onnx_files.graphs_of(node):
            yield from _wired(inner, wiring)
    yield graph, Wiring(graph, outer)


def is_onnx(node: onnx.NodeProto, *operators: str) -> bool:
    """Whether a node is one of these operators of ONNX's own."""
    return node.op_type in operators and node.domain in DEFAULT_DOMAIN


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes as Python values, texts as `str`.

    Raises `ModelError` (`step-failed`) for one that has no value that can be read.
    """
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        try:
            value = onnx.helper.get_attribute_value(attribute)
        except (ValueError, TypeError) as error:
            what = f"the attribute '{attribute.name}' of a node {node.op_type} cannot be read"
            raise ModelError("step-failed", what, where="", why=str(error), hint=SKIP_HINT) from error
        found[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return found


def set_attribute(node: onnx.NodeProto, name: str, value: object) -> None:
    """Give a node an attribute, in the place of one of the same name."""
    kept = [each for each in node.attribute if each.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])


def new_node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], *, name: str, **attributes: Any
) -> onnx.NodeProto:
    """Return a node; its attributes have no types that mypy knows."""
    return onnx.helper.make_node(operator, inputs, outputs, name=name, **attributes)


def replace_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Give a graph these nodes, some of which may be its own."""
    copies = [deepcopy(node) for node in nodes]
    graph.ClearField("node")
    graph.node.extend(copies)
    present = {name for node in copies for name in node.output}
    known = [onnx.ValueInfoProto.FromString(each.SerializeToString()) for each in graph.value_info]
    graph.ClearField("value_info")
    graph.value_info.extend(value for value in known if value.name in present)


def add_constant(graph: onnx.GraphProto, name: str, values: Array) -> str:
    """Give a graph one more initializer and return its name."""
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
    return name


def drop_unread(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """Take those of these constants out of a model that nothing reads any more, in whatever graph they are."""
    candidates = frozenset(names)
    if candidates:
        # Inner graphs first: giving a graph other nodes copies those that are inside them.
        for graph in reversed([*onnx_files.graphs_in(model)]):
            _drop_from(
                graph, candidates - {*onnx_files.read_names(graph.node), *(value.name for value in graph.output)}
            )


def _drop_from(graph: onnx.GraphProto, unread: frozenset[str]) -> None:
    unlisted = unread - {value.name for value in graph.input}
    for tensor in [each for each in graph.initializer if each.name in unlisted]:
        graph.initializer.remove(tensor)
    kept = [node for node in graph.node if not (is_onnx(node, "Constant") and unread.issuperset(node.output))]
    if len(kept) < len(graph.node):
        replace_nodes(graph, kept)


def opset_of(model: onnx.ModelProto) -> int:
    """Return the model's opset of ONNX's own operators; 1 when it names none, as ONNX says."""
    return next((each.version for each in model.opset_import if each.domain in DEFAULT_DOMAIN), 1)


def shapes_of(model: onnx.ModelProto) -> Shapes:
    """Return the shapes of values, as far as the model or ONNX's inference know them."""
    return {
        value.name: shape
        for graph in onnx_files.graphs_in(onnx_files.with_types(model))
        for value in (*graph.value_info, *graph.input, *graph.output)
        if (shape := onnx_files.shape_of(value.type)) is not None
    }


def _constant(node: onnx.NodeProto) -> TensorProto | None:
    if not is_onnx(node, "Constant"):
        return None
    return next((each.t for each in node.attribute if each.name == "value" and each.HasField("t")), None)


LISTS_ARE_INPUTS: Final = 13
"""The opset since which Split and Unsqueeze take their numbers as an input."""


class NodeWriter:
    """Nodes in the order in which they are added; `stem` begins their names."""

    def __init__(self, graph: onnx.GraphProto, names: Names, opset: int, stem: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._graph, self._names, self._opset, self._stem = graph, names, opset, stem
        self._lists: dict[tuple[int, ...], str] = {}

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node with one output, which gets a new name unless it is given one; return that name."""
        name = self._names.fresh(f"{self._stem}_{operator}")
        self.nodes.append(new_node(operator, inputs, [output or name], name=name, **attributes))
        return output or name

    def constant(self, stem: str, values: Array) -> str:
        """Add a constant and return its name."""
        return add_constant(self._graph, self._names.fresh(f"{self._stem}_{stem}"), values)

    def split(self, source: str, sizes: Sequence[int], *, axis: int) -> list[str]:
        """Add a Split and return its outputs."""
        results = [self._names.fresh(f"{self._stem}_part") for _ in sizes]
        self._listed("Split", source, results, tuple(sizes), axis=axis)
        return results

    def unsqueeze(self, source: str, axis: int) -> str:
        """Add an Unsqueeze and return its output."""
        result = self._names.fresh(f"{self._stem}_unsqueezed")
        self._listed("Unsqueeze", source, [result], (axis,))
        return result

    def _listed(
        self, operator: str, source: str, results: list[str], numbers: tuple[int, ...], **attributes: Any
    ) -> None:
        name = self._names.fresh(f"{self._stem}_{operator}")
        if self._opset < LISTS_ARE_INPUTS:
            given: dict[str, Any] = {"split" if operator == "Split" else "axes": numbers}
            made = new_node(operator, [source], results, name=name, **given, **attributes)
        else:
            if numbers not in self._lists:
                self._lists[numbers] = self.constant("numbers", np.array(numbers, np.int64))
            made = new_node(operator, [source, self._lists[numbers]], results, name=name, **attributes)
        self.nodes.append(made)
