"""Operations of operators that do not multiply and add up: the elements that they work on."""

import math
from typing import Final

from ortrim.core.counting_shapes import Counting, required

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
