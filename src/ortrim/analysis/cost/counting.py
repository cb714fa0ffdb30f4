"""How much arithmetic a node does, by the rules of `docs/explanation/how-it-measures.md`.

There is one rule for each operator that multiplies and adds up. Shapes are known in all dimensions or None. The
operators' definitions are ONNX's `docs/Operators.md` and ONNX Runtime's `docs/ContribOperators.md`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ortrim.models.shapes import Shape


class Uncountable(Exception):
    """A node cannot be counted; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Counting:
    """A node to be counted: its operator's name, its shapes (None when not known), and its simple attributes."""

    operator: str
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape | None, ...]
    attributes: Mapping[str, int | str | tuple[int, ...]] = field(default_factory=dict)

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is a whole number."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of whole numbers; empty when there is none."""
        value = self.attributes.get(name, ())
        return value if isinstance(value, tuple) else ()

    def text(self, name: str) -> str:
        """Return an attribute that is a text; empty when there is none."""
        value = self.attributes.get(name, "")
        return value if isinstance(value, str) else ""

    def length(self, name: str) -> int:
        """Return how many numbers an attribute holds: of a list of floats, only that is kept."""
        return self.integer(f"{name}.length", 0)


def required(shapes: Sequence[Shape | None], index: int, what: str, *, rank: int | None = None) -> Shape:
    """Return a shape. Raises `Uncountable` when it is not known or has another number of dimensions than `rank`."""
    shape = shapes[index] if index < len(shapes) else None
    if shape is None:
        raise Uncountable(f"the shape of {what} is not known")
    if rank is not None and len(shape) != rank:
        raise Uncountable(f"the shape of {what} has {len(shape)} dimensions, not {rank}")
    return shape


def optional(shapes: Sequence[Shape | None], index: int) -> Shape | None:
    """Return the shape of an input that may be left out."""
    return shapes[index] if index < len(shapes) else None


def attention_macs(node: Counting) -> int:
    """Count ONNX's own Attention, of 3 or 4 dimensions; with more queries' heads, keys' heads are shared."""
    query = required(node.inputs, 0, "the query")
    if len(query) not in {3, 4}:
        raise Uncountable("the query has neither 3 nor 4 dimensions")
    value = required(node.inputs, 2, "the value", rank=len(query))
    keys = required(node.inputs, 1, "the key", rank=len(query))[-2] + _past(node, 4)
    if len(query) == 4:
        return math.prod(query[:-1]) * keys * (query[-1] + value[-1])
    own, shared = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
    if own <= 0 or shared <= 0:
        raise Uncountable("the numbers of heads are not known")
    return query[0] * query[1] * keys * (query[2] + value[2] // shared * own)


def contrib_attention_macs(node: Counting) -> int:
    """Count ONNX Runtime's Attention, which makes queries, keys and values from its input with one matrix."""
    batch, length, width = required(node.inputs, 0, "the input", rank=3)
    made = required(node.inputs, 1, "the weights", rank=2)[1]
    sizes = node.integers("qkv_hidden_sizes")
    value = sizes[2] if len(sizes) == 3 else made // 3
    query = sizes[0] if len(sizes) == 3 else made // 3
    keys = length + _past(node, 8 if node.operator.endswith("QAttention") else 4)
    return batch * length * (width * made + keys * (query + value))


def multi_head_macs(node: Counting) -> int:
    """Count ONNX Runtime's MultiHeadAttention with queries, keys and values apart."""
    query = required(node.inputs, 0, "the query", rank=3)
    key: Shape = required(node.inputs, 1, "the key")
    made = required(node.outputs, 0, "the output", rank=3)
    if len(key) not in {3, 4}:
        raise Uncountable("the keys are packed with others")
    return query[0] * query[1] * (key[-2] + _past(node, 6)) * (query[2] + made[2])


def _past(node: Counting, index: int) -> int:
    past = optional(node.inputs, index)
    return past[-2] if past is not None and len(past) >= 4 else 0


ELLIPSIS: Final = "..."


def einsum_macs(node: Counting) -> int:
    """Return the size of all indices together; nothing is multiplied where there is but one operand.

    Raises `Uncountable` for an equation that does not fit the operands.
    """
    terms = node.text("equation").replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(node.inputs):
        raise Uncountable("the equation does not fit the operands")
    sizes: dict[str, int] = {}
    for number, term in enumerate(terms):
        for index, size in _indices(term, required(node.inputs, number, "an operand")):
            sizes[index] = max(size, sizes.get(index, 0)) if size != 0 else 0
    return math.prod(sizes.values()) * (len(terms) - 1)


def _indices(term: str, shape: Shape) -> list[tuple[str, int]]:
    """Name the dimensions of an operand; those of an ellipsis are counted from the last."""
    before, dots, after = term.partition(ELLIPSIS)
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise Uncountable("the equation does not fit the operands")
    names = [*before, *(f"{ELLIPSIS}{number}" for number in range(hidden, 0, -1)), *after]
    return list(zip(names, shape, strict=True))


NEITHER: Final = frozenset({
    "Concat", "ConcatFromSequence", "Constant", "ConstantOfShape", "DepthToSpace", "Dropout", "Expand", "EyeLike",
    "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "If", "Loop", "Optional", "OptionalGetElement",
    "OptionalHasElement", "Pad", "Range", "Reshape", "ReverseSequence", "Scan", "ScatterElements", "ScatterND",
    "Scatter", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
    "SequenceLength", "SequenceMap", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "SplitToSequence", "Squeeze",
    "TensorScatter", "Tile", "Transpose", "Unsqueeze", "ai.onnx.ml:ZipMap", "com.microsoft:QLinearConcat",
})  # fmt: skip
"""Operators that only move data, or hold graphs whose nodes are counted themselves."""

WITHOUT_MACS: Final = frozenset({
    "com.microsoft:BiasAdd", "com.microsoft:BiasGelu", "com.microsoft:BiasSoftmax", "com.microsoft:BiasSplitGelu",
    "com.microsoft:DequantizeLinear", "com.microsoft:DynamicQuantizeLinear",
    "com.microsoft:EmbedLayerNormalization", "com.microsoft:FastGelu", "com.microsoft:Gelu",
    "com.microsoft:GroupNorm", "com.microsoft:NhwcMaxPool", "com.microsoft:QLinearAdd",
    "com.microsoft:QLinearAveragePool", "com.microsoft:QLinearGlobalAveragePool", "com.microsoft:QLinearLeakyRelu",
    "com.microsoft:QLinearMul", "com.microsoft:QLinearReduceMean", "com.microsoft:QLinearSigmoid",
    "com.microsoft:QLinearSoftmax", "com.microsoft:QLinearWhere", "com.microsoft:QuantizeLinear",
    "com.microsoft:QuickGelu", "com.microsoft:RotaryEmbedding", "com.microsoft:SkipLayerNormalization",
    "com.microsoft:SkipSimplifiedLayerNormalization", "ai.onnx.ml:ArrayFeatureExtractor", "ai.onnx.ml:Binarizer",
    "ai.onnx.ml:Imputer", "ai.onnx.ml:LabelEncoder", "ai.onnx.ml:Normalizer", "ai.onnx.ml:OneHotEncoder",
    "ai.onnx.ml:Scaler",
})  # fmt: skip
"""Operators outside ONNX's own domain that work element by element."""

POOLS: Final = frozenset({
    "AveragePool", "LpPool", "MaxPool", "com.microsoft:NhwcMaxPool", "com.microsoft:QLinearAveragePool",
})  # fmt: skip
OVER_INPUT: Final = frozenset({
    "ArgMax", "ArgMin", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "TopK",
    "com.microsoft:QLinearGlobalAveragePool", "com.microsoft:QLinearReduceMean",
})  # fmt: skip


def operations_of(node: Counting) -> int:
    """Return how many elements a node works on. Raises `Uncountable`.

    A pooling works on its window for each output element, what reduces on its input, all others on their output.
    """
    if node.operator in POOLS:
        return math.prod(node.integers("kernel_shape")) * math.prod(required(node.outputs, 0, "the output"))
    if node.operator in OVER_INPUT or node.operator.startswith("Reduce"):
        return math.prod(required(node.inputs, 0, "the input"))
    return math.prod(required(node.outputs, 0, "the output"))


ONNX_DOMAINS: Final = ("", "ai.onnx")


def count(node: Counting) -> tuple[int, int, str]:
    """Return a node's multiply-accumulates, or else its operations; and why it could not be counted, if so."""
    rule = RULES.get(node.operator)
    try:
        if rule:
            return rule(node), 0, ""
        if node.operator in NEITHER:
            return 0, 0, ""
        if ":" not in node.operator or node.operator in WITHOUT_MACS:
            return 0, operations_of(node), ""
    except Uncountable as error:
        return 0, 0, str(error)
    return 0, 0, "no rule for this operator"


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
    weights = (required(node.inputs, 1, "the weights"), required(node.inputs, 2, "the recurrent weights"))
    return math.prod(required(node.inputs, 0, "the input")[:2]) * sum(map(math.prod, weights))


def _linear(node: Counting) -> int:
    """Each row of the input takes all coefficients."""
    return math.prod(required(node.inputs, 0, "the input")[:-1]) * node.length("coefficients")


RULES: Final[Mapping[str, Callable[[Counting], int]]] = {
    **dict.fromkeys(
        ("Conv", "ConvInteger", "DeformConv", "com.microsoft:FusedConv", "com.microsoft:NhwcFusedConv"),
        _convolution(1),
    ),
    **dict.fromkeys(("QLinearConv", "com.microsoft:QLinearConv"), _convolution(3)),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(
        (
            "MatMul", "MatMulInteger", "QLinearMatMul",
            "com.microsoft:DynamicQuantizeMatMul", "com.microsoft:FusedMatMulActivation",
            "com.microsoft:MatMulBnb4", "com.microsoft:MatMulInteger16", "com.microsoft:MatMulIntegerToFloat",
            "com.microsoft:MatMulNBits", "com.microsoft:GemmFastGelu",
        ),
        _product(),
    ),
    **dict.fromkeys(
        (
            "Gemm", "com.microsoft:FusedGemm", "com.microsoft:QGemm", "com.microsoft:FusedMatMul",
            "com.microsoft:TransposeMatMul",
        ),
        _product("transA"),
    ),
    **dict.fromkeys(("RNN", "GRU", "LSTM", "com.microsoft:DynamicQuantizeLSTM"), _recurrent),
    "Einsum": einsum_macs,
    "Attention": attention_macs,
    **dict.fromkeys(("com.microsoft:Attention", "com.microsoft:QAttention"), contrib_attention_macs),
    "com.microsoft:MultiHeadAttention": multi_head_macs,
    **dict.fromkeys(("ai.onnx.ml:LinearClassifier", "ai.onnx.ml:LinearRegressor"), _linear),
}  # fmt: skip
"""Operators that multiply and add up, by name."""
