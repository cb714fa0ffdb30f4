"""Models for steps, and whether two give the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from onnx_samples import model_of, value

SHAPE = ("batch", 3)


def outputs_of(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    onnx.checker.check_model(model)
    names = [each.name for each in model.graph.output]
    return dict(zip(names, ReferenceEvaluator(model).run(None, dict(feeds)), strict=True))


def same_outputs(before: onnx.ModelProto, after: onnx.ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether two models give the same, under the same names."""
    one, other = outputs_of(before, feeds), outputs_of(after, feeds)
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def constant(name: str, numbers: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(numbers), name)


def layered() -> onnx.ModelProto:
    """Return `y = relu(x * w + b) * w2`, in which w and w2 are equal; all nodes have names."""
    ones = np.arange(1.0, 4.0, dtype=np.float32)
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["m"], name="first"),
        helper.make_node("Add", ["m", "b"], ["a"], name="second"),
        helper.make_node("Relu", ["a"], ["r"], name="third"),
        helper.make_node("Mul", ["r", "w2"], ["y"], name="fourth"),
    ]
    weights = [constant("w", ones), constant("w2", ones), constant("b", ones - np.float32(2))]
    return model_of(nodes, [value("x", shape=SHAPE)], [value("y", shape=SHAPE)], initializers=weights)


def with_branch() -> onnx.ModelProto:
    """Return a model whose If reads values of the graph around it: w and the doubled x."""
    bodies = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(operator, ["d", "w"], [name], name=f"in {name}")], name, [], [value(name, shape=SHAPE)]
        )
        for name, operator in (("then", "Mul"), ("else", "Add"))
    }
    nodes = [
        helper.make_node("Add", ["x", "x"], ["d"], name="double"),
        helper.make_node("If", ["c"], ["y"], name="choice", **bodies),
    ]
    inputs = [value("x", shape=SHAPE), value("c", TensorProto.BOOL, ())]
    weights = [constant("w", np.array([3, 4, 5], np.float32))]
    return model_of(nodes, inputs, [value("y", shape=SHAPE)], initializers=weights)


def feeds_for(model: onnx.ModelProto, batch: int = 2) -> dict[str, Any]:
    known = {"x": np.linspace(-2, 2, batch * 3, dtype=np.float32).reshape(batch, 3), "c": np.ones((), np.bool_)}
    return {each.name: known[each.name] for each in model.graph.input}
