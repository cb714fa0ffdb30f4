"""The convolutions that read a model's input, as a place for its pre-processing."""

import numpy as np
import onnx

from ortrim.steps.graph_wiring import Names, Wiring, add_constant, attributes_of, is_onnx
from ortrim.steps.graphs import read_names
from ortrim.steps.stepped import Array


def foldable(graph: onnx.GraphProto, name: str, wiring: Wiring, channels: int | None) -> list[onnx.NodeProto]:
    """Return what reads a value, if these are convolutions of all its channels with constant weights and biases."""
    readers = [node for node in graph.node if name in read_names([node])]
    return readers if all(_fits(node, name, wiring, channels) for node in readers) else []


def pads_nothing(node: onnx.NodeProto) -> bool:
    """Whether a convolution looks at nothing but its input."""
    attributes = attributes_of(node)
    return not np.any(attributes.get("pads", 0)) and attributes.get("auto_pad", "NOTSET") in {"NOTSET", "VALID"}


def fold_into(
    graph: onnx.GraphProto,
    node: onnx.NodeProto,
    wiring: Wiring,
    names: Names,
    *,
    factor: Array,
    offset: Array,
    order: slice,
) -> list[str]:
    """Let a convolution take `x` where it took `(x + offset) * factor` by channel, these in another order before.

    Returns the constants that it reads no more.
    """
    weights = wiring.constant(node.input[1])
    assert weights is not None, "only convolutions that fit are folded into"
    scaled = weights.astype(np.float64) * factor.reshape(1, -1, *[1] * (weights.ndim - 2))
    replaced = [node.input[1]]
    if offset.any():
        shifted = scaled * offset.reshape(1, -1, *[1] * (weights.ndim - 2))
        addend = shifted.reshape(len(weights), -1).sum(axis=1)
        bias = wiring.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(1)
        replaced += node.input[2:]
        moved = (np.asarray(bias, np.float64) + addend).astype(weights.dtype)
        node.input[:] = [*node.input[:2], add_constant(graph, names.fresh(f"{node.input[1]}_bias"), moved)]
    made = scaled[:, order].astype(weights.dtype)
    node.input[1] = add_constant(graph, names.fresh(f"{node.input[1]}_folded"), made)
    return replaced


def _fits(node: onnx.NodeProto, name: str, wiring: Wiring, channels: int | None) -> bool:
    if not is_onnx(node, "Conv") or len(node.input) < 2 or list(node.input).count(name) != 1 or node.input[0] != name:
        return False
    weights = wiring.constant(node.input[1])
    biased = len(node.input) > 2 and node.input[2] != ""
    bias = wiring.constant(node.input[2]) if biased else np.zeros(1)
    return (
        weights is not None
        and weights.ndim > 2
        and channels in {None, weights.shape[1]}
        and weights.dtype.kind == "f"
        and attributes_of(node).get("group", 1) == 1
        and bias is not None
        and bias.ndim == 1
        and bias.size in {1, len(weights)}
    )
