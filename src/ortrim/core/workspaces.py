"""What a kernel of ONNX Runtime takes for itself while it runs, beside its inputs and outputs.

The rules are those of the CPU kernels of 1.21.0 in 32-bit floats, each named with its source; a kernel without a rule
takes nothing worth counting, or is not known to take anything.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

from ortrim.core.counting_shapes import Counting, Uncountable, required
from ortrim.models.value_sizes import Shape

FLOAT_BYTES: Final = 4
LAST_AXIS_OPSET: Final = 13
"""From here on Softmax works along one axis; before, along all from it on, which is a matrix as it lies in memory."""


def workspace_of(node: Counting, opset: int) -> int:
    """Return the bytes that a node's kernel takes for itself; 0 also when its shapes are not known."""
    rule = RULES.get(node.operator)
    try:
        return rule(node, opset) if rule else 0
    except Uncountable:
        return 0


def _convolution(node: Counting, _opset: int) -> int:
    """Return the image laid out for one product: only when there are more filters than places (`convolve.cpp`).

    With fewer filters that is done in strips, whose 64 KiB or so for each thread are left out.
    """
    image, filters = required(node.inputs, 0, "the input"), required(node.inputs, 1, "the weights")
    places = math.prod(required(node.outputs, 0, "the output")[2:])
    row = math.prod(filters[1:])
    plain = set(node.integers("strides")) <= {1} and set(node.integers("pads")) <= {0}
    if len(image) < 3 or not filters or (plain and row == filters[1]):
        return 0
    return places * row * FLOAT_BYTES if filters[0] // max(node.integer("group", 1), 1) > places else 0


def _transposed_convolution(node: Counting, _opset: int) -> int:
    """Return the columns of one image before they are added up (`conv_transpose.cc`: `col_buffer_size`)."""
    image: Shape = required(node.inputs, 0, "the input")
    return math.prod(image[2:]) * math.prod(required(node.inputs, 1, "the weights")[1:]) * FLOAT_BYTES


def _softmax(node: Counting, opset: int) -> int:
    """Return the input turned and the output before it is turned back, along any but the last axis (`softmax.cc`)."""
    shape = required(node.inputs, 0, "the input")
    axis = node.integer("axis", -1)
    last = axis in {-1, len(shape) - 1}
    return 0 if last or opset < LAST_AXIS_OPSET else 2 * math.prod(shape) * FLOAT_BYTES


def _normalisation(node: Counting, _opset: int) -> int:
    """Return the scales, and one image's squares with the channels around it (`lrn.cc`)."""
    shape = required(node.inputs, 0, "the input", rank=4)
    squares = (shape[1] + node.integer("size", 1) - 1) * math.prod(shape[2:])
    return (math.prod(shape) + squares) * FLOAT_BYTES


def _recurrent(gates: int) -> Callable[[Counting, int], int]:
    """Return all steps' gates of each direction, and what runs backwards turned.

    Of `uni_directional_lstm.cc` and `deep_cpu_gru.cc`.
    """

    def size(node: Counting, _opset: int) -> int:
        steps, batch, width = required(node.inputs, 0, "the input", rank=3)
        directions = required(node.inputs, 1, "the weights", rank=3)[0]
        hidden = required(node.inputs, 2, "the recurrent weights", rank=3)[2]
        turned = 0 if node.text("direction") in {"", "forward"} else width + hidden
        return steps * batch * (directions * gates * hidden + turned) * FLOAT_BYTES

    return size


def _integers(node: Counting, _opset: int) -> int:
    """Return the image laid out for one product, in bytes (`conv_integer.cc`)."""
    filters = required(node.inputs, 1, "the weights")
    plain = set(node.integers("strides")) <= {1} and set(node.integers("pads")) <= {0}
    if plain and math.prod(filters[2:]) == 1:
        return 0
    return math.prod(required(node.outputs, 0, "the output")[2:]) * math.prod(filters[1:])


def _attention(node: Counting, _opset: int) -> int:
    """Return queries, keys and values, the weights of all heads, and the result by heads (`attention_cpu_base.h`)."""
    batch, length, _ = required(node.inputs, 0, "the input", rank=3)
    made = required(node.inputs, 1, "the weights", rank=2)[1]
    width = required(node.outputs, 0, "the output", rank=3)[2]
    return batch * length * (made + node.integer("num_heads", 1) * length + width) * FLOAT_BYTES


def _like_output(node: Counting, _opset: int) -> int:
    """Return four bytes for each element of the output (`bias_gelu.cc`, `quantize_linear_matmul.cc`)."""
    return math.prod(required(node.outputs, 0, "the output")) * FLOAT_BYTES


def _quantized_input(node: Counting, _opset: int) -> int:
    """Return a byte for each element of the input (`dynamic_quantize_matmul.cc`)."""
    return math.prod(required(node.inputs, 0, "the input"))


RULES: Final[Mapping[str, Callable[[Counting, int], int]]] = {
    **dict.fromkeys(("Conv", "com.microsoft:FusedConv"), _convolution),
    "ConvTranspose": _transposed_convolution,
    "ConvInteger": _integers,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    "LRN": _normalisation,
    "LSTM": _recurrent(4),
    "GRU": _recurrent(3),
    "com.microsoft:Attention": _attention,
    **dict.fromkeys(("com.microsoft:BiasGelu", "QLinearMatMul"), _like_output),
    "com.microsoft:DynamicQuantizeMatMul": _quantized_input,
}
"""By operator; the integers of `QLinearConv` depend on the processor and are left out."""
