"""How much arithmetic a node does: the rules of `docs/cost.md`, one for each operator that multiplies and adds up.

Shapes are known in all dimensions or None. The operators' definitions are ONNX's `docs/Operators.md` and ONNX
Runtime's `docs/ContribOperators.md`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ortrim.core.counting_attention import attention_macs, contrib_attention_macs, multi_head_macs
from ortrim.core.counting_einsum import einsum_macs
from ortrim.core.counting_operations import NEITHER, WITHOUT_MACS, operations_of
from ortrim.core.counting_shapes import Counting, Uncountable, required
from ortrim.models.value_sizes import Shape

ONNX_DOMAINS: Final = ("", "ai.onnx")


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """What was counted; `unknown` says why a node could not be counted, and is empty otherwise."""

    macs: int = 0
    operations: int = 0
    unknown: str = ""


def count(node: Counting) -> Arithmetic:
    """Return a node's multiply-accumulates, or else its operations."""
    rule = RULES.get(node.operator)
    try:
        if rule:
            return Arithmetic(macs=rule(node))
        if node.operator in NEITHER:
            return Arithmetic()
        if ":" not in node.operator or node.operator in WITHOUT_MACS:
            return Arithmetic(operations=operations_of(node))
    except Uncountable as error:
        return Arithmetic(unknown=str(error))
    return Arithmetic(unknown="no rule for this operator")


def operator_name(domain: str, name: str) -> str:
    """Return an operator's name, with its domain unless that is ONNX's own."""
    return name if domain in ONNX_DOMAINS else f"{domain}:{name}"


def _convolution(weights: int) -> Callable[[Counting], int]:
    """Each output element takes one filter: the kernel times the channels of a group."""

    def macs(node: Counting) -> int:
        return math.prod(required(node.outputs, 0, "the output")) * math.prod(_filter(node, weights))

    return macs


def _transposed_convolution(node: Counting) -> int:
    """Each input element is multiplied with one filter: the kernel times the output channels of a group."""
    return math.prod(required(node.inputs, 0, "the input")) * math.prod(_filter(node, 1))


def _filter(node: Counting, weights: int) -> Shape:
    return required(node.inputs, weights, "the weights")[1:]


def _product(transposed: str = "") -> Callable[[Counting], int]:
    """Each output element takes one row of the first matrix; `transposed` names the attribute that makes it a column.

    Vectors are matrices of one row.
    """

    def macs(node: Counting) -> int:
        left = required(node.inputs, 0, "the first matrix")
        if not left:
            raise Uncountable("the first matrix is a scalar")
        column = bool(transposed) and len(left) > 1 and node.integer(transposed, 0) != 0
        return math.prod(required(node.outputs, 0, "the output")) * (left[-2] if column else left[-1])

    return macs


def _recurrent(node: Counting) -> int:
    """Each step of each sequence takes all of the weights and of the recurrent weights."""
    steps = math.prod(required(node.inputs, 0, "the input")[:2])
    weights = math.prod(required(node.inputs, 1, "the weights"))
    return steps * (weights + math.prod(required(node.inputs, 2, "the recurrent weights")))


def _linear(node: Counting) -> int:
    """Each row of the input takes all coefficients."""
    rows = required(node.inputs, 0, "the input")
    return math.prod(rows[:-1]) * node.length("coefficients")


_CONV: Final = _convolution(1)
_MATMUL: Final = _product()
_GEMM: Final = _product("transA")

RULES: Final[Mapping[str, Callable[[Counting], int]]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), _CONV),
    **dict.fromkeys(("com.microsoft:FusedConv", "com.microsoft:NhwcFusedConv"), _CONV),
    **dict.fromkeys(("QLinearConv", "com.microsoft:QLinearConv"), _convolution(3)),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _MATMUL),
    **dict.fromkeys(
        (
            "com.microsoft:DynamicQuantizeMatMul", "com.microsoft:FusedMatMulActivation",
            "com.microsoft:MatMulBnb4", "com.microsoft:MatMulInteger16", "com.microsoft:MatMulIntegerToFloat",
            "com.microsoft:MatMulNBits", "com.microsoft:GemmFastGelu",
        ),
        _MATMUL,
    ),
    **dict.fromkeys(("com.microsoft:FusedMatMul", "com.microsoft:TransposeMatMul"), _GEMM),
    **dict.fromkeys(("Gemm", "com.microsoft:FusedGemm", "com.microsoft:QGemm"), _GEMM),
    **dict.fromkeys(("RNN", "GRU", "LSTM", "com.microsoft:DynamicQuantizeLSTM"), _recurrent),
    "Einsum": einsum_macs,
    "Attention": attention_macs,
    **dict.fromkeys(("com.microsoft:Attention", "com.microsoft:QAttention"), contrib_attention_macs),
    "com.microsoft:MultiHeadAttention": multi_head_macs,
    **dict.fromkeys(("ai.onnx.ml:LinearClassifier", "ai.onnx.ml:LinearRegressor"), _linear),
}  # fmt: skip
"""Operators that multiply and add up, by name."""
