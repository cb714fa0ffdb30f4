"""What a GRU or LSTM works out, as plain data read from its node; None for what cannot be expanded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx

from ortrim.steps.graph_wiring import Wiring, attributes_of
from ortrim.steps.stepped import Array

GATES: Final = {"GRU": 3, "LSTM": 4}
DEFAULTS: Final = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
PLAIN: Final = {name.lower(): name for name in ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")}
"""Activations without numbers of their own; ONNX does not mind their case."""
UNUSUAL: Final = {"clip": 0.0, "input_forget": 0, "activation_alpha": [], "activation_beta": [], "layout": 0}
"""Attributes that are not expanded unless they say this."""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a recurrence. Weights are (inputs, gates x hidden), (hidden, gates x hidden); a bias, each."""

    backward: bool
    weights: Array
    recurrent: Array
    bias: Array
    recurrent_bias: Array
    activations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """All of a node: `hidden` numbers of state, and its directions in their order."""

    hidden: int
    directions: tuple[Direction, ...]
    linear_before_reset: bool


def read_recurrence(node: onnx.NodeProto, wiring: Wiring) -> Recurrence | str:
    """Return what a node works out, or in words why it cannot be expanded."""
    attributes = attributes_of(node)
    unusual = [name for name, usual in UNUSUAL.items() if attributes.get(name, usual) != usual]
    if unusual or any(node.input[4:5]) or any(node.input[7:8]):
        return "it has " + ", ".join([*unusual, *_unusual_inputs(node)])
    backward = DIRECTIONS.get(attributes.get("direction", "forward"))
    activations = _activations(node.op_type, attributes, len(backward or ()))
    weights = _weights(node, wiring)
    if backward is None or activations is None:
        return "its direction or its activations are not plain ones"
    if weights is None or not _fit(*weights, count=len(backward), gates=GATES[node.op_type]):
        return "its weights are not constants that fit"
    return Recurrence(
        hidden=weights[1].shape[2],
        directions=tuple(
            _direction(backwards, activations[index], *(each[index] for each in weights))
            for index, backwards in enumerate(backward)
        ),
        linear_before_reset=bool(attributes.get("linear_before_reset", 0)),
    )


def _unusual_inputs(node: onnx.NodeProto) -> list[str]:
    return [
        name for index, name in ((4, "lengths of sequences"), (7, "peepholes")) if any(node.input[index : index + 1])
    ]


def _activations(operator: str, attributes: Mapping[str, Any], count: int) -> list[tuple[str, ...]] | None:
    """Return the activations of each direction."""
    default = DEFAULTS[operator]
    given = [str(each, "utf-8", "replace") for each in attributes["activations"]] if _named(attributes) else []
    names = [PLAIN.get(name.lower()) for name in given or default * count]
    known = [name for name in names if name is not None]
    if len(known) != len(names) or len(known) != len(default) * count:
        return None
    return [tuple(known[start : start + len(default)]) for start in range(0, len(known), len(default))]


def _named(attributes: Mapping[str, Any]) -> bool:
    given = attributes.get("activations")
    return isinstance(given, list) and all(isinstance(each, bytes) for each in given)


def _weights(node: onnx.NodeProto, wiring: Wiring) -> tuple[Array, Array, Array] | None:
    """Return W, R and B as ONNX has them."""
    if len(node.input) < 3:
        return None
    weights, recurrent = wiring.constant(node.input[1]), wiring.constant(node.input[2])
    if weights is None or recurrent is None or weights.ndim != 3 or recurrent.ndim != 3:
        return None
    none = np.zeros((weights.shape[0], 2 * weights.shape[1]), weights.dtype)
    bias = wiring.constant(node.input[3]) if any(node.input[3:4]) else none
    return None if bias is None else (weights, recurrent, bias)


def _fit(weights: Array, recurrent: Array, bias: Array, *, count: int, gates: int) -> bool:
    hidden = recurrent.shape[2]
    return (
        hidden > 0
        and weights.dtype.kind == "f"
        and weights.dtype == recurrent.dtype == bias.dtype
        and weights.shape[:2] == recurrent.shape[:2] == (count, gates * hidden)
        and bias.shape == (count, 2 * gates * hidden)
    )


def _direction(
    backward: bool,  # noqa: FBT001 - one of a tuple's
    activations: tuple[str, ...],
    weights: Array,
    recurrent: Array,
    bias: Array,
) -> Direction:
    half = len(bias) // 2
    return Direction(
        backward=backward,
        weights=weights.T,
        recurrent=recurrent.T,
        bias=bias[:half],
        recurrent_bias=bias[half:],
        activations=activations,
    )
