"""Operators that work on values with one axis more as on those without: they keep neighbours in one form."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import onnx

from ortrim.steps.graph_wiring import attributes_of, copied, is_onnx, set_attribute
from ortrim.steps.two_axes import FLAT_RANK, NEW_AXIS, TwoAxes

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
    made = copied(node)
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
