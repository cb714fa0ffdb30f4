"""Operators that ONNX Runtime makes when it optimises, each with inputs and the outputs that it has for them."""

import re
from dataclasses import dataclass
from typing import Final

import onnx
import onnx.parser

DOMAIN: Final = "com.microsoft."


@dataclass(frozen=True, kw_only=True)
class Fused:
    """A node of `com.microsoft`, or of ONNX's domain: types of inputs and outputs are empty where they are left out."""

    call: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def operator(self) -> str:
        return self.call.removeprefix(DOMAIN).partition(" ")[0]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(map(int, re.findall(r"\d+", each.partition("[")[2]))) for each in self.outputs if each]

    def model(self, *, told: bool) -> onnx.ModelProto:
        """Return a model of the node alone; its outputs have types, and shapes if they are `told`."""
        given = ", ".join(f"{kind} i{number}" for number, kind in enumerate(self.inputs) if kind)
        kinds = [kind if told else kind and kind.partition("[")[0] + "[]" for kind in self.outputs]
        made = ", ".join(f"{kind} o{number}" for number, kind in enumerate(kinds) if kind)
        names = ", ".join(f"o{number}" if kind else '""' for number, kind in enumerate(self.outputs))
        read = ", ".join(f"i{number}" if kind else '""' for number, kind in enumerate(self.inputs))
        head = '<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]>'
        return onnx.parser.parse_model(f"{head} graph ({given}) => ({made}) {{ {names} = {self.call} ({read}) }}")


def _read(lines: str) -> tuple[Fused, ...]:
    """Read `operator <attributes> | inputs | outputs`; what is left out is `-`."""
    found = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        call, inputs, outputs = map(str.strip, line.split("|"))
        own = call.startswith(("LayerNormalization", "SimplifiedLayerNormalization"))
        sides = (tuple("" if each == "-" else each for each in side.split()) for side in (inputs, outputs))
        found.append(Fused(call=call if own else DOMAIN + call, **dict(zip(("inputs", "outputs"), sides, strict=True))))
    return tuple(found)


FUSED: Final = _read("""
    FusedConv <pads = [1,1,1,1], strides = [2,2], kernel_shape = [3,3], activation = "Relu"> \
        | float[2,3,8,9] float[4,3,3,3] | float[2,4,4,5]
    FusedGemm <transB = 1, activation = "Relu"> | float[5,7] float[3,7] | float[5,3]
    FusedMatMul <transB = 1, alpha = 0.5> | float[2,4,5,6] float[2,4,7,6] | float[2,4,5,7]
    FusedMatMul <transA = 1> | float[2,6,5] float[2,6,7] | float[2,5,7]
    FusedMatMul | float[2,5,6] float[6,7] | float[2,5,7]
    Gelu | float[2,5,8] | float[2,5,8]
    FastGelu | float[2,5,8] | float[2,5,8]
    QuickGelu | float[2,5,8] | float[2,5,8]
    BiasGelu | float[2,5,8] float[8] | float[2,5,8]
    SkipLayerNormalization | float[2,5,8] float[2,5,8] float[8] | float[2,5,8] - - float[2,5,8]
    SkipSimplifiedLayerNormalization | float[2,5,8] float[2,5,8] float[8] | float[2,5,8] - - float[2,5,8]
    EmbedLayerNormalization | int32[2,5] int32[2,5] float[30,8] float[10,8] float[2,8] float[8] float[8] \
        | float[2,5,8] int32[2] float[2,5,8]
    Attention <num_heads = 2> | float[2,5,8] float[8,24] float[24] | float[2,5,8]
    QAttention <num_heads = 2> | uint8[2,5,8] uint8[8,24] float[24] float[1] float[1] - uint8[1] uint8[1] \
        | float[2,5,8]
    MultiHeadAttention <num_heads = 2> | float[2,5,8] float[2,6,8] float[2,6,4] | float[2,5,4]
    MatMulNBits <K = 32, N = 7, bits = 4, block_size = 32> | float[2,5,32] uint8[7,1,16] float[7] | float[2,5,7]
    DynamicQuantizeMatMul | float[2,5,8] int8[8,3] float[1] | float[2,5,3]
    MatMulIntegerToFloat | uint8[2,5,8] int8[8,3] float float | float[2,5,3]
    QLinearAdd | uint8[2,5] float uint8 uint8[5] float uint8 float uint8 | uint8[2,5]
    QLinearMul | uint8[2,5] float uint8 uint8[5] float uint8 float uint8 | uint8[2,5]
    QLinearConcat <axis = 0> | float uint8 uint8[2,5] float uint8 uint8[3,5] float uint8 | uint8[5,5]
    QLinearGlobalAveragePool | uint8[1,3,4,4] float uint8 float uint8 | uint8[1,3,1,1]
    QLinearAveragePool <kernel_shape = [2,2]> | uint8[1,3,4,4] float uint8 float uint8 | uint8[1,3,3,3]
    QLinearSigmoid | uint8[2,5] float uint8 float uint8 | uint8[2,5]
    QLinearLeakyRelu | uint8[2,5] float uint8 float uint8 | uint8[2,5]
    QLinearSoftmax <opset = 13> | uint8[2,5] float uint8 float uint8 | uint8[2,5]
    QGemm | uint8[5,7] float uint8 uint8[7,3] float uint8 - float uint8 | uint8[5,3]
    QGemm | uint8[5,7] float uint8 uint8[7,3] float uint8 | float[5,3]
    DynamicQuantizeLSTM <hidden_size = 3> \
        | float[6,2,4] int8[1,4,12] int8[1,3,12] - - - - - float[1] int8[1] float[1] int8[1] \
        | float[6,1,2,3] float[1,2,3]
    QuantizeLinear | float[3,4] float uint16 | uint16[3,4]
    DequantizeLinear | uint16[3,4] float uint16 | float[3,4]
    LayerNormalization | float[2,5,8] float[8] | float[2,5,8]
    SimplifiedLayerNormalization | float[2,5,8] float[8] | float[2,5,8]
""")
"""With shapes and types as ONNX Runtime 1.21.0 infers them, which an integration test asks it for."""

UNKNOWN: Final = _read("""
    NhwcFusedConv | float[2,8,9,3] float[4,3,3,3] | float[2,6,7,4]
    FusedMatMul <transBatchA = 1> | float[5,2,6] float[2,6,7] | float[2,5,7]
    Attention <num_heads = 2, qkv_hidden_sizes = [8,8,4]> | float[2,5,8] float[8,20] float[20] | float[2,5,4]
    QLinearGlobalAveragePool <channels_last = 1> | uint8[1,4,4,3] float uint8 float uint8 | uint8[1,1,1,3]
""")
