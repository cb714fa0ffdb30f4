"""Operators of ONNX's own that have the shapes and types of those that ONNX Runtime fuses, which onnx knows nothing of.

What each gives is what ONNX Runtime 1.21.0 says of its operator (`core/graph/contrib_ops`). Those that lay channels out
anew (NhwcFusedConv, all of `com.microsoft.nchwc`) have no stand-in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import onnx
from onnx import NodeProto, TensorProto
from onnx.helper import make_node

MADE_UP: Final = "ortrim stand-in"
"""How the names of values begin that the model itself does not have."""
LAYER_NORMALIZATION_OPSET: Final = 17
"""From here on it is ONNX's own; before, ONNX Runtime has one of that name in ONNX's domain."""
TURNED: Final = ("transA", "transB")
Rule = Callable[[NodeProto], Sequence[NodeProto]]


def surrogates(node: NodeProto, opset: int) -> Sequence[NodeProto]:
    """Return the nodes that stand in for one, none for a node that onnx knows, or that nothing can stand in for.

    `opset` is the model's of ONNX's own domain.
    """
    if not any(node.output[:1]):
        return ()
    if node.domain not in {"", "ai.onnx"}:
        rule = RULES.get(node.op_type) if node.domain == "com.microsoft" else None
    else:
        known = node.op_type == "LayerNormalization" and opset >= LAYER_NORMALIZATION_OPSET
        rule = None if known else IN_ONNX.get(node.op_type)
    return rule(node) if rule else ()


def _input(node: NodeProto, index: int) -> str:
    return node.input[index] if index < len(node.input) else ""


def _number(node: NodeProto, name: str) -> int:
    return next((each.i for each in node.attribute if each.name == name), 0)


def _numbers(node: NodeProto, name: str) -> tuple[int, ...]:
    return next((tuple(each.ints) for each in node.attribute if each.name == name), ())


def _as(operator: str, *inputs: int, to: int | None = None) -> Rule:
    """One operator with some of the inputs and all attributes; `to` is the element type if it is not its own.

    A convolution or pooling that has its channels last is not like ONNX's.
    """

    def made(node: NodeProto) -> Sequence[NodeProto]:
        if _number(node, "channels_last"):
            return ()
        given = [_input(node, index) for index in inputs]
        while given and not given[-1]:
            given.pop()
        stand = make_node(operator, given, list(node.output))
        stand.attribute.extend(node.attribute)
        return (stand,) if to is None else _cast(stand, to)

    return made


def _cast(stand: NodeProto, to: int) -> Sequence[NodeProto]:
    """Give the last of what a node makes another element type."""
    output = stand.output.pop()
    stand.output.append(f"{MADE_UP} {output}")
    return (stand, make_node("Cast", [stand.output[-1]], [output], to=to))


def _like_first(*outputs: int) -> Rule:
    def made(node: NodeProto) -> Sequence[NodeProto]:
        names = [node.output[index] for index in outputs if index < len(node.output) and node.output[index]]
        return tuple(make_node("Identity", [_input(node, 0)], [name]) for name in names)

    return made


def _product(node: NodeProto) -> Sequence[NodeProto]:
    """Multiply matrices, of which either may be turned; those with turned batches are not known."""
    if _number(node, "transBatchA") or _number(node, "transBatchB"):
        return ()
    made, factors = [], []
    for index, turned in enumerate(TURNED):
        factor = _input(node, index)
        if _number(node, turned):
            made.append(
                make_node("Einsum", [factor], [f"{MADE_UP} {turned} {node.output[0]}"], equation="...ij->...ji")
            )
            factor = made[-1].output[0]
        factors.append(factor)
    return (*made, make_node("MatMul", factors, list(node.output)))


def _quantized_gemm(node: NodeProto) -> Sequence[NodeProto]:
    """Multiply matrices of 8 bits: the result is of 8 bits when there is a zero point for it."""
    return _as("Gemm", 0, 3, to=None if _input(node, 8) else TensorProto.FLOAT)(node)


def _packed_product(node: NodeProto) -> Sequence[NodeProto]:
    return _times(node, _number(node, "K"), _number(node, "N"))


def _attention(node: NodeProto) -> Sequence[NodeProto]:
    """Make queries, keys and values with one matrix; the result is as wide as the values."""
    if len(set(_numbers(node, "qkv_hidden_sizes"))) > 1:
        return ()
    product, queries, keys = (f"{MADE_UP} {what} {node.output[0]}" for what in ("product", "queries", "keys"))
    return (
        make_node("MatMul", [_input(node, 0), _input(node, 1)], [product]),
        make_node("Split", [product], [queries, keys, node.output[0]], axis=-1, num_outputs=3),
    )


def _quantized_attention(node: NodeProto) -> Sequence[NodeProto]:
    made = _attention(node)
    return (*made[:-1], *_cast(made[-1], TensorProto.FLOAT)) if made else ()


def _as_floats(node: NodeProto) -> Sequence[NodeProto]:
    return (make_node("Cast", [_input(node, 0)], list(node.output[:1]), to=TensorProto.FLOAT),)


def _embedding(node: NodeProto) -> Sequence[NodeProto]:
    """Look words up; the second output has a number for each sequence."""
    words = [_input(node, 2), _input(node, 0)]
    outputs = (*node.output, "", "")[:3]
    looked_up = tuple(make_node("Gather", words, [name]) for name in (outputs[0], outputs[2]) if name)
    longest = make_node("ArgMax", [_input(node, 0)], [outputs[1]], axis=1, keepdims=0)
    return (*looked_up, *(_cast(longest, TensorProto.INT32) if outputs[1] else ()))


def _several_heads(node: NodeProto) -> Sequence[NodeProto]:
    """Attend to values that are there by themselves, without heads."""
    return (make_node("Einsum", [_input(node, 0), _input(node, 2)], list(node.output[:1]), equation="bqw,bkv->bqv"),)


def _concatenation(node: NodeProto) -> Sequence[NodeProto]:
    """Put together every third input from the third one on; between them are their scales and zero points."""
    return _as("Concat", *range(2, len(node.input), 3))(node)


def _times(node: NodeProto, rows: int, columns: int) -> Sequence[NodeProto]:
    if rows <= 0 or columns <= 0:
        return ()
    shape, matrix = (f"{MADE_UP} {what} {node.output[0]}" for what in ("shape", "matrix"))
    sizes = onnx.helper.make_tensor("", TensorProto.INT64, (2,), (rows, columns))
    return (
        make_node("Constant", [], [shape], value=sizes),
        make_node("ConstantOfShape", [shape], [matrix]),
        make_node("MatMul", [_input(node, 0), matrix], list(node.output[:1])),
    )


_MATMUL: Final = _as("MatMul", 0, 1)
_SKIPPED: Final = _like_first(0, 3)

RULES: Final[Mapping[str, Rule]] = {
    "FusedConv": _as("Conv", 0, 1),
    "FusedGemm": _as("Gemm", 0, 1),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _product),
    **dict.fromkeys(("DynamicQuantizeMatMul", "GemmFastGelu"), _MATMUL),
    "MatMulIntegerToFloat": _as("MatMul", 0, 1, to=TensorProto.FLOAT),
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4"), _packed_product),
    **dict.fromkeys(
        (
            "BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "Gelu", "GroupNorm", "QLinearLeakyRelu",
            "QLinearSigmoid", "QLinearSoftmax", "QuickGelu", "RotaryEmbedding",
        ),
        _like_first(0),
    ),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _SKIPPED),
    "EmbedLayerNormalization": _embedding,
    "Attention": _attention,
    "QAttention": _quantized_attention,
    "MultiHeadAttention": _several_heads,
    "DynamicQuantizeLSTM": _as("LSTM", 0),
    "QLinearConv": _as("QLinearConv", 0, 1, 2, 3, 4, 5, 6, 7),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _as("Add", 0, 3)),
    "QLinearAveragePool": _as("AveragePool", 0),
    "QLinearGlobalAveragePool": _as("GlobalAveragePool", 0),
    "QLinearConcat": _concatenation,
    "QLinearWhere": _as("Where", 0, 1, 4),
    "QGemm": _quantized_gemm,
    "QuantizeLinear": _as("QuantizeLinear", 0, 1, 2),
    "DequantizeLinear": _as_floats,
}  # fmt: skip
"""By operators of `com.microsoft`."""

IN_ONNX: Final[Mapping[str, Rule]] = {
    "LayerNormalization": _like_first(0),
    "SimplifiedLayerNormalization": _like_first(0),
}
"""By operators that ONNX Runtime has in ONNX's own domain."""
