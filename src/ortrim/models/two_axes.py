"""Convolutions and pooling along one axis as such along two, of which one has size 1.

ONNX Runtime's optimised layouts know two axes alone: NCHWc takes convolutions whose weights have four dimensions
(`nchwc_transformer.cc`), and so do XNNPACK's kernels. Values stay in the new form from one operator to the next as far
as these can follow, so that the pairs of Squeeze and Unsqueeze between neighbours never come to be. A step does so to
all of them, conversion to those that it makes faster (`one_axis.py`).
"""

from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from ortrim.models.graph import (
    Array,
    Names,
    Shapes,
    Wiring,
    add_constant,
    attributes_of,
    drop_unread,
    is_onnx,
    new_node,
    opset_of,
    replace_nodes,
    set_attribute,
    shapes_of,
    wired_graphs,
)
from ortrim.models.onnx_files import read_names

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


ELEMENTWISE: Final = (
    "Abs", "Cast", "Ceil", "Celu", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish",
    "Identity", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus",
    "Softsign", "Sqrt", "Tanh", "ThresholdedRelu",
)  # fmt: skip
"""Operators that take their first input element by element; other inputs are single numbers."""
BY_CHANNEL: Final = ("BatchNormalization", "InstanceNormalization")
"""Operators for which axis 1 are the channels, whatever comes behind it."""
BROADCASTING: Final = ("Add", "Div", "Max", "Min", "Mul", "PRelu", "Pow", "Sub")
ENDS: Final = 2
"""Numbers of a Pad for each axis."""


def follower(node: onnx.NodeProto, values: TwoAxes) -> onnx.NodeProto | None:
    """Return a node's new form when it reads values in theirs and can take them so; None when it is to stay."""
    if len([*filter(None, node.output)]) != 1 or not any(values.has(name) for name in node.input):
        return None
    follow = next((follow for names, follow in FOLLOWERS if is_onnx(node, *names)), None)
    made = deepcopy(node)
    return made if follow is not None and node.output[0] and follow(made, values) else None


def _first_input(node: onnx.NodeProto, values: TwoAxes) -> bool:
    if not values.has(node.input[0]):
        return False
    node.input[0] = values.lifted(node.input[0])
    return True


def _broadcast(node: onnx.NodeProto, values: TwoAxes) -> bool:
    """Numbers and single rows fit as they are; what has a channel axis gets the new axis before its last."""
    ranks = [FLAT_RANK if values.has(name) else values.rank(name) for name in node.input]
    if any(rank is None or rank > FLAT_RANK for rank in ranks):
        return False
    if any(
        rank == FLAT_RANK - 1 and values.constant(name) is None for rank, name in zip(ranks, node.input, strict=True)
    ):
        return False
    for index, (rank, name) in enumerate(zip(ranks, node.input, strict=True)):
        constant = values.constant(name)
        if rank == FLAT_RANK - 1 and constant is not None:
            node.input[index] = values.replaced(name, np.expand_dims(constant, constant.ndim - 1))
        elif rank == FLAT_RANK:
            node.input[index] = values.lifted(name)
    return True


def _concatenated(node: onnx.NodeProto, values: TwoAxes) -> bool:
    axis = _axis(attributes_of(node).get("axis"))
    if axis is None or any(not values.has(name) and values.rank(name) != FLAT_RANK for name in node.input):
        return False
    node.input[:] = [values.lifted(name) for name in node.input]
    set_attribute(node, "axis", axis)
    return True


def _padded(node: onnx.NodeProto, values: TwoAxes) -> bool:
    """Pad the new axis by nothing: `pads`, since opset 11 an input, has numbers before all axes, then behind them."""
    if any(node.input[3:4]):
        return False
    is_input = len(node.input) > 1
    given = values.constant(node.input[1]) if is_input else np.asarray(attributes_of(node).get("pads", ()))
    if given is None or given.shape != (ENDS * FLAT_RANK,) or given.dtype.kind != "i":
        return False
    pads = np.insert(given, [NEW_AXIS, FLAT_RANK + NEW_AXIS], 0)
    if not _first_input(node, values):
        return False
    if is_input:
        node.input[1] = values.replaced(node.input[1], pads)
    else:
        set_attribute(node, "pads", pads.tolist())
    return True


def _sliced(node: onnx.NodeProto, values: TwoAxes) -> bool:
    """Since opset 10 the axes are an input."""
    given = values.constant(node.input[3]) if len(node.input) > 3 else None
    if given is None or given.ndim != 1 or given.dtype.kind != "i":
        return False
    axes = [_axis(each) for each in given.tolist()]
    if None in axes or not _first_input(node, values):
        return False
    node.input[3] = values.replaced(node.input[3], np.array(axes, given.dtype))
    return True


def _axis(axis: Any) -> int | None:
    """Return where an axis of three is among four."""
    if not isinstance(axis, int) or not -FLAT_RANK <= axis < FLAT_RANK:
        return None
    counted = axis % FLAT_RANK
    return counted + 1 if counted >= NEW_AXIS else counted


Follow = Callable[[onnx.NodeProto, TwoAxes], bool]
FOLLOWERS: Final[tuple[tuple[tuple[str, ...], Follow], ...]] = (
    (ELEMENTWISE, _first_input),
    (BY_CHANNEL, _first_input),
    (BROADCASTING, _broadcast),
    (("Concat",), _concatenated),
    (("Pad",), _padded),
    (("Slice",), _sliced),
)
"""What changes a copy of a node for values in their new form, and says whether it could."""


CONVOLUTIONS: Final = ("Conv", "ConvTranspose")
POOLING: Final = ("AveragePool", "LpPool", "MaxPool")
GLOBAL_POOLING: Final = ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
NEW_SIZES: Final = {
    "kernel_shape": (1,),
    "strides": (1,),
    "dilations": (1,),
    "output_padding": (0,),
    "output_shape": (1,),
}
"""What the new axis has in each of these attributes, which stand before the old axis's."""


def with_two_axes(
    model: onnx.ModelProto, wanted: Collection[str] | None = None, *, followed: bool = True
) -> tuple[str, ...]:
    """Make convolutions and pooling along one axis two-dimensional, in a model that is changed; return notes of it.

    Those stay whose number of dimensions nothing tells, whose weights are quantized, and MaxPool that gives positions.
    With `wanted`, names of outputs, of convolutions only these are made so, and poolings behind them. Unless they are
    `followed`, all other nodes stay as they are.
    """
    names, shapes, opset = Names(model), shapes_of(model), opset_of(model)
    notes, superseded = list[str](), set[str]()
    for graph, wiring in wired_graphs(model):
        values = TwoAxes(graph, wiring, names, shapes, opset)
        notes += _rewrite(graph, wiring, values, wanted, followed=followed)
        superseded |= values.superseded
    drop_unread(model, superseded)
    return tuple(notes)


def write_with_two_axes(path: Path, result: Path, wanted: Collection[str], *, followed: bool) -> Path:
    """Write a model with these convolutions, by their outputs, made so; return where it is: `path` without any."""
    if not wanted:
        return path
    model = onnx.load(path, load_external_data=False)
    with_two_axes(model, wanted, followed=followed)
    onnx.save(model, result)
    return result


def _rewrite(
    graph: onnx.GraphProto, wiring: Wiring, values: TwoAxes, wanted: Collection[str] | None, *, followed: bool
) -> Iterator[str]:
    flat = {node.output[0] for node in graph.node if _is_flat(node, wiring, values)}
    if not flat.intersection(flat if wanted is None else wanted):
        return
    made, others = 0, 0
    for node in graph.node:
        if node.output and node.output[0] in flat and _is_wanted(node, values, wanted, followed=followed):
            values.add(_two_dimensional(node, values))
            made += 1
        elif followed and (follows := follower(node, values)) is not None:
            values.add(follows)
            others += 1
        else:
            values.keep(node)
    note = f"made {made} convolutions and poolings two-dimensional, and {others} other nodes with them"
    yield f"{note}; {values.write()} of Squeeze and Unsqueeze are in the graph"


def _is_wanted(node: onnx.NodeProto, values: TwoAxes, wanted: Collection[str] | None, *, followed: bool) -> bool:
    """Whether a node that can be rewritten is to be: with `wanted`, poolings where values are so."""
    follows = followed and node.op_type not in CONVOLUTIONS and values.has(node.input[0])
    return wanted is None or node.output[0] in wanted or follows


def _is_flat(node: onnx.NodeProto, wiring: Wiring, values: TwoAxes) -> bool:
    """Whether a node works along one axis and can be rewritten."""
    if not node.input or not node.output or not node.output[0] or any(node.output[1:]):
        return False
    if is_onnx(node, *CONVOLUTIONS) and len(node.input) > 1:
        maker = wiring.makers.get(node.input[1])
        quantized = maker is not None and is_onnx(maker, "DequantizeLinear")
        return values.rank(node.input[1]) == FLAT_RANK and not quantized and along_one_axis(node)
    if is_onnx(node, *POOLING):
        return "kernel_shape" in attributes_of(node) and along_one_axis(node)
    return is_onnx(node, *GLOBAL_POOLING) and values.rank(node.input[0]) == FLAT_RANK


def along_one_axis(node: onnx.NodeProto) -> bool:
    """Whether those attributes of a node that have a number for each axis have it for one."""
    attributes = attributes_of(node)
    lengths = {**dict.fromkeys(NEW_SIZES, 1), "pads": 2}
    given = ((attributes[name], length) for name, length in lengths.items() if name in attributes)
    return all(isinstance(value, list) and len(value) == length for value, length in given)


def _two_dimensional(node: onnx.NodeProto, values: TwoAxes) -> onnx.NodeProto:
    made = deepcopy(node)
    made.input[0] = values.lifted(node.input[0])
    if is_onnx(node, *CONVOLUTIONS):
        made.input[1] = values.lifted(node.input[1])
    for name, given in attributes_of(node).items():
        if name in NEW_SIZES:
            set_attribute(made, name, [*NEW_SIZES[name], *given])
        elif name == "pads":
            set_attribute(made, name, [0, given[0], 0, given[1]])
    return made
