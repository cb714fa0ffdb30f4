"""From ONNX's nodes to what the rules of counting and of lifetimes are given."""

from collections.abc import Mapping
from typing import Final

import onnx

from ortrim.core.counting import operator_name
from ortrim.core.counting_shapes import Counting
from ortrim.core.lifetimes import Moment
from ortrim.core.model_cost import Peak
from ortrim.models.bodies import captured
from ortrim.models.onnx_reading import graphs_of
from ortrim.models.value_sizes import Shape, ValueSize

VIEWS: Final = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose output is their input under another shape."""

IN_PLACE: Final = frozenset({
    "Cast", "Celu", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Relu", "Scatter", "ScatterElements",
    "Selu", "Shrink", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "ThresholdedRelu", "Trilu",
})  # fmt: skip
"""Operators that may write over their first input, as their kernels' registrations in ONNX Runtime 1.21.0 say
(`MayInplace(0, 0)` under `core/providers/cpu`); Add, Mul and others of two inputs are not among them."""

MOST_INTEGERS: Final = 64
"""Of a list that is an attribute; none that a rule reads is longer."""


def counting_of(node: onnx.NodeProto, sizes: Mapping[str, ValueSize]) -> Counting:
    """Return a node as the rules of counting take it."""
    return Counting(
        operator=operator_name(node.domain, node.op_type),
        inputs=tuple(_shape(name, sizes) for name in node.input),
        outputs=tuple(_shape(name, sizes) for name in node.output),
        attributes=dict(filter(None, map(_attribute, node.attribute))),
    )


def moment_of(node: onnx.NodeProto, name: str, inside: Peak | None, workspace: int) -> Moment:
    """Return a node's turn; what its inner graphs read from outside, it reads."""
    inner = (each for graph in graphs_of(node) for each in captured(graph))
    own = node.domain in {"", "ai.onnx"}
    return Moment(
        node=name,
        reads=tuple(each for each in (*node.input, *inner) if each),
        makes=tuple(each for each in node.output if each),
        view=own and node.op_type in VIEWS and any(node.input[:1]),
        in_place=tuple(node.input[:1]) if own and node.op_type in IN_PLACE else (),
        inside=inside,
        workspace=workspace,
    )


def _shape(name: str, sizes: Mapping[str, ValueSize]) -> Shape | None:
    return sizes[name].shape if name in sizes else None


def _attribute(attribute: onnx.AttributeProto) -> tuple[str, int | str | tuple[int, ...]] | None:
    match attribute.type:
        case onnx.AttributeProto.INT:
            return attribute.name, attribute.i
        case onnx.AttributeProto.STRING:
            return attribute.name, attribute.s.decode(errors="replace")
        case onnx.AttributeProto.INTS:
            return attribute.name, tuple(attribute.ints[:MOST_INTEGERS])
        case onnx.AttributeProto.FLOATS:
            return f"{attribute.name}.length", len(attribute.floats)
        case _:
            return None
