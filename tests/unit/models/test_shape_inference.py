"""Shapes of what ONNX Runtime fuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from fused_operators import FUSED, UNKNOWN, Fused
from onnx_samples import model_of, relu, value
from ortrim.models.shapes import inferred, value_sizes
from ortrim.models.surrogate_operators import IN_ONNX, MADE_UP, RULES


@pytest.mark.parametrize("fused", FUSED, ids=lambda each: each.operator)
def test_outputs_have_the_shapes_that_the_runtime_gives_them(fused: Fused) -> None:
    """And its types; the node itself stays what it was."""
    model = fused.model(told=False)
    for output in model.graph.output:
        output.type.Clear()
    found = inferred(model)
    sizes = value_sizes(found.graph)
    expected = value_sizes(fused.model(told=True).graph)
    assert {name: sizes[name] for name in expected} == expected
    assert list(found.graph.node) == list(model.graph.node)


@pytest.mark.parametrize("fused", UNKNOWN, ids=lambda each: each.operator)
def test_nothing_is_guessed(fused: Fused) -> None:
    """Where channels are laid out anew, batches turned, or widths not known."""
    sizes = value_sizes(inferred(fused.model(told=False)).graph)
    assert [sizes[f"o{number}"].shape for number, _ in enumerate(fused.outputs)] == [None]


def test_shapes_are_followed_through_them() -> None:
    """To what ONNX's own operators make of them; values that the model does not have are forgotten."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Attention", ["a", "w", "b"], ["c"], domain="com.microsoft", num_heads=2),
        helper.make_node("BiasGelu", ["c", "b8"], ["d"], domain="com.microsoft"),
        helper.make_node("Transpose", ["d"], ["y"], perm=[0, 2, 1]),
    ]
    shapes = {"x": ("n", 5, 8), "w": (8, 24), "b": (24,), "b8": (8,)}
    inputs = [value(name, shape=shape) for name, shape in shapes.items()]
    model = model_of(nodes, inputs, [value("y", shape=None)], opsets=(("", 17), ("com.microsoft", 1)))
    found = inferred(model)
    assert [each.dim_param or each.dim_value for each in found.graph.output[0].type.tensor_type.shape.dim] == [
        "n",
        8,
        5,
    ]
    assert {each.name for each in found.graph.value_info} == {"a", "c", "d"}
    assert [node.op_type for node in found.graph.node] == ["Relu", "Attention", "BiasGelu", "Transpose"]
    assert MADE_UP not in str(found)


def test_a_model_without_them_is_inferred_as_onnx_does() -> None:
    assert inferred(relu()).graph.output[0].name == "y"
    node = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    found = inferred(model_of([node], outputs=[value("y", shape=None)], opsets=(("com.microsoft", 1),)))
    assert not found.graph.output[0].type.tensor_type.HasField("shape")


@given(
    operator=st.sampled_from([*RULES, *IN_ONNX]),
    inputs=st.lists(st.sampled_from(["", "x", "w", "none"]), max_size=9),
    outputs=st.lists(st.sampled_from(["", "y", "z", "u"]), max_size=4, unique=True),
    attributes=st.dictionaries(
        st.sampled_from(["K", "N", "transA", "transB", "axis", "channels_last", "hidden_size", "qkv_hidden_sizes"]),
        st.integers(-(2**63), 2**63 - 1) | st.lists(st.integers(-9, 9), max_size=3) | st.just("text"),
    ),
)
def test_odd_nodes_are_inferred_or_left(
    operator: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any]
) -> None:
    domain = "" if operator in IN_ONNX else "com.microsoft"
    named = {name: word for name, word in attributes.items() if word != []}
    node = helper.make_node(operator, inputs, outputs, domain=domain, **named)
    ends = [value("x", shape=(2, 3, 4)), value("w", TensorProto.INT8, (4, "n"))], [value("y", shape=None)]
    model = model_of([node], *ends, opsets=(("", 13), ("com.microsoft", 1)))
    assert list(inferred(model).graph.node) == [node]
