"""Normalisations put into weights, against onnxruntime."""

from copy import deepcopy
from typing import Final

import onnx
import pytest
from onnx import helper

from number_samples import assert_same, normalised, operators, ran, random_feeds, weights
from onnx_samples import model_of, relu, value
from ortrim.buildspec.step_specs import FoldBatchNorm
from ortrim.steps.fold_batch_norm import fold_batch_norm
from ortrim.steps.step import Stepped

ASKED: Final = FoldBatchNorm(use="fold-batch-norm")
CONV: Final = helper.make_node("Conv", ["x", "w", "b"], ["n"], name="before")


def step(model: onnx.ModelProto) -> Stepped:
    return fold_batch_norm(deepcopy(model), ASKED)


FOLDED: Final = {
    "Conv": normalised(CONV, initializers=[weights("w", 4, 3, 3, 3), weights("b", 4)]),
    "Conv without bias": normalised(
        helper.make_node("Conv", ["x", "w"], ["n"]), initializers=[weights("w", 4, 3, 3)], rank=3
    ),
    "ConvTranspose": normalised(
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["n"]),
        initializers=[weights("w", 3, 4, 2, 2), weights("b", 4)],
    ),
    "ConvTranspose of groups": normalised(
        helper.make_node("ConvTranspose", ["x", "w"], ["n"], group=3),
        initializers=[weights("w", 3, 2, 2, 2)],
        channels=6,
    ),
    "Gemm": normalised(
        helper.make_node("Gemm", ["x", "w", "b"], ["n"], alpha=0.5, beta=2.0),
        initializers=[weights("w", 3, 4), weights("b", 2, 4)],
        rank=2,
    ),
    "Gemm transposed": normalised(
        helper.make_node("Gemm", ["x", "w"], ["n"], transB=1), initializers=[weights("w", 4, 3)], rank=2
    ),
    "Gemm with one number": normalised(
        helper.make_node("Gemm", ["x", "w", "b"], ["n"]), initializers=[weights("w", 3, 4), weights("b")], rank=2
    ),
    "MatMul": normalised(helper.make_node("MatMul", ["x", "w"], ["n"]), initializers=[weights("w", 3, 4)], rank=2),
}


@pytest.mark.parametrize("name", FOLDED)
def test_a_normalisation_is_folded(name: str) -> None:
    model = FOLDED[name]
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    assert operators(stepped.model.graph) == ["Gemm" if name == "MatMul" else name.split(maxsplit=1)[0]]
    assert len(stepped.model.graph.initializer) == 2
    assert stepped.notes == (f"norm: folded into {model.graph.node[0].op_type} {model.graph.node[0].name}".rstrip(),)


def test_constants_may_come_from_nodes_and_from_old_models() -> None:
    model = deepcopy(FOLDED["Conv"])
    model.ir_version = 3
    for tensor in model.graph.initializer:
        model.graph.input.append(value(tensor.name, shape=list(tensor.dims)))
    scale = next(each for each in model.graph.initializer if each.name == "scale")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["scale"], value=scale))
    model.graph.initializer.remove(scale)
    model.graph.input.remove(next(each for each in model.graph.input if each.name == "scale"))
    stepped = step(model)
    assert operators(stepped.model.graph) == ["Conv"]
    assert_same(ran(FOLDED["Conv"], random_feeds(FOLDED["Conv"])), ran(stepped.model, random_feeds(FOLDED["Conv"])))


def read_twice() -> onnx.ModelProto:
    """Return a normalisation whose input is an output, too."""
    model = deepcopy(FOLDED["Conv"])
    model.graph.output.append(value("n", shape=[2, 4, 6, 6]))
    return model


def behind_relu() -> onnx.ModelProto:
    """Return a normalisation behind something that has no weights."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["n"])]
    return normalised(*nodes, initializers=[weights("w", 4, 3, 3, 3)])


def learning() -> onnx.ModelProto:
    """Return a normalisation that takes mean and variance of its input."""
    model = deepcopy(FOLDED["Conv"])
    model.graph.node[1].attribute.append(helper.make_attribute("training_mode", 1))
    model.graph.node[1].output.extend(["running_mean", "running_variance"])
    return model


def three_dimensions() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["n"])
    return normalised(node, initializers=[weights("w", 8, 3)], rank=3, channels=3)


def given_weights() -> onnx.ModelProto:
    """Return a normalisation behind a convolution whose weights are an input."""
    model = normalised(helper.make_node("Conv", ["x", "w"], ["n"]), initializers=[])
    model.graph.input.append(value("w", shape=[4, 3, 3, 3]))
    return model


def overflowing() -> onnx.ModelProto:
    """Return a normalisation by which float16 weights would become infinite."""
    names = ("scale", "shift", "mean", "variance")
    tensors = [helper.make_tensor(name, 10, [1], [1.0]) for name in names[1:3]]
    tensors += [helper.make_tensor("scale", 10, [1], [60000.0]), helper.make_tensor("variance", 10, [1], [0.001])]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["n"]),
        helper.make_node("BatchNormalization", ["n", *names], ["y"]),
    ]
    tensors.append(helper.make_tensor("w", 10, [1, 1, 1], [2.0]))
    return model_of(nodes, [value("x", 10, [1, 1, 4])], [value("y", 10, [1, 1, 4])], initializers=tensors)


@pytest.mark.parametrize(
    "model", [read_twice(), behind_relu(), learning(), three_dimensions(), given_weights(), overflowing(), relu()]
)
def test_other_models_are_left_alone(model: onnx.ModelProto) -> None:
    """What others read, what learns, what has no weights or would lose its numbers: not a byte changes."""
    stepped = step(model)
    assert stepped.model.SerializeToString() == model.SerializeToString()
    assert stepped.notes == ()


def test_shared_weights_stay_for_the_other_reader() -> None:
    model = deepcopy(FOLDED["Conv"])
    model.graph.node.append(helper.make_node("Conv", ["x", "w"], ["z"]))
    model.graph.output.append(value("z", shape=[2, 4, 6, 6]))
    stepped = step(model)
    assert_same(ran(model, random_feeds(model)), ran(stepped.model, random_feeds(model)))
    assert operators(stepped.model.graph) == ["Conv", "Conv"]
