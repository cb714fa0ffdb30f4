"""Recurrent networks in fewer nodes than tf2onnx writes: states that are zeros, and directions side by side.

It computes zeros of the batch's size for each LSTM, which begins with zeros unless it is given others, and takes the
two directions apart to join them again. Each such node costs an inference more than a thousand instructions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ortrim.models.graph import replace_nodes
from ortrim.models.onnx_files import array_of, fresh, read_names
from ortrim.models.prepare import external_files

STATES: Final = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
"""Where each operator has its first states."""
STILL_ZEROS: Final = frozenset({"Cast", "Concat", "Expand", "Identity", "Reshape", "Squeeze", "Tile", "Unsqueeze"})
"""Operators that make zeros of zeros: of `Concat` all inputs, of the others the first."""
TO_THE_END: Final = 2**31 - 1
"""The least that `Slice` is given to end with when it takes all."""


def shorten_recurrent(path: Path, result: Path) -> Path:
    """Write a model with fewer nodes, and return where it is: `path` when there is nothing to gain."""
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    if external_files(model, path.name) or not any(_is(node, *STATES) for node in graph.node):
        return path
    before = len(graph.node)
    arrays = {each.name: array_of(each) for each in graph.initializer if each.name not in {i.name for i in graph.input}}
    arrays |= {node.output[0]: _constant(node) for node in graph.node if _is(node, "Constant")}
    constants = {name: array for name, array in arrays.items() if array is not None}
    _leave_out_zeros(graph, constants)
    _Joining(graph, constants).join()
    _drop_unread(graph)
    if len(graph.node) == before:
        return path
    onnx.save(model, result)
    return result


Constants = Mapping[str, "np.ndarray[Any, Any]"]


def _is(node: onnx.NodeProto, *operators: str) -> bool:
    return node.op_type in operators and node.domain in ("", "ai.onnx")


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _constant(node: onnx.NodeProto) -> "np.ndarray[Any, Any] | None":
    value = _attributes(node).get("value")
    return array_of(value) if isinstance(value, onnx.TensorProto) else None


def _leave_out_zeros(graph: onnx.GraphProto, constants: Constants) -> None:
    """Leave out the first states that are zeros."""
    zeros = {name for name, array in constants.items() if array.dtype.kind in "fiu" and not array.any()}
    for node in graph.node:
        first = node.input if _is(node, "Concat") else node.input[:1]
        value = _attributes(node).get("value")
        filled = _is(node, "ConstantOfShape") and (value is None or not numpy_helper.to_array(value).any())
        if filled or (_is(node, *STILL_ZEROS) and zeros.issuperset(first)):
            zeros.add(node.output[0])
        for at in STATES[node.op_type] if _is(node, *STATES) else ():
            if len(node.input) > at and node.input[at] in zeros:
                node.input[at] = ""
        while _is(node, *STATES) and not node.input[-1]:
            del node.input[-1]


class _Joining:
    """A graph in which one transposition takes the place of what takes both directions apart and joins them."""

    def __init__(self, graph: onnx.GraphProto, constants: Constants) -> None:
        self._graph, self._constants = graph, constants
        self._made = {name: node for node in graph.node for name in node.output}
        self._names = {*self._made, *(each.name for each in (*graph.initializer, *graph.input))}

    def join(self) -> None:
        """Change the graph."""
        replace_nodes(self._graph, [new for node in self._graph.node for new in self._joined(node) or (node,)])

    def _joined(self, node: onnx.NodeProto) -> tuple[onnx.NodeProto, ...]:
        """Return what takes the place of a node that joins all steps of both directions, or their last ones."""
        parts = [self._picked(name) for name in node.input] if _is(node, "Concat") else []
        steps = [None if part is None or part[1] else part for part in parts]
        both = [self._picked(step[0]) if step else part for step, part in zip(steps, parts, strict=True)]
        network = self._made.get(both[0][0]) if both and both[0] else None
        if network is None or [each and each[1:] for each in both] != [(1, 0), (1, 1)] or both[1] is None:
            return ()
        attributes, axis = _attributes(network), _attributes(node)["axis"]
        plain = (attributes.get("direction"), attributes.get("layout", 0)) == (b"bidirectional", 0)
        if not _is(network, *STATES) or not plain or {each and each[0] for each in both} != {network.output[0]}:
            return ()
        size = 2 * attributes["hidden_size"]
        if not any(steps) and axis in (2, -1):
            return self._transposed(network.output[0], [0, 2, 1, 3], [0, 0, size], node)
        # An RNN that has no steps would read its last one: upstream's Assign_Y_h asks for none before 1.30.
        guarded = _is(network, "GRU", "LSTM") and not any(network.input[4:5])
        if guarded and [step and step[2] for step in steps] == [-1, 0] and axis in (1, -1):
            network.output.extend([""] * (2 - len(network.output)))
            network.output[1] = network.output[1] or fresh(f"{network.output[0]}_last", self._names)
            return self._transposed(network.output[1], [1, 0, 2], [0, size], node)
        return ()

    def _transposed(
        self, source: str, order: list[int], sizes: list[int], node: onnx.NodeProto
    ) -> tuple[onnx.NodeProto, ...]:
        turned, shape = (fresh(f"{node.output[0]}_{word}", self._names) for word in ("turned", "shape"))
        self._graph.initializer.append(numpy_helper.from_array(np.array(sizes, np.int64), shape))
        transposition = helper.make_node("Transpose", [source], [turned], perm=order)
        return transposition, helper.make_node("Reshape", [turned, shape], node.output, name=node.name)

    def _picked(self, name: str) -> tuple[str, int, int] | None:
        """Return what a value is a part of, along which axis, and the part's index: 0, 1, or -1 for the last."""
        squeeze = self._made.get(name)
        part = self._made.get(squeeze.input[0]) if squeeze and _is(squeeze, "Squeeze") else None
        if squeeze is None or part is None or not _is(part, "Slice"):
            return None
        axes = self._numbers(squeeze.input[1]) if len(squeeze.input) > 1 else _attributes(squeeze).get("axes")
        match [axes, *(self._numbers(each) for each in part.input[1:])]:
            case [[axis], [begin], [end], [along]] | [[axis], [begin], [end], [along], [1]] if axis == along:
                one = end == begin + 1 or (begin == -1 and end >= TO_THE_END)
                return (part.input[0], axis, begin) if one else None
        return None

    def _numbers(self, name: str) -> list[int] | None:
        return self._constants[name].ravel().tolist() if name in self._constants else None


def _drop_unread(graph: onnx.GraphProto) -> None:
    """Remove nodes, in any order, and constants that no output comes from; what a caller may give stays."""
    made = {name: node for node in graph.node for name in node.output if name}
    waiting, read = [value.name for value in graph.output], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in read and name in made:
            waiting.extend(read_names([made[name]]))
        read.add(name)
    replace_nodes(graph, [node for node in graph.node if read.intersection(filter(None, node.output))])
    read.update(value.name for value in graph.input)
    for tensor in [each for each in graph.initializer if each.name not in read]:
        graph.initializer.remove(tensor)
