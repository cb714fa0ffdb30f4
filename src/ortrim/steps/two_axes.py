"""The values of a graph in a form with one axis more: `(N, C, L)` as `(N, C, 1, L)`."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import onnx

from ortrim.steps.graph_wiring import Names, Shapes, Wiring, add_constant, is_onnx, new_node, replace_nodes
from ortrim.steps.graphs import read_names
from ortrim.steps.stepped import Array

FLAT_RANK: Final = 3
NEW_AXIS: Final = 2
AXES_ARE_INPUTS: Final = 13
"""The opset since which Squeeze and Unsqueeze take their axes as an input."""
AXES: Final = ""
"""Stands for the one constant that replaces none: the axes of Squeeze and Unsqueeze."""


class TwoAxes:
    """A graph that is being rewritten: its new nodes, and the new form of values by their old names."""

    def __init__(self, graph: onnx.GraphProto, wiring: Wiring, names: Names, shapes: Shapes, opset: int) -> None:
        self._graph, self._wiring, self._names, self._shapes, self._opset = graph, wiring, names, shapes, opset
        self._lifted: dict[str, str] = {}
        self._made_lifted: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._nodes: list[onnx.NodeProto] = []

    def rank(self, name: str) -> int | None:
        """Return how many dimensions a value has in the model as it was; None when nothing tells."""
        known, shape = self._wiring.constant_rank(name), self._shapes.get(name)
        return known if known is not None or shape is None else len(shape)

    def has(self, name: str) -> bool:
        """Whether a value is there in its new form."""
        return name in self._lifted

    def constant(self, name: str) -> Array | None:
        """Return a constant's value, as far as it can be read."""
        return self._wiring.constant(name)

    def keep(self, node: onnx.NodeProto) -> None:
        """Add a node that works on values in their old form."""
        self._nodes.append(node)

    def add(self, node: onnx.NodeProto) -> None:
        """Add a node whose one output is now in the new form."""
        old = node.output[0]
        node.output[0] = self._lifted[old] = self._names.fresh(f"{old}_2d")
        self._made_lifted[node.output[0]] = old
        self._nodes.append(node)

    def lifted(self, name: str) -> str:
        """Return a value of three dimensions in its new form, which an Unsqueeze makes unless it is there."""
        if name not in self._lifted:
            values = self.constant(name)
            if values is not None:
                return self.replaced(name, np.expand_dims(values, NEW_AXIS))
            self._lifted[name] = self._names.fresh(f"{name}_2d")
            self._nodes.append(self._reshaped("Unsqueeze", name, self._lifted[name]))
        return self._lifted[name]

    def replaced(self, name: str, values: Array) -> str:
        """Return the name of a constant that stands for another one from now on."""
        if name not in self._constants:
            self._constants[name] = add_constant(self._graph, self._names.fresh(f"{name or 'axes'}_2d"), values)
        return self._constants[name]

    @property
    def superseded(self) -> frozenset[str]:
        """The constants that others stand for."""
        return frozenset(self._constants)

    def write(self) -> int:
        """Give the graph its new nodes; return how many of Squeeze and Unsqueeze there are then."""
        read = {*read_names(self._nodes), *self._wiring.outputs}
        nodes = list(self._with_squeezes(read))
        replace_nodes(self._graph, nodes)
        return sum(is_onnx(node, "Squeeze", "Unsqueeze") for node in nodes)

    def _with_squeezes(self, read: set[str]) -> Iterator[onnx.NodeProto]:
        """Yield the nodes, and behind each whose output is still read in its old form, what makes that."""
        for node in self._nodes:
            yield node
            old = self._made_lifted.get(node.output[0]) if node.output else None
            if old in read and old is not None:
                yield self._reshaped("Squeeze", node.output[0], old)

    def _reshaped(self, operator: str, source: str, result: str) -> onnx.NodeProto:
        name = self._names.fresh(f"{operator}_{source}")
        if self._opset < AXES_ARE_INPUTS:
            return new_node(operator, [source], [result], name=name, axes=[NEW_AXIS])
        axes = self.replaced(AXES, np.array([NEW_AXIS], np.int64))
        return new_node(operator, [source, axes], [result], name=name)
