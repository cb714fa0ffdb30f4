"""Convolutions and pooling along one axis as such along two, of which one has size 1.

ONNX Runtime's optimised layouts know two axes alone: NCHWc takes convolutions whose weights have four dimensions
(`nchwc_transformer.cc`), and so do XNNPACK's kernels. Values stay in the new form from one operator to the next as far
as these can follow, so that the pairs of Squeeze and Unsqueeze between neighbours never come to be.
"""

from typing import Final

import onnx

from ortrim.core.number_steps import Conv1dTo2d
from ortrim.steps.graph_wiring import (
    Names,
    Wiring,
    attributes_of,
    copied,
    drop_unread,
    is_onnx,
    opset_of,
    set_attribute,
    shapes_of,
    wired_graphs,
)
from ortrim.steps.stepped import Stepped
from ortrim.steps.two_axes import FLAT_RANK, TwoAxes
from ortrim.steps.two_axes_followers import follower

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


def conv1d_to_2d(model: onnx.ModelProto, options: Conv1dTo2d) -> Stepped:  # noqa: ARG001 - as all steps
    """Make convolutions and pooling along one axis two-dimensional.

    Those stay whose number of dimensions nothing tells, whose weights are quantized, and MaxPool that gives positions.
    """
    names, shapes, opset = Names(model), shapes_of(model), opset_of(model)
    notes, superseded = list[str](), set[str]()
    for graph, wiring in wired_graphs(model):
        values = TwoAxes(graph, wiring, names, shapes, opset)
        notes += _rewrite(graph, wiring, values)
        superseded |= values.superseded
    drop_unread(model, superseded)
    return Stepped(model=model, notes=tuple(notes))


def _rewrite(graph: onnx.GraphProto, wiring: Wiring, values: TwoAxes) -> list[str]:
    flat = {node.output[0] for node in graph.node if _is_flat(node, wiring, values)}
    if not flat:
        return []
    followed = 0
    for node in graph.node:
        if node.output and node.output[0] in flat:
            values.add(_two_dimensional(node, values))
        elif (made := follower(node, values)) is not None:
            values.add(made)
            followed += 1
        else:
            values.keep(node)
    reshaping = values.write()
    note = f"made {len(flat)} convolutions and poolings two-dimensional, and {followed} other nodes with them"
    return [f"{note}; {reshaping} of Squeeze and Unsqueeze are in the graph"]


def _is_flat(node: onnx.NodeProto, wiring: Wiring, values: TwoAxes) -> bool:
    """Whether a node works along one axis and can be rewritten."""
    if not node.input or not node.output or not node.output[0] or any(node.output[1:]):
        return False
    if is_onnx(node, *CONVOLUTIONS) and len(node.input) > 1:
        maker = wiring.makers.get(node.input[1])
        quantized = maker is not None and is_onnx(maker, "DequantizeLinear")
        return values.rank(node.input[1]) == FLAT_RANK and not quantized and _along_one_axis(node)
    if is_onnx(node, *POOLING):
        return "kernel_shape" in attributes_of(node) and _along_one_axis(node)
    return is_onnx(node, *GLOBAL_POOLING) and values.rank(node.input[0]) == FLAT_RANK


def _along_one_axis(node: onnx.NodeProto) -> bool:
    attributes = attributes_of(node)
    lengths = {**dict.fromkeys(NEW_SIZES, 1), "pads": 2}
    given = ((attributes[name], length) for name, length in lengths.items() if name in attributes)
    return all(isinstance(value, list) and len(value) == length for value, length in given)


def _two_dimensional(node: onnx.NodeProto, values: TwoAxes) -> onnx.NodeProto:
    made = copied(node)
    made.input[0] = values.lifted(node.input[0])
    if is_onnx(node, *CONVOLUTIONS):
        made.input[1] = values.lifted(node.input[1])
    for name, given in attributes_of(node).items():
        if name in NEW_SIZES:
            set_attribute(made, name, [*NEW_SIZES[name], *given])
        elif name == "pads":
            set_attribute(made, name, [0, given[0], 0, given[1]])
    return made
