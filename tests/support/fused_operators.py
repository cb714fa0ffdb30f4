"""Operators that ONNX Runtime makes when it optimises, each with inputs and the outputs that it has for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import onnx
from onnx import TensorProto, helper

from onnx_samples import model_of, value

FLOAT, INT8, INT32, UINT8, UINT16 = (
    TensorProto.FLOAT,
    TensorProto.INT8,
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.UINT16,
)
Tensor = tuple[tuple[int, ...], int]
SCALE: Final[Tensor] = ((), FLOAT)
ONE: Final[Tensor] = ((), UINT8)
STATES: Final[Tensor] = ((2, 5, 8), FLOAT)


@dataclass(frozen=True, kw_only=True)
class Fused:
    """A node: inputs and outputs are None where they are left out."""

    operator: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = "com.microsoft"

    def model(self, *, told: bool) -> onnx.ModelProto:
        """Return a model of the node alone; its outputs have types, and shapes if they are `told`."""
        inputs = [f"i{number}" if tensor else "" for number, tensor in enumerate(self.inputs)]
        outputs = [f"o{number}" if tensor else "" for number, tensor in enumerate(self.outputs)]
        node = helper.make_node(self.operator, inputs, outputs, name="fused", domain=self.domain, **self.attributes)
        given = [value(name, each[1], each[0]) for name, each in zip(inputs, self.inputs, strict=True) if each]
        made = [
            value(name, each[1], each[0] if told else None)
            for name, each in zip(outputs, self.outputs, strict=True)
            if each
        ]
        return model_of([node], given, made, opsets=(("", 13), ("com.microsoft", 1)))


def _like(operator: str, *others: Tensor, domain: str = "com.microsoft", **attributes: Any) -> Fused:
    return Fused(operator=operator, inputs=(STATES, *others), outputs=(STATES,), attributes=attributes, domain=domain)


FUSED: Final = (
    Fused(
        operator="FusedConv",
        inputs=(((2, 3, 8, 9), FLOAT), ((4, 3, 3, 3), FLOAT)),
        outputs=(((2, 4, 4, 5), FLOAT),),
        attributes={"pads": [1, 1, 1, 1], "strides": [2, 2], "kernel_shape": [3, 3], "activation": "Relu"},
    ),
    Fused(
        operator="FusedGemm",
        inputs=(((5, 7), FLOAT), ((3, 7), FLOAT)),
        outputs=(((5, 3), FLOAT),),
        attributes={"transB": 1, "activation": "Relu"},
    ),
    Fused(
        operator="FusedMatMul",
        inputs=(((2, 4, 5, 6), FLOAT), ((2, 4, 7, 6), FLOAT)),
        outputs=(((2, 4, 5, 7), FLOAT),),
        attributes={"transB": 1, "alpha": 0.5},
    ),
    Fused(
        operator="FusedMatMul",
        inputs=(((2, 6, 5), FLOAT), ((2, 6, 7), FLOAT)),
        outputs=(((2, 5, 7), FLOAT),),
        attributes={"transA": 1},
    ),
    Fused(
        operator="FusedMatMul", inputs=(((2, 5, 6), FLOAT), ((6, 7), FLOAT)), outputs=(((2, 5, 7), FLOAT),)
    ),
    *(_like(operator) for operator in ("Gelu", "FastGelu", "QuickGelu")),
    _like("BiasGelu", ((8,), FLOAT)),
    Fused(
        operator="SkipLayerNormalization",
        inputs=(STATES, STATES, ((8,), FLOAT)),
        outputs=(STATES, None, None, STATES),
    ),
    Fused(
        operator="SkipSimplifiedLayerNormalization",
        inputs=(STATES, STATES, ((8,), FLOAT)),
        outputs=(STATES, None, None, STATES),
    ),
    Fused(
        operator="EmbedLayerNormalization",
        inputs=(
            ((2, 5), INT32), ((2, 5), INT32), ((30, 8), FLOAT), ((10, 8), FLOAT), ((2, 8), FLOAT), ((8,), FLOAT),
            ((8,), FLOAT),
        ),
        outputs=(STATES, ((2,), INT32), STATES),
    ),
    Fused(
        operator="Attention",
        inputs=(STATES, ((8, 24), FLOAT), ((24,), FLOAT)),
        outputs=(STATES,),
        attributes={"num_heads": 2},
    ),
    Fused(
        operator="QAttention",
        inputs=(
            ((2, 5, 8), UINT8), ((8, 24), UINT8), ((24,), FLOAT), ((1,), FLOAT), ((1,), FLOAT), None, ((1,), UINT8),
            ((1,), UINT8),
        ),
        outputs=(STATES,),
        attributes={"num_heads": 2},
    ),
    Fused(
        operator="MultiHeadAttention",
        inputs=(STATES, ((2, 6, 8), FLOAT), ((2, 6, 4), FLOAT)),
        outputs=(((2, 5, 4), FLOAT),),
        attributes={"num_heads": 2},
    ),
    Fused(
        operator="MatMulNBits",
        inputs=(((2, 5, 32), FLOAT), ((7, 1, 16), UINT8), ((7,), FLOAT)),
        outputs=(((2, 5, 7), FLOAT),),
        attributes={"K": 32, "N": 7, "bits": 4, "block_size": 32},
    ),
    Fused(
        operator="DynamicQuantizeMatMul",
        inputs=(STATES, ((8, 3), INT8), ((1,), FLOAT)),
        outputs=(((2, 5, 3), FLOAT),),
    ),
    Fused(
        operator="MatMulIntegerToFloat",
        inputs=(((2, 5, 8), UINT8), ((8, 3), INT8), SCALE, SCALE),
        outputs=(((2, 5, 3), FLOAT),),
    ),
    *(
        Fused(
            operator=operator,
            inputs=(((2, 5), UINT8), SCALE, ONE, ((5,), UINT8), SCALE, ONE, SCALE, ONE),
            outputs=(((2, 5), UINT8),),
        )
        for operator in ("QLinearAdd", "QLinearMul")
    ),
    Fused(
        operator="QLinearConcat",
        inputs=(SCALE, ONE, ((2, 5), UINT8), SCALE, ONE, ((3, 5), UINT8), SCALE, ONE),
        outputs=(((5, 5), UINT8),),
        attributes={"axis": 0},
    ),
    Fused(
        operator="QLinearGlobalAveragePool",
        inputs=(((1, 3, 4, 4), UINT8), SCALE, ONE, SCALE, ONE),
        outputs=(((1, 3, 1, 1), UINT8),),
    ),
    Fused(
        operator="QLinearAveragePool",
        inputs=(((1, 3, 4, 4), UINT8), SCALE, ONE, SCALE, ONE),
        outputs=(((1, 3, 3, 3), UINT8),),
        attributes={"kernel_shape": [2, 2]},
    ),
    *(
        Fused(
            operator=operator,
            inputs=(((2, 5), UINT8), SCALE, ONE, SCALE, ONE),
            outputs=(((2, 5), UINT8),),
        )
        for operator in ("QLinearSigmoid", "QLinearLeakyRelu")
    ),
    Fused(
        operator="QLinearSoftmax",
        inputs=(((2, 5), UINT8), SCALE, ONE, SCALE, ONE),
        outputs=(((2, 5), UINT8),),
        attributes={"opset": 13},
    ),
    Fused(
        operator="QGemm",
        inputs=(((5, 7), UINT8), SCALE, ONE, ((7, 3), UINT8), SCALE, ONE, None, SCALE, ONE),
        outputs=(((5, 3), UINT8),),
    ),
    Fused(
        operator="QGemm",
        inputs=(((5, 7), UINT8), SCALE, ONE, ((7, 3), UINT8), SCALE, ONE),
        outputs=(((5, 3), FLOAT),),
    ),
    Fused(
        operator="DynamicQuantizeLSTM",
        inputs=(
            ((6, 2, 4), FLOAT), ((1, 4, 12), INT8), ((1, 3, 12), INT8), None, None, None, None, None,
            ((1,), FLOAT), ((1,), INT8), ((1,), FLOAT), ((1,), INT8),
        ),
        outputs=(((6, 1, 2, 3), FLOAT), ((1, 2, 3), FLOAT)),
        attributes={"hidden_size": 3},
    ),
    Fused(
        operator="QuantizeLinear", inputs=(((3, 4), FLOAT), SCALE, ((), UINT16)), outputs=(((3, 4), UINT16),)
    ),
    Fused(
        operator="DequantizeLinear", inputs=(((3, 4), UINT16), SCALE, ((), UINT16)), outputs=(((3, 4), FLOAT),)
    ),
    _like("LayerNormalization", ((8,), FLOAT), domain=""),
    _like("SimplifiedLayerNormalization", ((8,), FLOAT), domain=""),
)  # fmt: skip
"""With shapes and types as ONNX Runtime 1.21.0 infers them, which an integration test asks it for."""

UNKNOWN: Final = (
    Fused(
        operator="NhwcFusedConv",
        inputs=(((2, 8, 9, 3), FLOAT), ((4, 3, 3, 3), FLOAT)),
        outputs=(((2, 6, 7, 4), FLOAT),),
    ),
    Fused(
        operator="FusedMatMul",
        inputs=(((5, 2, 6), FLOAT), ((2, 6, 7), FLOAT)),
        outputs=(((2, 5, 7), FLOAT),),
        attributes={"transBatchA": 1},
    ),
    Fused(
        operator="Attention",
        inputs=(STATES, ((8, 20), FLOAT), ((20,), FLOAT)),
        outputs=(((2, 5, 4), FLOAT),),
        attributes={"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]},
    ),
    Fused(
        operator="QLinearGlobalAveragePool",
        inputs=(((1, 4, 4, 3), UINT8), SCALE, ONE, SCALE, ONE),
        outputs=(((1, 1, 1, 3), UINT8),),
        attributes={"channels_last": 1},
    ),
)
