"""What kernels take for themselves, by the sources of ONNX Runtime 1.21.0."""

from typing import Any, Final

import pytest

from ortrim.analysis.cost.counting import Counting
from ortrim.analysis.cost.memory import RULES, workspace_of
from ortrim.models.shapes import Shape


def node(operator: str, inputs: tuple[Shape | None, ...], output: Shape | None, **attributes: Any) -> Counting:
    return Counting(operator=operator, inputs=inputs, outputs=(output,), attributes=attributes)


IMAGE: Final = (2, 8, 4, 4)
CASES: Final = (
    ("more filters than places", node("Conv", (IMAGE, (64, 8, 3, 3)), (2, 64, 2, 2)), 4 * 8 * 9 * 4),
    ("fewer filters", node("Conv", (IMAGE, (16, 8, 3, 3)), (2, 16, 4, 4), pads=(1, 1, 1, 1)), 0),
    ("few filters of a group", node("Conv", (IMAGE, (64, 1, 3, 3)), (2, 64, 4, 4), pads=(1, 1, 1, 1), group=8), 0),
    ("one place", node("Conv", (IMAGE, (64, 8, 1, 1)), (2, 64, 4, 4)), 0),
    ("one place, with strides", node("Conv", (IMAGE, (64, 8, 1, 1)), (2, 64, 2, 2), strides=(2, 2)), 4 * 8 * 4),
    ("columns", node("ConvTranspose", (IMAGE, (8, 5, 2, 2)), (2, 5, 8, 8)), 16 * 5 * 4 * 4),
    ("last axis", node("Softmax", (IMAGE,), IMAGE), 0),
    ("last axis by number", node("Softmax", (IMAGE,), IMAGE, axis=3), 0),
    ("another axis", node("Softmax", (IMAGE,), IMAGE, axis=1), 2 * 256 * 4),
    ("squares", node("LRN", (IMAGE,), IMAGE, size=5), (256 + 12 * 16) * 4),
    ("gates", node("LSTM", ((7, 2, 3), (1, 20, 3), (1, 20, 5)), (7, 1, 2, 5)), 7 * 2 * 20 * 4),
    (
        "both ways",
        node("GRU", ((7, 2, 3), (2, 15, 3), (2, 15, 5)), (7, 2, 2, 5), direction="bidirectional"),
        7 * 2 * (30 + 3 + 5) * 4,
    ),
    ("bytes", node("ConvInteger", (IMAGE, (4, 8, 3, 3)), (2, 4, 2, 2)), 4 * 72),
    ("bytes of one place", node("ConvInteger", (IMAGE, (4, 8, 1, 1)), (2, 4, 4, 4)), 0),
    (
        "heads",
        node("com.microsoft:Attention", ((1, 6, 8), (8, 24)), (1, 6, 8), num_heads=2),
        (6 * 24 + 2 * 36 + 6 * 8) * 4,
    ),
    ("sums", node("QLinearMatMul", ((3, 4),), (3, 5)), 60),
    ("quantized", node("com.microsoft:DynamicQuantizeMatMul", ((3, 4), (4, 5)), (3, 5)), 12),
    ("no rule", node("Relu", (IMAGE,), IMAGE), 0),
)


@pytest.mark.parametrize(("counting", "size"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_kernels_take_what_their_sources_say(counting: Counting, size: int) -> None:
    assert workspace_of(counting, 17) == size


def test_before_opset_13_softmax_turns_nothing() -> None:
    assert workspace_of(node("Softmax", (IMAGE,), IMAGE, axis=1), 12) == 0


@pytest.mark.parametrize("operator", RULES)
def test_what_is_not_known_takes_nothing(operator: str) -> None:
    shapes: tuple[Shape | None, ...] = (None, (), (0,), (1, 2, 3, 4, 5, 6))
    assert all(workspace_of(node(operator, (shape,) * 3, shape), 17) >= 0 for shape in shapes)
    assert workspace_of(node(operator, (), None), 17) == 0
