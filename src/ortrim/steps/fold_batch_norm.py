"""Normalisation by running mean and variance, put into the weights of the operator before it.

ONNX Runtime's conversion does so for Conv (`conv_bn_fusion.cc`), and after MatMul (`matmul_bn_fusion.cc`) in its newer
versions; not for ConvTranspose and Gemm.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Final

import numpy as np
import onnx

from ortrim.buildspec.step_specs import FoldBatchNorm
from ortrim.models.graph import (
    Array,
    Names,
    Shapes,
    Wiring,
    add_constant,
    attributes_of,
    drop_unread,
    is_onnx,
    replace_nodes,
    set_attribute,
    shapes_of,
    wired_graphs,
)
from ortrim.steps.step import Stepped

DEFAULT_EPSILON: Final = 1e-5
MATRIX: Final = 2
Folded = tuple[Array, Array]
"""New weights and bias."""


Affine = tuple[Array, Array]
"""A normalisation as one factor and one addend for each channel."""


def fold_batch_norm(model: onnx.ModelProto, options: FoldBatchNorm) -> Stepped:  # noqa: ARG001 - as all steps
    """Return the model with each BatchNormalization folded whose operator before it has constant weights.

    Those are left alone that are made for training, that read what others read too, or that follow no Conv,
    ConvTranspose, Gemm or MatMul of a matrix.
    """
    names, shapes, notes, unread = Names(model), shapes_of(model), list[str](), list[str]()
    for graph, wiring in wired_graphs(model):
        notes += _fold_graph(graph, wiring, names, shapes, unread)
    drop_unread(model, unread)
    return Stepped(model=model, notes=tuple(notes))


def _fold_graph(graph: onnx.GraphProto, wiring: Wiring, names: Names, shapes: Shapes, unread: list[str]) -> list[str]:
    """Fold what one graph has; say what that was, and add the constants that are read no more to `unread`."""
    replaced: dict[str, onnx.NodeProto] = {}
    gone, notes = set[str](), list[str]()
    for norm in graph.node:
        affine = _affine(norm, wiring)
        maker = wiring.makers.get(norm.input[0]) if affine else None
        if affine is None or maker is None or not wiring.only_reader(norm.input[0]):
            continue
        folded = _folded(maker, wiring, affine, shapes)
        if folded is None:
            continue
        replaced[maker.output[0]] = _with_weights(graph, maker, norm.output[0], folded, names)
        gone.add(norm.output[0])
        unread += [*norm.input[1:], *maker.input[1:]]
        notes.append(f"{norm.name or norm.output[0]}: folded into {maker.op_type} {maker.name}".rstrip())
    nodes = (replaced.get(node.output[0], node) if node.output else node for node in graph.node)
    if gone:
        replace_nodes(graph, [node for node in nodes if node in replaced.values() or not gone & set(node.output)])
    return notes


def _affine(node: onnx.NodeProto, wiring: Wiring) -> Affine | None:
    """Return what a normalisation does; None when it is none, is for training, or does not know its numbers."""
    if not is_onnx(node, "BatchNormalization") or len(node.input) != 5 or len([*filter(None, node.output)]) != 1:
        return None
    attributes = attributes_of(node)
    if attributes.get("training_mode", 0) != 0 or attributes.get("spatial", 1) != 1 or not node.output[0]:
        return None
    constants = [wiring.constant(name) for name in node.input[1:]]
    if any(each is None or each.ndim != 1 or each.dtype.kind != "f" for each in constants):
        return None
    scale, bias, mean, variance = (np.asarray(each, np.float64) for each in constants)
    epsilon = attributes.get("epsilon", DEFAULT_EPSILON)
    if len({scale.shape, bias.shape, mean.shape, variance.shape}) != 1 or not isinstance(epsilon, float):
        return None
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        addend = bias - mean * factor
    finite = np.isfinite(factor).all() and np.isfinite(addend).all()
    return (factor, addend) if finite else None


def _folded(node: onnx.NodeProto, wiring: Wiring, affine: Affine, shapes: Shapes) -> Folded | None:
    """Return new weights and bias of the operator before a normalisation; None when that cannot be."""
    fold = FOLDS.get(node.op_type)
    if fold is None or not is_onnx(node, *FOLDS) or len(node.input) not in {2, 3} or len(node.output) != 1:
        return None
    weights = wiring.constant(node.input[1])
    bias = wiring.constant(node.input[2]) if any(node.input[2:]) else np.zeros(1)
    if weights is None or bias is None or weights.dtype.kind != "f":
        return None
    if node.op_type == "MatMul" and len(shapes.get(node.output[0], ())) != MATRIX:
        return None  # the channels of a normalisation are axis 1, which is a product's last only when it is a matrix
    made = fold(node, np.asarray(weights, np.float64), np.asarray(bias, np.float64), affine)
    if made is None:
        return None
    with np.errstate(all="ignore"):
        new = made[0].astype(weights.dtype), made[1].astype(weights.dtype)
    return new if all(np.isfinite(each).all() for each in new) else None


def _fold_conv(_node: onnx.NodeProto, weights: Array, bias: Array, affine: Affine) -> Folded | None:
    channels = len(affine[0])
    if weights.ndim < MATRIX or weights.shape[0] != channels or bias.size not in {1, channels}:
        return None
    factor = affine[0].reshape(-1, *[1] * (weights.ndim - 1))
    return weights * factor, bias.ravel() * affine[0] + affine[1]


def _fold_transposed(node: onnx.NodeProto, weights: Array, bias: Array, affine: Affine) -> Folded | None:
    """Weights are (input channels, output channels of a group, ...); the output's channels go by group."""
    groups, channels = attributes_of(node).get("group", 1), len(affine[0])
    if weights.ndim < MATRIX or not isinstance(groups, int) or groups < 1 or bias.size not in {1, channels}:
        return None
    if weights.shape[1] * groups != channels or weights.shape[0] % groups != 0:
        return None
    grouped = weights.reshape(groups, -1, *weights.shape[1:])
    factor = affine[0].reshape(groups, 1, -1, *[1] * (weights.ndim - 2))
    return (grouped * factor).reshape(weights.shape), bias.ravel() * affine[0] + affine[1]


def _fold_gemm(node: onnx.NodeProto, weights: Array, bias: Array, affine: Affine) -> Folded | None:
    """`alpha * A * B + beta * C`: the factor goes into B and C, the addend into C as far as `beta` leaves it there."""
    attributes = attributes_of(node)
    transposed, beta = attributes.get("transB", 0) != 0, attributes.get("beta", 1.0)
    if weights.ndim != MATRIX or weights.shape[0 if transposed else 1] != len(affine[0]) or beta == 0:
        return None
    if bias.ndim > MATRIX or (bias.ndim and bias.shape[-1] not in {1, len(affine[0])}):
        return None
    factor = affine[0][:, None] if transposed else affine[0]
    return weights * factor, bias * affine[0] + affine[1] / beta


FOLDS: Final[Mapping[str, Callable[[onnx.NodeProto, Array, Array, Affine], Folded | None]]] = {
    "Conv": _fold_conv,
    "ConvTranspose": _fold_transposed,
    "Gemm": _fold_gemm,
    "MatMul": _fold_gemm,
}


def _with_weights(
    graph: onnx.GraphProto, node: onnx.NodeProto, output: str, folded: Folded, names: Names
) -> onnx.NodeProto:
    """Return the operator with new weights, giving the normalisation's output."""
    made = deepcopy(node)
    made.op_type = "Gemm" if node.op_type == "MatMul" else node.op_type
    weights = add_constant(graph, names.fresh(f"{node.input[1]}_folded"), folded[0])
    bias = add_constant(graph, names.fresh(f"{node.input[1]}_bias"), folded[1])
    del made.input[1:], made.output[:]
    made.input.extend([weights, bias])
    made.output.append(output)
    if node.op_type == "MatMul":
        set_attribute(made, "transB", 0)
    return made
