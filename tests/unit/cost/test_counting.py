"""The rules of counting, one by one, with figures worked out by hand from the operators' definitions."""

from typing import Final

import pytest

from ortrim.analysis.cost.counting import Counting, count, operator_name
from ortrim.models.shapes import Shape

Attributes = dict[str, int | str | tuple[int, ...]]
MS: Final = "com.microsoft:"
CASES: Final[list[tuple[str, tuple[Shape | None, ...], Shape, Attributes, int]]] = [
    # 64 filters of 3x7x7, at 112x112 places
    ("Conv", ((1, 3, 224, 224), (64, 3, 7, 7), (64,)), (1, 64, 112, 112), {}, 64 * 3 * 49 * 112 * 112),
    # depthwise: each of 32 channels has one filter of its own
    ("Conv", ((2, 32, 10, 10), (32, 1, 3, 3)), (2, 32, 8, 8), {"group": 32}, 2 * 32 * 64 * 9),
    ("ConvInteger", ((1, 2, 8), (4, 2, 3)), (1, 4, 6), {}, 4 * 2 * 3 * 6),
    ("QLinearConv", ((1, 2, 8), (), (), (4, 2, 3)), (1, 4, 6), {}, 4 * 2 * 3 * 6),
    (MS + "QLinearConv", ((1, 8, 2), (), (), (4, 2, 3)), (1, 6, 4), {"channels_last": 1}, 4 * 2 * 3 * 6),
    (MS + "FusedConv", ((1, 2, 8), (4, 2, 3)), (1, 4, 6), {}, 4 * 2 * 3 * 6),
    # 5 input places with 2 channels, each spread over 3 output channels and a kernel of 4
    ("ConvTranspose", ((1, 2, 5), (2, 3, 4)), (1, 3, 8), {}, 5 * 2 * 3 * 4),
    ("Gemm", ((5, 7), (7, 3), (3,)), (5, 3), {}, 5 * 7 * 3),
    ("Gemm", ((7, 5), (7, 3)), (5, 3), {"transA": 1}, 5 * 7 * 3),
    (MS + "QGemm", ((7, 5), (), (), (7, 3)), (5, 3), {"transA": 1}, 5 * 7 * 3),
    ("MatMul", ((4, 1, 5, 7), (2, 7, 3)), (4, 2, 5, 3), {}, 4 * 2 * 5 * 7 * 3),
    ("MatMul", ((7,), (7,)), (), {}, 7),
    ("MatMulInteger", ((5, 7), (7, 3)), (5, 3), {}, 5 * 7 * 3),
    ("QLinearMatMul", ((5, 7), (), (), (7, 3)), (5, 3), {}, 5 * 7 * 3),
    (MS + "DynamicQuantizeMatMul", ((5, 7), (7, 3)), (5, 3), {}, 5 * 7 * 3),
    (MS + "FusedMatMul", ((7, 5), (7, 3)), (5, 3), {"transA": 1}, 5 * 7 * 3),
    # 4 gates of 8 by 6 inputs and by 8 of the state, over 10 steps of 2 sequences
    ("LSTM", ((10, 2, 6), (1, 32, 6), (1, 32, 8)), (10, 1, 2, 8), {}, 20 * (32 * 6 + 32 * 8)),
    ("GRU", ((10, 2, 6), (2, 24, 6), (2, 24, 8)), (10, 2, 2, 8), {}, 20 * 2 * (24 * 6 + 24 * 8)),
    ("RNN", ((2, 10, 6), (1, 8, 6), (1, 8, 8)), (2, 10, 1, 8), {"layout": 1}, 20 * (8 * 6 + 8 * 8)),
    ("Einsum", ((2, 3, 4), (2, 4, 5)), (2, 3, 5), {"equation": "bij,bjk->bik"}, 2 * 3 * 4 * 5),
    ("Einsum", ((2, 1, 3, 4), (6, 4, 5)), (2, 6, 3, 5), {"equation": "...ij, ...jk -> ...ik"}, 2 * 6 * 3 * 4 * 5),
    ("Einsum", ((3, 4),), (4, 3), {"equation": "ij->ji"}, 0),
    ("Einsum", ((2,), (3,), (4,)), (2, 3, 4), {"equation": "a,b,c->abc"}, 2 * 24),
    # 2 sequences, 4 heads of 8: 5 queries by 7 keys and values
    ("Attention", ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)), (2, 4, 5, 6), {}, 2 * 4 * 5 * 7 * (8 + 6)),
    (
        "Attention", ((2, 5, 32), (2, 7, 16), (2, 7, 12)), (2, 5, 24), {"q_num_heads": 4, "kv_num_heads": 2},
        2 * 4 * 5 * 7 * (8 + 6),
    ),
    (MS + "Attention", ((2, 5, 16), (16, 48), (48,)), (2, 5, 16), {"num_heads": 4}, 2 * 5 * (16 * 48 + 5 * 32)),
    (MS + "MultiHeadAttention", ((2, 5, 16), (2, 7, 16), (2, 7, 16)), (2, 5, 16), {}, 2 * 5 * 7 * 32),
    ("ai.onnx.ml:LinearClassifier", ((6, 4),), (6,), {"coefficients.length": 12}, 6 * 12),
    ("Conv", ((0, 3, 8), (4, 3, 3)), (0, 4, 6), {}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "output", "attributes", "macs"), CASES)
def test_multiply_accumulates(
    operator: str, inputs: tuple[Shape | None, ...], output: Shape, attributes: Attributes, macs: int
) -> None:
    """Each operator that multiplies and adds up is counted by its definition, and has no other operations."""
    found = count(Counting(operator=operator, inputs=inputs, outputs=(output,), attributes=attributes))
    assert found == (macs, 0, "")


@pytest.mark.parametrize(
    ("operator", "source", "output", "attributes", "operations"),
    [
        ("Relu", (2, 3), (2, 3), {}, 6),
        ("MaxPool", (1, 4, 8, 8), (1, 4, 4, 4), {"kernel_shape": (2, 3)}, 64 * 6),
        ("GlobalAveragePool", (1, 4, 8, 8), (1, 4, 1, 1), {}, 256),
        ("ReduceMean", (5, 7), (5, 1), {}, 35),
        ("Reshape", (2, 3), (6,), {}, 0),
        ("com.microsoft:Gelu", (2, 3), (2, 3), {}, 6),
    ],
)
def test_other_operations(operator: str, source: Shape, output: Shape, attributes: Attributes, operations: int) -> None:
    """Poolings and element-wise operators are operations, what only moves data is nothing."""
    found = count(Counting(operator=operator, inputs=(source,), outputs=(output,), attributes=attributes))
    assert found == (0, operations, "")


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "words"),
    [
        ("Conv", (None, (4, 3, 3)), (None,), "the shape of the output is not known"),
        ("Conv", ((1, 3, 8),), ((1, 4, 6),), "the shape of the weights is not known"),
        ("Gemm", (), (), "the shape of the first matrix is not known"),
        ("MatMul", ((), (3,)), ((3,),), "the first matrix is a scalar"),
        ("Einsum", ((2, 3),), ((2,),), "the equation does not fit the operands"),
        ("Attention", ((2, 5, 8), (2, 5, 8), (2, 5, 8)), ((2, 5, 8),), "the numbers of heads are not known"),
        ("Attention", ((2,), (2,), (2,)), ((2,),), "the query has neither 3 nor 4 dimensions"),
        ("com.microsoft:Attention", ((2, 5), (5, 15)), ((2, 5),), "the shape of the input has 2 dimensions, not 3"),
        ("com.example:Mine", ((2,),), ((2,),), "no rule for this operator"),
    ],
)
def test_what_cannot_be_counted_is_said(
    operator: str, inputs: tuple[Shape | None, ...], outputs: tuple[Shape | None, ...], words: str
) -> None:
    macs, operations, unknown = count(Counting(operator=operator, inputs=inputs, outputs=outputs))
    assert (macs, operations) == (0, 0)
    assert words in unknown


def test_onnx_own_domain_is_not_named() -> None:
    names = [operator_name(domain, "Conv") for domain in ("", "ai.onnx", "com.example")]
    assert names == ["Conv", "Conv", "com.example:Conv"]
