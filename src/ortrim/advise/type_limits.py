"""Which element types a reduced build of ONNX Runtime really leaves out: less than its configuration lists.

Facts of 1.21.0, which a test holds against its sources: the typed registrations of the CPU's kernels, the macros
`ORT_SPECIFY_OP_KERNEL_ARG_*_TYPES` in them, `tools/python/util/ort_format_model/operator_type_usage_processors.py` and
`tools/ci_build/reduce_op_kernels.py`. Pure.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ortrim.core.operators import OperatorId, RequiredOperators

Slot = tuple[Literal["input", "output"], int]
Key = tuple[str, str]
"""Domain and name of an operator."""

INPUT: Final[Slot] = ("input", 0)
SECOND: Final[Slot] = ("input", 1)
OUTPUT: Final[Slot] = ("output", 0)

_BY_FIRST_INPUT: Final = (
    "Abs", "Add", "ArgMax", "ArgMin", "AveragePool", "BatchNormalization", "BitShift", "Ceil", "Clip", "Concat",
    "Conv", "CumSum", "DequantizeLinear", "Div", "Equal", "Exp", "Expand", "Floor", "Gemm", "Greater", "IsNaN",
    "Less", "Log", "LogSoftmax", "LpNormalization", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mul", "Neg",
    "NonZero", "Pad", "QLinearConv", "QLinearMatMul", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Resize", "ReverseSequence", "RoiAlign", "Round", "Scatter", "ScatterElements", "ScatterND", "Shrink",
    "Sigmoid", "Sign", "Sin", "Softmax", "Split", "Sqrt", "Sub", "Sum", "Tanh", "TopK", "Transpose", "Unique",
)  # fmt: skip
_BY_OUTPUT: Final = (
    "ConstantOfShape", "DynamicQuantizeLinear", "Multinomial", "QuantizeLinear", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike",
)  # fmt: skip
SLOTS: Final[dict[Key, tuple[Slot, ...]]] = {
    **{("ai.onnx", name): (INPUT,) for name in _BY_FIRST_INPUT},
    **{("ai.onnx", name): (OUTPUT,) for name in _BY_OUTPUT},
    **{("com.microsoft", name): (INPUT,) for name in ("QLinearAdd", "QLinearConv", "QLinearMul")},
    ("ai.onnx", "Cast"): (INPUT, OUTPUT),
    ("ai.onnx", "Gather"): (SECOND,),
    ("ai.onnx", "Pow"): (INPUT, SECOND),
    ("ai.onnx", "Slice"): (INPUT, SECOND),
    ("ai.onnx", "Where"): (SECOND,),
}
"""The inputs and outputs whose types are limited, by operator. Configurations list a few more, to no effect."""

ONE_HOT: Final[Key] = ("ai.onnx", "OneHot")
ONE_HOT_ORDER: Final = (0, 2, 1)
"""The inputs whose types make an entry of `custom`, in its order: indices, values, depth."""

_INTEGERS: Final = frozenset({"int32_t", "int64_t"})
_SHAPING: Final = (
    "Add", "Concat", "Div", "Equal", "Greater", "Less", "Mul", "Neg", "Range", "Slice", "Split", "Sub",
)  # fmt: skip
_CAST: Final = frozenset({"bool", "int32_t", "int64_t"})


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Types that are compiled in whatever the configuration says, from an opset on; None for all types."""

    types: frozenset[str] | None
    since: int = 1


_KEPT: Final[dict[tuple[str, Slot], _Kept]] = {
    **{(name, INPUT): _Kept(types=_INTEGERS) for name in _SHAPING},
    **{(name, SECOND): _Kept(types=_INTEGERS) for name in ("Gather", "Slice")},
    **{("Cast", slot): _Kept(types=_CAST) for slot in (INPUT, OUTPUT)},
    **{(name, INPUT): _Kept(types=_INTEGERS, since=12) for name in ("Max", "Min")},
    ("ConstantOfShape", OUTPUT): _Kept(types=frozenset({"int64_t"})),
    ("DequantizeLinear", INPUT): _Kept(types=frozenset({"int8_t", "uint8_t", "int32_t"})),
    ("Pad", INPUT): _Kept(types=_INTEGERS, since=11),
    ("Transpose", INPUT): _Kept(types=None, since=21),
}
"""Of `ai.onnx`; no other domain has such."""

_ALL_IN_EXTENDED: Final[frozenset[Key]] = frozenset({
    ("ai.onnx", "DequantizeLinear"), ("ai.onnx", "QuantizeLinear"), ("ai.onnx", "Transpose"),
    ("com.microsoft", "QLinearConv"),
})  # fmt: skip

_BYTES: Final = {
    "bool": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "MLFloat16": 2, "BFloat16": 2, "float": 4,
    "int32_t": 4, "uint32_t": 4, "double": 8, "int64_t": 8, "uint64_t": 8,
}  # fmt: skip
BY_SIZE: Final[Key] = ("ai.onnx", "Concat")
"""Copies elements of any type that is as large as one that is compiled in."""


def allowed_types(
    required: RequiredOperators, operator: OperatorId, slot: Slot, *, extended: bool
) -> frozenset[str] | None:
    """Return the types that a build for `required` takes at an input or output of an operator; None for all.

    `extended` says whether it is an extended minimal build, which keeps what turning layouts around may need. OneHot
    has a rule of its own: `one_hot_fits`.
    """
    key = (operator.domain, operator.name)
    listed = _listed(required, key, slot)
    if slot not in SLOTS.get(key, ()) or listed is None or (extended and key in _ALL_IN_EXTENDED):
        return None
    kept = _KEPT.get((operator.name, slot)) if operator.domain == "ai.onnx" else None
    if kept is None or operator.opset < kept.since:
        return _as_used(key, listed)
    return None if kept.types is None else _as_used(key, listed | kept.types)


def one_hot_triple(types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types of a OneHot's inputs as an entry of `custom` has them; empty when the model does not say."""
    triple = tuple(types[index] for index in ONE_HOT_ORDER if index < len(types) and types[index])
    return triple if len(triple) == len(ONE_HOT_ORDER) else ()


def one_hot_fits(required: RequiredOperators, types: tuple[str, ...]) -> bool:
    """Whether a build takes a OneHot whose inputs have these types."""
    triple = one_hot_triple(types)
    if required.globally_allowed_types:
        return set(triple) <= set(required.globally_allowed_types)
    listed = required.types_of(*ONE_HOT)
    return listed.unrestricted or not triple or triple in listed.custom


def _listed(required: RequiredOperators, key: Key, slot: Slot) -> frozenset[str] | None:
    if required.globally_allowed_types:
        return frozenset(required.globally_allowed_types)
    types = required.types_of(*key)
    direction, index = slot
    listed = dict(types.inputs if direction == "input" else types.outputs).get(index)
    return None if listed is None else frozenset(listed)


def _as_used(key: Key, types: frozenset[str]) -> frozenset[str]:
    if key != BY_SIZE:
        return types
    sizes = {_BYTES[name] for name in types if name in _BYTES}
    return types | {name for name, size in _BYTES.items() if size in sizes}
