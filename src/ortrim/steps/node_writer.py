"""Writing nodes and constants that stand for one node of a graph, with names after it."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx

from ortrim.steps.graph_wiring import Names, add_constant, new_node
from ortrim.steps.stepped import Array

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
