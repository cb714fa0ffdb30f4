"""Understanding what ONNX Runtime says about operators without a kernel. The words are recorded from 1.21.0."""

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from onnx_samples import branching, model_of, value, write
from ortrim.models.kernels import MissingKernel, find_uses, missing_kernel


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            (
                "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : "
                "Could not find an implementation for NhwcConv(1) node with name ''"
            ),
            ("", "NhwcConv", "1", ""),
        ),
        (
            (
                "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : "
                "Could not find an implementation for Add(14) node with name '/layer.0/it's/Add'"
            ),
            ("", "Add", "14", "/layer.0/it's/Add"),
        ),
        (
            (
                "[ONNXRuntimeError] : 1 : FAIL : Load model from /a/m.onnx failed:"
                "Fatal error: my.ops:Foo(-1) is not a registered function/op"
            ),
            ("my.ops", "Foo", "", ""),
        ),
        (
            (
                "[ONNXRuntimeError] : 10 : INVALID_GRAPH : Load model from /a/m.onnx failed:This is an invalid model. "
                'In Node, ("n", Foo, "", -1) : ("x": tensor(float),) -> ("y": tensor(float),) , '
                "Error No Op registered for Foo with domain_version of 17"
            ),
            ("ai.onnx", "Foo", "17", "n"),
        ),
        (
            (
                "Failed to find kernel for com.microsoft.nchwc.Conv(1) (node:'c' ep:'CPUExecutionProvider'). "
                "Kernel not found"
            ),
            ("com.microsoft.nchwc", "Conv", "1", "c"),
        ),
        (
            "Failed to find kernel for Add(7) (node:'' ep:'CPUExecutionProvider'). Kernel not found",
            ("ai.onnx", "Add", "7", ""),
        ),
    ],
)
def test_words_about_missing_kernels_are_understood(words: str, expected: tuple[str, str, str, str]) -> None:
    """Domain, operator, opset and node, as far as the words give them."""
    domain, name, opset, node = expected
    assert missing_kernel(words) == MissingKernel(domain=domain, name=name, opset=opset, node=node)


@pytest.mark.parametrize("words", ["", "Protobuf parsing failed.", "Type Error: Type parameter (T) of Optype (Add)"])
def test_other_words_are_left_alone(words: str) -> None:
    """Not every failure is about kernels."""
    assert missing_kernel(words) is None


def test_the_types_of_a_node_are_found(tmp_path: Path) -> None:
    """Types of inner values are inferred, so that the user learns what to cast."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.BFLOAT16),
        helper.make_node("Add", ["a", "a"], ["b"], name="sum"),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    uses = find_uses(write(tmp_path / "m.onnx", model_of(nodes)), "Add", node="sum")
    assert uses == (("ai.onnx", 17, "bfloat16, bfloat16"),)


def test_nodes_inside_nodes_are_found(tmp_path: Path) -> None:
    """A branch of If sees the values around it."""
    uses = find_uses(write(tmp_path / "m.onnx", branching()), "Neg")
    assert uses == (("ai.onnx", 17, "float32"),)


def test_what_is_not_known_is_said_so(tmp_path: Path) -> None:
    """Types behind an unknown operator cannot be inferred; an absent input is left out."""
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], domain="my.ops"),
        helper.make_node("Clip", ["a", "", "a"], ["y"]),
        helper.make_node("Bar", [], ["z"], domain="my.ops"),
    ]
    path = write(tmp_path / "m.onnx", model_of(nodes, opsets=[("", 17)], outputs=[value("y")]))
    assert find_uses(path, "Clip")[0][2] == "unknown type, unknown type"
    assert find_uses(path, "Bar") == (("my.ops", 0, "no inputs"),)
    assert find_uses(path, "Foo", domain="ai.onnx") == ()
