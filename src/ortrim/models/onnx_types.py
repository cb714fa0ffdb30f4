"""ONNX's types in words: those of tensors, and of the sequences, maps and optional values that are made of them."""

import re
from typing import Final

import onnx

ELEMENT_TYPES: Final[dict[int, str]] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.INT16: "int16",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
    onnx.TensorProto.UINT8: "uint8",
    onnx.TensorProto.UINT16: "uint16",
    onnx.TensorProto.UINT32: "uint32",
    onnx.TensorProto.UINT64: "uint64",
    onnx.TensorProto.BOOL: "bool",
    onnx.TensorProto.STRING: "string",
}

_TENSOR: Final = "|".join(ELEMENT_TYPES.values())
_MAP: Final = r"map\((int64|string), (int64|string|float32|float64)\)"
UNTYPED: Final = "no type"
COMPARABLE: Final = re.compile(rf"({UNTYPED}|{_TENSOR}|{_MAP}|sequence\(({_TENSOR}|{_MAP})\))")
"""Words for the types of outputs that ORT format can hold (no optional values) and the runner can save as tensors.

ONNX Runtime finds out the type of an output that the model leaves open.
"""


def type_words(kind: onnx.TypeProto) -> str:
    """Return a type in words: `float32`, `sequence(map(int64, float32))`, `no type`."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            return _element_words(kind.tensor_type.elem_type)
        case "sequence_type":
            return f"sequence({type_words(kind.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({type_words(kind.optional_type.elem_type)})"
        case "map_type":
            return f"map({_element_words(kind.map_type.key_type)}, {type_words(kind.map_type.value_type)})"
        case other:
            return (other or UNTYPED).removesuffix("_type")


def _element_words(number: int) -> str:
    if number in ELEMENT_TYPES:
        return ELEMENT_TYPES[number]
    known: dict[int, str] = {value: name for name, value in onnx.TensorProto.DataType.items()}
    return known.get(number, f"type {number}").lower()
